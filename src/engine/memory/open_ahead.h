/* Copies tiles and removes their write protection before the program reaches them. */
#ifndef VV_ENGINE_MEMORY_OPEN_AHEAD_H
#define VV_ENGINE_MEMORY_OPEN_AHEAD_H

#include "engine/memory/tiles.h"

/* Under the lock, before a checkpoint: is the order of writes to be learned anew? */
void vv_open_ahead_check_order(struct vv_tiles *t);
/* Under the lock: a first write to the tile was seen; safe: it could be let through at once. */
void vv_open_ahead_note_write(struct vv_tiles *t, size_t tile, bool safe);
/* Copies and opens what comes next. */
void vv_open_ahead_step(struct vv_tiles *t);
/* Under the lock, when all is stored: what was not opened is taken to be written where it was expected. */
void vv_open_ahead_end(struct vv_tiles *t);

#endif
