/* Regions: protecting memory, and the known content of the parent epoch. The caller holds the
 * session's lock. */
#ifndef VV_ENGINE_SESSION_REGION_H
#define VV_ENGINE_SESSION_REGION_H

#include "engine/context.h"

/* Finds the previous content of the regions' chunks in the parent's table. */
void vv_region_adopt_all(struct varve *v);
/* Call it after a restart and before any change. Finds content that other ranks store by its
 * digests. */
int vv_region_adopt_foreign(struct varve *v);
/* Drops the index and the chunk states that depend on it. The next checkpoint reads the index
 * again. */
void vv_region_forget(struct varve *v);
void vv_region_free(struct vv_region *r);

#endif
