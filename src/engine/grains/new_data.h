/* The new data of an epoch that fine-grained dedup found (engine/grains/grain_sets.h): the data of
 * each set, then tails. They are handled like all new content. Their pages, which other ranks or
 * older epochs may also hold, come first in the layer's payload. */
#ifndef VV_ENGINE_GRAINS_NEW_DATA_H
#define VV_ENGINE_GRAINS_NEW_DATA_H

#include "engine/write/layer_writer.h"
#include "space/space.h"
#include <stdatomic.h>

enum { VV_NEW_DATA_PAGE = 4096, VV_NEW_DATA_BLOCK = 8 << 20 };

#define VV_NEW_DATA_TAG UINT32_MAX /* for engine/write/block_writer.h: not a tile */

/* Between epochs a thread may add and free blocks (vv_new_data_adjust). */
struct new_data_adjusting {
	pthread_mutex_t lock; /* of this, block and n_blocks */
	size_t wanted;        /* blocks to have between epochs, if memory permits */
	bool in_epoch;        /* an epoch uses the blocks: nobody else touches them */
	bool is_run;          /* by a thread; otherwise blocks are freed after each epoch */
	atomic_uint awaited;  /* calls of the program that wait for the lock, and restarts */
};

struct vv_new_data {
	const struct vv_space *space; /* the space of the blocks' memory, */
	int device;                   /* and one of its devices */
	/* Of VV_NEW_DATA_BLOCK bytes, used in turn and kept from epoch to epoch. */
	uint8_t **block;
	size_t n_blocks, blocks_cap;
	struct new_data_adjusting adjust;
	/* Blocks used in this epoch. */
	size_t used;
	/* Maximum number of blocks before data must be stored; 0: no limit. */
	size_t most;
	struct vv_layer_writer *writer;         /* of the epoch in progress */
	uint64_t len, asked;          /* bytes filled, and bytes reserved */
	/* A pseudo-region: only its length, chunks and their new states are valid. */
	struct vv_region pages;
	struct vv_digest *digest;     /* per page, once it is hashed */
	size_t pages_cap;
	size_t placed;                /* pages */
	pthread_mutex_t lock;         /* of in_blocks and broken */
	pthread_cond_t written;
	size_t in_blocks;             /* pages handed to the block writer and not yet written */
	bool broken;                  /* writing has failed */
	uint64_t recycled;                /* bytes whose room was used again */
	bool deduped;
	int failed;                   /* the error if there was no room */
};

void vv_new_data_init(struct vv_new_data *s, const struct varve *v);
void vv_new_data_fini(struct vv_new_data *s); /* frees the blocks, too */
/* Epochs of up to so many bytes are expected from this space. */
void vv_new_data_expect(struct vv_new_data *s, const struct vv_space *space, int device, uint64_t bytes);
/* Between epochs: makes or frees one block, if there are fewer or more than wanted. Any thread may
 * call it. Returns seconds until the next step; INFINITY: nothing is left to do. */
double vv_new_data_adjust(struct varve *v);
/* Between these calls no block is made or freed: a restart needs the link and the memory's
 * bandwidth. */
void vv_new_data_pause(struct varve *v);
void vv_new_data_resume(struct varve *v);
/* Empties it for a new epoch. space: the origin of the data. */
int vv_new_data_begin(struct vv_layer_writer *p, const struct vv_space *space, int device);
/* Returns contiguous room for the next bytes, at most `want`. Rooms must be filled in the order of
 * the calls. If too much data is not stored yet, stores it first. So a single-rank session need not
 * hold all new data. */
uint8_t *vv_new_data_room(struct vv_new_data *s, size_t want, size_t *got);
void vv_new_data_filled(struct vv_new_data *s, size_t len);
int vv_new_data_append(struct vv_new_data *s, const void *p, size_t len);

/* All data are complete. */
int vv_new_data_end(struct vv_new_data *s);
/* Discards the data after the first len bytes. Pages that are already stored stay, without
 * references. */
void vv_new_data_rewind(struct vv_new_data *s, uint64_t len);
/* Hashes all pages and drops known ones. If other ranks are asked, the rest becomes claims,
 * numbered from `first` on. */
int vv_new_data_drop_known(struct vv_layer_writer *p, uint64_t first);
/* Call it after the other ranks have been asked. */
void vv_new_data_after_exchange(struct vv_layer_writer *p);
/* Assigns the positions of the pages, from *pos on. */
void vv_new_data_assign_positions(struct vv_layer_writer *p, uint64_t *pos);
int vv_new_data_place(struct vv_layer_writer *p);
/* Called on the writing thread: `adds` more pages are written, or writing has failed. */
void vv_new_data_stored(struct vv_new_data *s, uint32_t adds);
void vv_new_data_fail(struct vv_new_data *s);
/* The epoch is stored or abandoned: its blocks may be freed. */
void vv_new_data_leave(struct varve *v);
/* The runs of the bytes at..end. out uses the same offsets. */
int vv_new_data_runs(const struct vv_layer_writer *p, uint64_t at, uint64_t end, struct vv_runs *out);

#endif
