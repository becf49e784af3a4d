/* Which pages of a region that is deduped in grains have been written, where the kernel can tell (track/scan.h): the others need not be looked at. */
#ifndef VV_ENGINE_GRAINS_WRITTEN_PAGES_H
#define VV_ENGINE_GRAINS_WRITTEN_PAGES_H

#include "engine/grains/grain_sets.h"

/* What was written since the last look: a bit per page of 4096 bytes of the region, for vv_span.maybe; NULL: all must be looked at. From
 * now on writes are noted anew. */
const uint64_t *vv_written_pages_collect(struct varve *v, struct vv_region *r);
/* A restart has filled it, and nobody has written since: is it watched from now on, its pages f->lo..f->hi? */
bool vv_written_pages_start(struct varve *v, struct vv_region *r);
/* Adds to f->maybe what has been written of its bytes at..end. Writes are noted as before. An error: some of it is not what it was. */
int vv_written_pages_peek(struct vv_region *r, uint64_t at, uint64_t end);
/* It is let go: before its memory goes, or is somebody else's to watch. */
void vv_written_pages_end(struct vv_fine *f);

#endif
