/* What fine-grained dedup found new in an epoch (engine/grains/grain_sets.h), one after another: the data of each set, then tails. From here on
 * it goes the way of all new content: in pages, which other ranks or older epochs may hold too, into the layer's payload, before anything else. */
#ifndef VV_ENGINE_STREAM_H
#define VV_ENGINE_STREAM_H

#include "engine/write/layer_writer.h"
#include "space/space.h"

enum { VV_STREAM_PAGE = 4096, VV_STREAM_BLOCK = 8 << 20 };

#define VV_STREAM_TAG UINT32_MAX /* for engine/write/block_writer.h: not a tile */

struct vv_stream {
	const struct vv_space *space; /* whose memory the blocks are */
	uint8_t **block;              /* of VV_STREAM_BLOCK bytes, used in turn; they are kept from epoch to epoch */
	size_t n_blocks, blocks_cap;
	size_t used;                  /* of them, in this epoch; what was not in the last one is given back */
	size_t most;                  /* blocks, before what is there must be stored; 0: no limit */
	struct vv_pass *pass;         /* of the epoch under way */
	uint64_t len, asked;          /* bytes that are there; and that room was given for */
	struct vv_region pages;       /* as a region of which only its length, chunks and what they hold now mean anything */
	struct vv_digest *digest;     /* per page, once they are sifted */
	size_t pages_cap;
	size_t placed;                /* pages */
	pthread_mutex_t lock;         /* of the next two */
	pthread_cond_t written;
	size_t in_blocks;             /* pages handed to the block writer and not written yet */
	bool broken;                  /* writing has failed */
	uint64_t gone;                /* bytes whose room has been used again */
	bool sifted;
	int failed;                   /* why there was no room */
};

void vv_stream_init(struct vv_stream *s, const struct varve *v);
void vv_stream_fini(struct vv_stream *s); /* its blocks go, too */
/* Empties it for a new epoch; `space`: that data will come from. */
int vv_stream_begin(struct vv_pass *p, const struct vv_space *space);
/* Room for the next bytes, contiguous, at most `want`; what is asked for is filled in the same order. If there is too much that is not
 * stored yet, that is done first: a session that is alone need not hold all that is new. */
uint8_t *vv_stream_room(struct vv_stream *s, size_t want, size_t *got);
void vv_stream_filled(struct vv_stream *s, size_t len);
int vv_stream_append(struct vv_stream *s, const void *p, size_t len);

/* All is there. */
int vv_stream_end(struct vv_stream *s);
/* What came after the first len bytes is given up; what is stored of it already stays, and nobody refers to it. */
void vv_stream_rewind(struct vv_stream *s, uint64_t len);
/* Hashes all pages and drops known ones. Where other ranks are asked, the rest becomes claims, numbered from `first` on. */
int vv_stream_sift(struct vv_pass *p, uint64_t first);
/* The others have been asked. */
void vv_stream_heard(struct vv_pass *p);
/* The positions that it will have, from *pos on. */
void vv_stream_promise(struct vv_pass *p, uint64_t *pos);
int vv_stream_place(struct vv_pass *p);
/* On the writing thread: `adds` more of its pages are written; or writing has failed. */
void vv_stream_stored(struct vv_stream *s, uint32_t adds);
void vv_stream_break(struct vv_stream *s);
/* Where bytes at..end came to lie; out: in the same offsets. */
int vv_stream_runs(const struct vv_pass *p, uint64_t at, uint64_t end, struct vv_runs *out);

#endif
