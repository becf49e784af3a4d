/* Lays the regions out in tiles: tile size, watchable pages, and the size of the copy buffer. */
#ifndef VV_ENGINE_MEMORY_LAYOUT_H
#define VV_ENGINE_MEMORY_LAYOUT_H

#include "engine/memory/tiles.h"

/* Lays the regions out again if they have changed since the last time. */
int vv_layout_run(struct varve *v);
void vv_layout_fini(struct varve *v);
/* Under the lock, with an empty buffer. Grants part of the buffer for copies. The rest is for the
 * other needs of an epoch that hashes so many chunks. */
void vv_layout_limit_copies(struct varve *v, size_t chunks);
/* If the buffer is empty, frees n bytes of its memory, or all, until they are needed again. */
void vv_layout_lend_buffer(struct varve *v, size_t n);
/* Called after an epoch. Chooses another tile size if needed. */
void vv_layout_choose_tile_size(struct varve *v, const struct varve_stats *st);

#endif
