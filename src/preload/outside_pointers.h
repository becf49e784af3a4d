/* Pointers that a restart would not put right: words of the state that lead into memory of a library that is not saved (MPI, a stream, a device). They are looked
 * for after checkpoints, and said of each library once. A look reads 64 MiB at most; a whole pass is made at the 1st, 2nd, 4th, 8th ... checkpoint. */
#ifndef VV_PRELOAD_OUTSIDE_POINTERS_H
#define VV_PRELOAD_OUTSIDE_POINTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A checkpoint was taken: is there something to look at? *first: this begins a pass. `is_exempt` tells of a word at an address whether it is kept out of the state,
 * or leads to memory that is in it. */
bool vv_outside_pointers_begin(bool (*is_exempt)(uintptr_t at, uintptr_t target), bool *first);
/* At a region of this name. */
void vv_outside_pointers_look(const char *name, uintptr_t lo, size_t n);
/* At more of the heap. */
void vv_outside_pointers_look_heap(void);

#endif
