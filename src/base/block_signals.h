/* A stretch of code that no handler of the program's interrupts: signals wait until it is over, but not faults. */
#ifndef VV_BASE_HUSH_H
#define VV_BASE_HUSH_H

#include <signal.h>
#include <stdbool.h>

/* *before: for vv_hush_end, by the same thread. One that may take long: signals that have no handler end the process, or stop it, as ever. */
void vv_hush_begin(sigset_t *before);
/* A few instructions: all of them wait. */
void vv_hush_brief(sigset_t *before);
void vv_hush_end(const sigset_t *before);
/* Is a signal blocked that has a handler? Then it may be a handler whose mask this is. */
bool vv_hush_blocks(const sigset_t *mask);

#endif
