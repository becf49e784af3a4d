/* The written pages of a region with fine-grained dedup, if the kernel can report them
 * (track/scan.h). Other pages need not be hashed. */
#ifndef VV_ENGINE_GRAINS_WRITTEN_PAGES_H
#define VV_ENGINE_GRAINS_WRITTEN_PAGES_H

#include "engine/grains/grain_sets.h"

/* The pages written since the last call: a bit per 4096 bytes of the region, for vv_span.maybe.
 * NULL: all must be hashed. From now on writes are recorded again. */
const uint64_t *vv_written_pages_collect(struct varve *v, struct vv_region *r);
/* A restart has filled the region, and it was not written since. Starts to watch its pages
 * f->lo..f->hi. Returns true if they are watched. */
bool vv_written_pages_start(struct varve *v, struct vv_region *r);
/* Adds the written pages of its bytes at..end to f->maybe. Recording continues. Returns an error if
 * some of its memory was replaced. */
int vv_written_pages_peek(struct vv_region *r, uint64_t at, uint64_t end);
/* Stops watching. Call it before the memory is freed or watched by another unit. */
void vv_written_pages_end(struct vv_fine *f);

#endif
