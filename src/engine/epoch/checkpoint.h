/* One checkpoint: prepare, capture, then store now or in the background. */
#ifndef VV_ENGINE_EPOCH_CHECKPOINT_H
#define VV_ENGINE_EPOCH_CHECKPOINT_H

#include "engine/context.h"

/* The caller holds the session's lock. */
int vv_checkpoint_run(struct varve *v);

#endif
