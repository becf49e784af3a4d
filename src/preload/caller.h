/* Whose memory is it? By who asks for it, told by the address that malloc returns to. The program's own code, and that of libraries that
 * compute, allocates the program's state. Libraries that stand for something outside of it (MPI, files, devices, the C library itself) keep
 * what they know of it in memory that must not be put back: theirs stays in the C library's heap. */
#ifndef VV_PRELOAD_CALLER_H
#define VV_PRELOAD_CALLER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What was found of pages of code, each at the last bits of its number: the number, and in three more bits whose it is. Of a page of the program
 * that is the phase of the heap (heap.h) in which a thread called from there: so one look tells malloc both that the caller is the program, and
 * that this thread may allocate. */
enum { VV_CALLER_PAGES = 8192, VV_CALLER_PAGE_BITS = 12, VV_CALLER_WHOSE_BITS = 3 };
enum { VV_CALLER_PROGRAM = 1, VV_CALLER_OUTSIDE = 7 }; /* beside phases: in whichever, and in none */
extern _Atomic(uintptr_t) vv_caller_known[VV_CALLER_PAGES] __attribute__((visibility("hidden")));

static inline uintptr_t vv_caller_word(uintptr_t at, uintptr_t whose)
{
	return (at >> VV_CALLER_PAGE_BITS << VV_CALLER_WHOSE_BITS) + whose;
}

static inline bool vv_caller_is_known(uintptr_t at, uintptr_t phase)
{
	return atomic_load_explicit(&vv_caller_known[(at >> VV_CALLER_PAGE_BITS) % VV_CALLER_PAGES], memory_order_relaxed) == vv_caller_word(at, phase);
}

/* The same, whatever the phase; finds out. */
bool vv_caller_is_program(uintptr_t at);
/* It is the program, and a thread that is ready for this phase, which is that of `now` unless it has just ended. */
void vv_caller_note(uintptr_t at, uintptr_t phase, const _Atomic(int) *now);

/* The same of who makes a thread: a library that makes the program's workers (OpenMP, TBB) counts as the program. */
bool vv_caller_makes_workers(uintptr_t at);

/* Libraries came or went, or there is a new phase: nothing is known. */
void vv_caller_forget(void);

#endif
