/* Copies tiles and removes their write protection before the program reaches them. */
#ifndef VV_ENGINE_MEMORY_OPEN_AHEAD_H
#define VV_ENGINE_MEMORY_OPEN_AHEAD_H

#include "engine/memory/tiles.h"

/* Under the lock, before a checkpoint. Decides whether the order of writes must be learned
 * again. */
void vv_open_ahead_check_order(struct vv_tiles *t);
/* Under the lock. Notes a first write to the tile. safe: the write could continue at once. */
void vv_open_ahead_note_write(struct vv_tiles *t, size_t tile, bool safe);
/* Copies and unprotects the next tiles. */
void vv_open_ahead_step(struct vv_tiles *t);
/* Under the lock, after everything is stored. Tiles that are still protected are assumed to be
 * written at their expected positions. */
void vv_open_ahead_end(struct vv_tiles *t);

#endif
