/* A slot is (lo, hi), and hi = 0 marks an empty slot. hi is written last and cleared first. A
 * reader that finds the same hi before and after lo may still have mixed two successive calls. But
 * then the second call was published after the reader began. A thread that protects pages announces
 * that before it reads the slots, so that call sees it (vv_write_protect_begin_syscall). */
#include "track/kernel_writes.h"
#include "track/thread.h"
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CALL_MOST = 1024 }; /* the frame of a call is smaller, the frame of a signal is larger */

static atomic_bool keeps;

void vv_kernel_writes_keep_left(void)
{
	atomic_store(&keeps, true);
}

/* The interposed sigaltstack would come here again. */
static bool is_on_other_stack(void)
{
	stack_t s = { .ss_flags = 0 };
	int saved = errno;
	bool other = atomic_load(&keeps) || syscall(SYS_sigaltstack, NULL, &s) != 0 || s.ss_flags & SS_ONSTACK;

	errno = saved;
	return other;
}

/* Returns the lowest of the upper slots whose calls were left by siglongjmp, t->depth if there is
 * none. Such a call began deeper in the stack, or in the same place. A call that began nearby may
 * be in progress, so it is kept until a later call shows that it was left. */
static unsigned find_left(const struct vv_thread *t, uintptr_t frame)
{
	unsigned left = t->depth, i = t->depth < VV_THREAD_SLOTS ? t->depth : VV_THREAD_SLOTS;

	while (i-- > 0) {
		uintptr_t its = t->slot[i].frame;

		if (!its || its > frame + CALL_MOST)
			break;
		if (its == frame || its + CALL_MOST < frame)
			left = i;
	}
	return left;
}

static void end_left(struct vv_thread *t, uintptr_t frame)
{
	unsigned left = find_left(t, frame);

	if (left == t->depth || is_on_other_stack())
		return;
	for (unsigned i = left; i < VV_THREAD_SLOTS; i++)
		atomic_store(&t->slot[i].hi, 0);
	t->depth = left;
}

void vv_kernel_writes_enter(uintptr_t lo, uintptr_t hi, const void *frame, bool drop_left)
{
	struct vv_thread *t = vv_thread_self();
	unsigned i;

	if (!t)
		return;
	if (t->depth && frame && drop_left)
		end_left(t, (uintptr_t)frame);
	i = t->depth++;
	if (i >= VV_THREAD_SLOTS)
		return;
	t->slot[i].frame = (uintptr_t)frame;
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
