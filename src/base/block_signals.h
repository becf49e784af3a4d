/* A section of code that no handler of the program interrupts. Signals stay pending until its end,
 * except faults. */
#ifndef VV_BASE_BLOCK_SIGNALS_H
#define VV_BASE_BLOCK_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* *before: for vv_block_signals_end, by the same thread. For long sections: signals without a
 * handler still end or stop the process. */
void vv_block_signals_begin(sigset_t *before);
/* For a few instructions: all signals stay pending. */
void vv_block_signals_brief(sigset_t *before);
void vv_block_signals_end(const sigset_t *before);
/* Is a signal with a handler blocked? Then this may be the mask of a running handler. */
bool vv_block_signals_blocks(const sigset_t *mask);

#endif
