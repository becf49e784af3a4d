/* The threads that all parts of a session share. */
#ifndef VV_ENGINE_THREADS_H
#define VV_ENGINE_THREADS_H

#include "engine/context.h"

/* Starts the session's pool unless it is running. */
int vv_threads_start(struct vv_context *ctx);

#endif
