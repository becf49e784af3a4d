/* Storing an epoch's tiles, in three files. First hash_tiles.c hashes tiles and drops known
 * content, ask_ranks.c asks the other ranks, and store_tiles.c places the rest. */
#ifndef VV_ENGINE_MEMORY_STORE_TILES_H
#define VV_ENGINE_MEMORY_STORE_TILES_H

#include "engine/write/rank_dedup.h"
#include "engine/memory/tiles.h"

enum { VV_STORE_TILES_RING = 256 }; /* tasks */

/* Digests of tiles that are hashed and not yet placed. Each slot holds the chunks of one tile. */
struct vv_digest_slots {
	struct vv_digest *v;
	size_t len;    /* of the mapping */
	size_t chunks; /* per slot */
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
	size_t next;                /* position in the tiles' queue of the next tile to be hashed */
	/* Unprotected tiles, if most are new, are copied before they are hashed. */
	bool copies;
	uint32_t *shared_tiles;             /* tiles that other ranks refer to */
	size_t n_shared_tiles;
	int rc;                     /* the error of a claim that could not be made */
	/* Room for one group: the copy of an unprotected group while it is placed. */
	uint8_t *unprotected_copy;
};

/* all: as for vv_hash_tiles_open. */
int vv_store_tiles_begin(struct vv_layer_writer *p, bool all);
/* Places all content of the epoch into its open layer. */
int vv_store_tiles_run(struct vv_store_tiles *w);
void vv_store_tiles_free(struct vv_layer_writer *p); /* waits for tasks in progress */

#endif
