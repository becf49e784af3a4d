/* The storing of an epoch's tiles, in three files: hash_tiles.c hashes and lets go what is stored already, ask_ranks.c asks the other ranks,
 * store_tiles.c places what is left. */
#ifndef VV_ENGINE_MEMORY_STORE_TILES_H
#define VV_ENGINE_MEMORY_STORE_TILES_H

#include "engine/write/rank_dedup.h"
#include "engine/memory/tiles.h"

enum { VV_STORE_TILES_RING = 256 }; /* tasks */

/* Digests of tiles that are hashed and not yet placed: places of one size, for a tile's chunks each. */
struct vv_digest_slots {
	struct vv_digest *v;
	size_t len;    /* of the mapping */
	size_t chunks; /* per place */
	uint32_t *free;
	size_t n_free;
};

struct vv_batch;

struct vv_store_tiles { /* one flush */
	struct vv_layer_writer *p;
	struct vv_tiles *t;
	struct vv_digest_slots digest_slots;
	struct vv_batch *ring[VV_STORE_TILES_RING];
	size_t size, begun, deduped; /* batches */
	size_t next;                /* in the tiles' queue: to be hashed */
	uint32_t *shared_tiles;             /* tiles that others refer to */
	size_t n_shared_tiles;
	int rc;                     /* of a claim that could not be made */
	uint8_t *unprotected_copy;             /* room for a group: a copy of what no fence protects, while it is placed */
};

/* engine/memory/store_tiles.c. */
int vv_store_tiles_begin(struct vv_layer_writer *p, bool all);
/* Places all content of the epoch into its layer, which is open. */
int vv_store_tiles_run(struct vv_store_tiles *w);
void vv_store_tiles_free(struct vv_layer_writer *p); /* waits for tasks in progress */

#endif
