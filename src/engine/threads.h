/* The threads that a session shares among its houses. */
#ifndef VV_ENGINE_THREADS_H
#define VV_ENGINE_THREADS_H

#include "engine/context.h"

/* Starts the session's pool unless it runs already. */
int vv_threads_start(struct vv_context *ctx);

#endif
