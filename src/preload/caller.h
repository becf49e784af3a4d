/* Whose memory is it? By who asks for it, told by the address that malloc returns to. The program's own code, and that of libraries that
 * compute, allocates the program's state. Libraries that stand for something outside of it (MPI, files, devices, the C library itself) keep
 * what they know of it in memory that must not be put back: theirs stays in the C library's heap. */
#ifndef VV_PRELOAD_CALLER_H
#define VV_PRELOAD_CALLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of an address that is not in the executable. */
bool vv_caller_is_program(uintptr_t at);

/* The same of who makes a thread: a library that makes the program's workers (OpenMP, TBB) counts as the program. */
bool vv_caller_makes_workers(uintptr_t at);

/* Is it a library whose memory stays outside? By its file name, without folders. */
bool vv_caller_is_outside(const char *file);
/* To be called before all others. */
void vv_caller_begin(void);
/* Where the executable lies (NULL), or a library whose file name begins so; false if there is none. */
bool vv_caller_find(const char *name, uintptr_t *lo, size_t *size);
/* Calls fn for every library that counts as the program, the executable first, with a name of "". */
void vv_caller_each_program(void (*fn)(void *arg, const char *name, uintptr_t at, size_t size), void *arg);
/* Libraries came or went. */
void vv_caller_forget(void);

#endif
