/* A region: memory of the program that checkpoints hold. memory/ and grains/ keep their own knowledge of it behind pointers. */
#ifndef VV_ENGINE_MEMORY_REGION_H
#define VV_ENGINE_MEMORY_REGION_H

#include "core/format/digest.h"
#include "core/format/head.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <varve/varve.h>

struct vv_fine;
struct vv_space;
struct vv_tracked;

/* A chunk's content in the parent epoch: unknown, zeros, or entry number + FIRST of the index. */
enum { VV_CHUNK_UNKNOWN = 0, VV_CHUNK_ZERO = 1, VV_CHUNK_FIRST = 2 };

/* How a region's changes are found. */
enum vv_region_how { VV_BY_DIGEST, VV_BY_SCAN, VV_BY_WRITE_PROTECT };

struct vv_region {
	char *name;
	uint8_t *p;
	struct vv_shape shape;
	void *owned;      /* memory of varve_alloc, or NULL */
	uint32_t parent;  /* 1 + its index in the parent epoch's layer, or 0 */
	bool adopted;     /* `was` says what the parent epoch holds */
	bool restored;    /* a restart has read the parent epoch's content of it */
	bool untracked;   /* varve_untrack */
	bool fresh;       /* everything counts as written */
	uint32_t *was;    /* per chunk */
	uint32_t *now;    /* per chunk that the checkpoint in progress looks at */
	size_t n_chunks;
	struct vv_digest zero, zero_tail; /* digests of a whole and of the last chunk, if they are zero */
	struct vv_tracked *tracked;       /* memory/tile_state.h; NULL before it is laid out in tiles */

	bool refined;      /* varve_refine, with the next two */
	uint8_t method;
	uint32_t grain;
	struct vv_fine *fine; /* grains/grain_sets.h; NULL: it is deduped in chunks. A region in grains has no chunks. */
	const struct vv_space *space; /* of a region in grains: whose memory it is, */
	int device;                   /* and on which device */
};

static inline size_t vv_region_chunk_len(const struct vv_region *r, size_t i)
{
	uint64_t left = r->shape.len - (uint64_t)i * r->shape.chunk;

	return left < r->shape.chunk ? (size_t)left : r->shape.chunk;
}

/* The digest of the chunk if it is all zero. */
static inline const struct vv_digest *vv_region_zero(const struct vv_region *r, size_t i)
{
	return i + 1 == r->n_chunks ? &r->zero_tail : &r->zero;
}

#endif
