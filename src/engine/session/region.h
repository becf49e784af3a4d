/* Regions: protecting memory, and knowledge of the parent epoch's content. The caller of these holds the session. */
#ifndef VV_ENGINE_SESSION_REGION_H
#define VV_ENGINE_SESSION_REGION_H

#include "engine/context.h"

/* Finds what the regions' chunks held in the parent's table. */
void vv_region_adopt_all(struct varve *v);
/* After a restart, before anything is changed: what other ranks hold of the regions is found by its digests. */
int vv_region_adopt_foreign(struct varve *v);
/* The index and what it says of the chunks are not to be trusted any more; the next checkpoint reads it anew. */
void vv_region_forget(struct varve *v);
void vv_region_free(struct vv_region *r);

#endif
