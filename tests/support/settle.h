/* Checkpoints that are seen to their end: for tests that ask what one returned or left behind. A test that says
 * "// ctest: MODES" runs with VARVE_MODE=async and again, as *.sync, with VARVE_MODE=sync. */
#ifndef VV_TEST_SETTLE_H
#define VV_TEST_SETTLE_H

#include <varve/varve.h>

/* Takes a checkpoint and waits until it is durable: 0, or the error of either. */
int settle_checkpoint(varve *v);
/* Waits for what comes after the commit too: retention, gc. */
void settle_idle(varve *v);
/* How many cases of a long sweep to step over: in sync mode, the second, `sync`; else 1. */
long settle_stride(long sync);

#endif
