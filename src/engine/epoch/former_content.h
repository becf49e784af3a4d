/* The former content of the regions' chunks: what the parent epoch has of each. The caller holds the
 * session's lock. */
#ifndef VV_ENGINE_EPOCH_FORMER_CONTENT_H
#define VV_ENGINE_EPOCH_FORMER_CONTENT_H

#include "engine/context.h"

/* Finds it in the parent's table. */
void vv_former_content_adopt(struct varve *v);
/* Call it after a restart and before any change. Finds content that other ranks store by its
 * digests. */
int vv_former_content_adopt_foreign(struct varve *v);
/* Drops the index and the chunk states that depend on it. The next checkpoint reads the index
 * again. */
void vv_former_content_forget(struct varve *v);

#endif
