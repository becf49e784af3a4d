/* A slot is (lo, hi), and hi = 0 marks an empty slot. hi is written last and cleared first. A
 * reader that finds the same hi before and after lo may still have mixed two successive calls. But
 * then the second call was published after the reader began. A thread that protects pages announces
 * that before it reads the slots, so that call sees it (vv_write_protect_begin_syscall). */
#include "track/kernel_writes.h"
#include "track/thread.h"
#include <stddef.h>

void vv_kernel_writes_enter(uintptr_t lo, uintptr_t hi)
{
	struct vv_thread *t = vv_thread_self();
	unsigned i;

	if (!t)
		return;
	i = t->depth++;
	if (i >= VV_THREAD_SLOTS)
		return;
	atomic_store(&t->slot[i].lo, lo);
	atomic_store(&t->slot[i].hi, hi);
}

void vv_kernel_writes_leave(void)
{
	struct vv_thread *t = vv_thread_self();
	unsigned i;

	if (!t || t->depth == 0) /* the thread's record was released in between */
		return;
	i = t->depth - 1;
	if (i < VV_THREAD_SLOTS)
		atomic_store(&t->slot[i].hi, 0);
	t->depth = i;
}

void vv_kernel_writes_each(void (*fn)(void *arg, uintptr_t lo, uintptr_t hi), void *arg)
{
	for (struct vv_thread *t = vv_thread_first(); t; t = t->next)
		for (int i = 0; i < VV_THREAD_SLOTS && atomic_load(&t->owner); i++) {
			uintptr_t lo, hi = atomic_load(&t->slot[i].hi), again = hi;

			do {
				hi = again;
				lo = atomic_load(&t->slot[i].lo);
				again = atomic_load(&t->slot[i].hi);
			} while (again != hi);
			if (lo < hi)
				fn(arg, lo, hi);
		}
}
