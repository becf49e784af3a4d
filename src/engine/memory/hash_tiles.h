/* Hashes tiles on the pool before they are placed, and drops tiles with known content. */
#ifndef VV_ENGINE_MEMORY_HASH_TILES_H
#define VV_ENGINE_MEMORY_HASH_TILES_H

#include "engine/memory/store_tiles.h"

/* The maximum bytes of digests of chunks that are not placed yet, for so much memory in chunks of
 * this size. */
size_t vv_hash_tiles_memory(uint64_t memory, size_t chunk);
/* all: make room for the digests of all tiles, so that all can be deduped before any is placed. */
int vv_hash_tiles_open(struct vv_store_tiles *w, bool all);
void vv_hash_tiles_close(struct vv_store_tiles *w); /* waits for all tasks */
/* Submits the next batches to the pool. */
int vv_hash_tiles_feed(struct vv_store_tiles *w);
/* One step towards deduping the oldest batch. Helps with hashing if the batch is not ready, or
 * waits if there is nothing else to do. */
int vv_hash_tiles_step(struct vv_store_tiles *w);
/* Ensures that the tile is hashed and deduped. An urgent tile is hashed at once, another one with
 * its batch. */
int vv_hash_tiles_tile(struct vv_store_tiles *w, size_t tile, bool urgent);
/* Hashes the chunks of the tile's dirty groups into d, which the caller provides (see also
 * engine/memory/early_hash.c). Groups in `held` are read from their copies. */
void vv_hash_tiles_hash(struct varve *v, size_t tile, uint64_t held, struct vv_digest *d);
/* Returns the groups of a hashed tile that need not be stored. *rc: the error of a claim that could
 * not be made. */
uint64_t vv_hash_tiles_find_known(struct vv_layer_writer *p, size_t tile, const struct vv_digest *d, int *rc);
/* Of the groups that a tile is to store, releases those that are known, with their copies. If all
 * are known, the tile is done. */
void vv_hash_tiles_drop(struct vv_store_tiles *w, size_t tile, uint64_t todo, uint64_t known);
/* Under the tiles' lock. Notes the processor time of hashing so many groups, for
 * engine/memory/dirty.c. */
void vv_hash_tiles_note_cost(struct vv_tiles *t, size_t groups, double seconds);
/* The digests of the chunks of its dirty groups. They are valid until vv_hash_tiles_release. */
struct vv_digest *vv_hash_tiles_digests(const struct vv_store_tiles *w, size_t tile);
void vv_hash_tiles_release(struct vv_store_tiles *w, size_t tile);

#endif
