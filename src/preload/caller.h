/* Whose memory is it? By who asks for it, told by the address that malloc returns to. The program's own code, and that of libraries that
 * compute, allocates the program's state. Libraries that stand for something outside of it (MPI, files, devices, the C library itself) keep
 * what they know of it in memory that must not be put back: theirs stays in the C library's heap. */
#ifndef VV_PRELOAD_CALLER_H
#define VV_PRELOAD_CALLER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Pages of code that are the program's, by number, each at the number's last bits: one table for each phase of the heap (heap.h). A thread looks into that
 * of the phase for which it is ready, and one that is not ready yet into the first, which stays empty: so one look tells malloc both that the caller
 * is the program, and that this thread may allocate. */
enum { VV_CALLER_PAGES = 8192, VV_CALLER_PAGE_BITS = 12, VV_CALLER_PHASES = 4 };
struct vv_caller_table {
	_Atomic(uintptr_t) page[VV_CALLER_PAGES];
};
extern __thread struct vv_caller_table *vv_caller_mine __attribute__((visibility("hidden"), tls_model("initial-exec")));

static inline bool vv_caller_is_known(uintptr_t at)
{
	uintptr_t page = at >> VV_CALLER_PAGE_BITS;

	return atomic_load_explicit(&vv_caller_mine->page[page % VV_CALLER_PAGES], memory_order_relaxed) == page;
}

/* The same, whatever the thread; finds out. */
bool vv_caller_is_program(uintptr_t at);
/* It is the program, and this thread is ready for this phase, which is that of `now` unless it has just ended. */
void vv_caller_note(uintptr_t at, uintptr_t phase, const _Atomic(int) *now);

/* The same of who makes a thread: a library that makes the program's workers (OpenMP, TBB) counts as the program. */
bool vv_caller_makes_workers(uintptr_t at);

/* Libraries came or went, or there is a new phase: nothing is known. */
void vv_caller_forget(void);

#endif
