/* Which pages of a region that is deduped in grains have been written, where the kernel can tell (track/scan.h): the others need not be looked at. */
#ifndef VV_ENGINE_WATCH_H
#define VV_ENGINE_WATCH_H

#include "engine/grains.h"

/* What was written since the last look: a bit per page of 4096 bytes of the region, for vv_span.maybe; NULL: all must be looked at. From
 * now on writes are noted anew. */
const uint64_t *vv_watch_look(struct varve *v, struct vv_region *r);
/* It is let go: before its memory goes, or is somebody else's to watch. */
void vv_watch_end(struct vv_fine *f);

#endif
