/* Finds pointers that a restart would break: words of the state that point into unsaved memory of a
 * library (MPI, a stream, a device). The search runs after checkpoints and reports each library
 * once. One search reads 64 MiB at most; a complete pass begins at the 1st, 2nd, 4th, 8th ...
 * checkpoint. */
#ifndef VV_PRELOAD_OUTSIDE_POINTERS_H
#define VV_PRELOAD_OUTSIDE_POINTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* To be called after a checkpoint; returns whether there is a search to do. *first: a pass begins.
 * The callback `is_exempt` returns whether a word is kept out of the state, or its target is in the
 * state. */
bool vv_outside_pointers_begin(bool (*is_exempt)(uintptr_t at, uintptr_t target), bool *first);
/* Examines a region of this name. */
void vv_outside_pointers_look(const char *name, uintptr_t lo, size_t n);
/* Examines a further part of the heap. */
void vv_outside_pointers_look_heap(void);

#endif
