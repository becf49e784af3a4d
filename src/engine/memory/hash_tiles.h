/* Hashes tiles ahead on the pool, and drops those with known content. */
#ifndef VV_ENGINE_MEMORY_HASH_TILES_H
#define VV_ENGINE_MEMORY_HASH_TILES_H

#include "engine/memory/store_tiles.h"

/* Bytes of digests that are ahead of what is placed, at most, for so much memory in chunks of this size. */
size_t vv_hash_tiles_memory(uint64_t memory, size_t chunk);
/* All: room for the digests of all tiles, so that all can be deduped before any is placed. */
int vv_hash_tiles_open(struct vv_store_tiles *w, bool all);
void vv_hash_tiles_close(struct vv_store_tiles *w); /* waits for every task that was begun */
/* Keeps the pool busy with what comes next. */
int vv_hash_tiles_feed(struct vv_store_tiles *w);
/* A step towards sifting the oldest batch: helps with hashing if it is not ready, waits if nothing else is to be done. */
int vv_hash_tiles_step(struct vv_store_tiles *w);
/* The tile is hashed and deduped. Its turn comes with its batch; one that somebody waits for is hashed at once. */
int vv_hash_tiles_tile(struct vv_store_tiles *w, size_t tile, bool urgent);
/* The two parts of it, for who keeps the digests of its dirty groups' chunks himself (engine/memory/early_hash.c). held: groups that are read from their copies. */
void vv_hash_tiles_hash(struct varve *v, size_t tile, uint64_t held, struct vv_digest *d);
/* The groups of a hashed tile that need not be stored; *rc: of a claim that could not be made. */
uint64_t vv_hash_tiles_find_known(struct vv_layer_writer *p, size_t tile, const struct vv_digest *d, int *rc);
/* Under the tiles' lock: hashing so many groups took so long, for engine/memory/dirty.c. */
void vv_hash_tiles_note_cost(struct vv_tiles *t, size_t groups, double seconds);
/* The digests of its dirty groups' chunks; until they are not needed any more. */
struct vv_digest *vv_hash_tiles_digests(const struct vv_store_tiles *w, size_t tile);
void vv_hash_tiles_release(struct vv_store_tiles *w, size_t tile);

#endif
