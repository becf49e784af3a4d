/* The beginning and the end of every public call. Checks that the session exists and belongs to
 * this process, and locks it. */
#ifndef VV_ENGINE_SESSION_ENTER_H
#define VV_ENGINE_SESSION_ENTER_H

#include "engine/context.h"

int vv_enter(struct varve *v, const char *call);
/* The same, and then waits until the background thread is idle. */
int vv_enter_idle(struct varve *v, const char *call);
/* Completes the commit of the epoch in progress, and checks that all ranks make this call (enum
 * vv_group_call). */
int vv_enter_check_call(struct varve *v, int call, uint64_t detail);
/* The same, without a detail. *failed: the oldest epoch whose failure some rank has not reported
 * yet, for vv_background_report; 0: none. So all ranks report it together, including those that
 * have done so. */
int vv_enter_check_call_and_failures(struct varve *v, int call, uint64_t *failed);
/* Until the end of the call, no signal handler of the program runs on this thread. A handler that
 * writes a protected page would wait for itself. */
void vv_enter_block_signals(struct varve *v);
int vv_enter_leave(struct varve *v, int rc); /* returns rc */

#endif
