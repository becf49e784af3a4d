/* The content that the parent epoch has of each chunk of the regions. */
#ifndef VV_ENGINE_EPOCH_PARENT_CHUNKS_H
#define VV_ENGINE_EPOCH_PARENT_CHUNKS_H

#include "engine/context.h"

/* Under the session's lock. Finds it in the parent's table. */
void vv_parent_chunks_adopt(struct varve *v);
/* Under the session's lock, after a restart and before any change. Finds content that other ranks
 * store by its digests. */
int vv_parent_chunks_adopt_foreign(struct varve *v);
/* Drops the index and the chunk states that depend on it. The next checkpoint reads the index
 * again. Called by a call of the session or by the background thread, which then have the regions
 * to themselves. */
void vv_parent_chunks_forget(struct varve *v);

#endif
