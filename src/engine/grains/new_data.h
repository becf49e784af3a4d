/* What fine-grained dedup found new in an epoch (engine/grains/grain_sets.h), one after another: the data of each set, then tails. From here on
 * it goes the way of all new content: in pages, which other ranks or older epochs may hold too, into the layer's payload, before anything else. */
#ifndef VV_ENGINE_GRAINS_NEW_DATA_H
#define VV_ENGINE_GRAINS_NEW_DATA_H

#include "engine/write/layer_writer.h"
#include "space/space.h"

enum { VV_NEW_DATA_PAGE = 4096, VV_NEW_DATA_BLOCK = 8 << 20 };

#define VV_NEW_DATA_TAG UINT32_MAX /* for engine/write/block_writer.h: not a tile */

struct vv_new_data {
	const struct vv_space *space; /* whose memory the blocks are */
	uint8_t **block;              /* of VV_NEW_DATA_BLOCK bytes, used in turn; they are kept from epoch to epoch */
	size_t n_blocks, blocks_cap;
	size_t used;                  /* of them, in this epoch; what was not in the last one is given back */
	size_t most;                  /* blocks, before what is there must be stored; 0: no limit */
	struct vv_layer_writer *writer;         /* of the epoch under way */
	uint64_t len, asked;          /* bytes that are there; and that room was given for */
	struct vv_region pages;       /* as a region of which only its length, chunks and what they hold now mean anything */
	struct vv_digest *digest;     /* per page, once they are deduped */
	size_t pages_cap;
	size_t placed;                /* pages */
	pthread_mutex_t lock;         /* of the next two */
	pthread_cond_t written;
	size_t in_blocks;             /* pages handed to the block writer and not written yet */
	bool broken;                  /* writing has failed */
	uint64_t recycled;                /* bytes whose room has been used again */
	bool deduped;
	int failed;                   /* why there was no room */
};

void vv_new_data_init(struct vv_new_data *s, const struct varve *v);
void vv_new_data_fini(struct vv_new_data *s); /* its blocks go, too */
/* Empties it for a new epoch; `space`: that data will come from. */
int vv_new_data_begin(struct vv_layer_writer *p, const struct vv_space *space);
/* Room for the next bytes, contiguous, at most `want`; what is asked for is filled in the same order. If there is too much that is not
 * stored yet, that is done first: a session that is alone need not hold all that is new. */
uint8_t *vv_new_data_room(struct vv_new_data *s, size_t want, size_t *got);
void vv_new_data_filled(struct vv_new_data *s, size_t len);
int vv_new_data_append(struct vv_new_data *s, const void *p, size_t len);

/* All is there. */
int vv_new_data_end(struct vv_new_data *s);
/* What came after the first len bytes is given up; what is stored of it already stays, and nobody refers to it. */
void vv_new_data_rewind(struct vv_new_data *s, uint64_t len);
/* Hashes all pages and drops known ones. Where other ranks are asked, the rest becomes claims, numbered from `first` on. */
int vv_new_data_drop_known(struct vv_layer_writer *p, uint64_t first);
/* The others have been asked. */
void vv_new_data_after_exchange(struct vv_layer_writer *p);
/* The positions that it will have, from *pos on. */
void vv_new_data_assign_positions(struct vv_layer_writer *p, uint64_t *pos);
int vv_new_data_place(struct vv_layer_writer *p);
/* On the writing thread: `adds` more of its pages are written; or writing has failed. */
void vv_new_data_stored(struct vv_new_data *s, uint32_t adds);
void vv_new_data_fail(struct vv_new_data *s);
/* Where bytes at..end came to lie; out: in the same offsets. */
int vv_new_data_runs(const struct vv_layer_writer *p, uint64_t at, uint64_t end, struct vv_runs *out);

#endif
