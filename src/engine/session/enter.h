/* The beginning and the end of every public call: is it a session, and of this process? Then it is locked. */
#ifndef VV_ENGINE_SESSION_ENTER_H
#define VV_ENGINE_SESSION_ENTER_H

#include "engine/context.h"

int vv_enter(struct varve *v, const char *call);
/* The same; then waits until the background thread is idle. */
int vv_enter_idle(struct varve *v, const char *call);
/* The epoch in progress has been committed or rejected, and all ranks make this call (enum vv_group_call). */
int vv_enter_check_call(struct varve *v, int call, uint64_t detail);
/* Until the call is left no signal handler of the program runs on this thread: one that writes a protected page would wait for itself. */
void vv_enter_block_signals(struct varve *v);
int vv_enter_leave(struct varve *v, int rc); /* returns rc */

#endif
