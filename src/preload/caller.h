/* Decides by the return address of malloc which heap serves a caller. The program's own code, and
 * that of computing libraries, allocates the program's state. Libraries that represent outside
 * resources (MPI, files, devices, the C library itself) keep records that must not be restored.
 * Their memory stays in the C library's heap. */
#ifndef VV_PRELOAD_CALLER_H
#define VV_PRELOAD_CALLER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Code pages of the program, indexed by the last bits of the page number: one table for each phase
 * of the heap (heap.h). A prepared thread uses the table of its phase. An unprepared thread uses
 * the first table, which stays empty. So one lookup shows malloc both that the caller is the
 * program and that this thread may allocate. */
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

/* The same for any thread; examines an unknown caller. */
bool vv_caller_is_program(uintptr_t at);
/* Records that the caller is the program, and that this thread is prepared for the phase. That is
 * the phase of `now`, unless it has just ended. */
void vv_caller_note(uintptr_t at, uintptr_t phase, const _Atomic(int) *now);

/* The same for the creator of a thread: a library that creates the program's workers (OpenMP, TBB)
 * counts as the program. */
bool vv_caller_makes_workers(uintptr_t at);

/* Clears all tables: libraries were loaded or unloaded, or a new phase begins. */
void vv_caller_forget(void);

#endif
