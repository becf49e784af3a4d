/* A stretch of code that no handler of the program's interrupts: signals wait until it is over, but not faults. */
#ifndef VV_BASE_BLOCK_SIGNALS_H
#define VV_BASE_BLOCK_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* *before: for vv_block_signals_end, by the same thread. One that may take long: signals that have no handler end the process, or stop it, as ever. */
void vv_block_signals_begin(sigset_t *before);
/* A few instructions: all of them wait. */
void vv_block_signals_brief(sigset_t *before);
void vv_block_signals_end(const sigset_t *before);
/* Is a signal blocked that has a handler? Then it may be a handler whose mask this is. */
bool vv_block_signals_blocks(const sigset_t *mask);

#endif
