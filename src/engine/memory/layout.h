/* Lays the regions out in tiles: tile size, watchable pages, and the size of the copy buffer. */
#ifndef VV_ENGINE_MEMORY_LAYOUT_H
#define VV_ENGINE_MEMORY_LAYOUT_H

#include "engine/memory/tiles.h"

/* Lays the regions out anew if they have changed since the last time. */
int vv_layout_run(struct varve *v);
void vv_layout_fini(struct varve *v);
/* Under the lock, with nothing in the buffer: so much of it as leaves room for what an epoch needs that looks at so many chunks is for copies. */
void vv_layout_limit_copies(struct varve *v, size_t chunks);
/* If nothing is in the buffer, n bytes of its memory, or all, are for others until they are needed again. */
void vv_layout_lend_buffer(struct varve *v, size_t n);
/* After an epoch: are tiles of another size wanted? */
void vv_layout_choose_tile_size(struct varve *v, const struct varve_stats *st);

#endif
