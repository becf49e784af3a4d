/* Hashes tiles that do not fit the copy buffer at once: known content needs no write protection. */
#ifndef VV_ENGINE_MEMORY_EARLY_HASH_H
#define VV_ENGINE_MEMORY_EARLY_HASH_H

#include "engine/memory/tiles.h"

/* Under the lock, before anything is copied. Tiles that do not fit the buffer and hold nothing new
 * are done. */
int vv_early_hash_run(struct vv_layer_writer *p);

#endif
