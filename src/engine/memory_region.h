/* A region: memory of the program that checkpoints hold. memory/ and grains/ keep their own data
 * about it behind pointers. */
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
	size_t number;    /* ascends in the list of the session's regions */
	uint8_t *p;
	struct vv_shape shape;
	void *owned;      /* memory of varve_alloc, or NULL */
	struct vv_distribution *part; /* core/format/distribution.h; NULL: a plain region */
	uint32_t parent;  /* 1 + its index in the parent epoch's layer, or 0 */
	bool adopted;     /* `was` holds the content of the parent epoch */
	bool restored;    /* a restart has read its content in the parent epoch */
	bool untracked;   /* varve_untrack */
	bool fresh;       /* everything is treated as written */
	uint32_t *was;    /* per chunk */
	uint32_t *now;    /* per chunk that the checkpoint in progress examines */
	size_t n_chunks;
	/* digests of a full and of the last chunk if all bytes are zero */
	struct vv_digest zero, zero_tail;
	struct vv_tracked *tracked; /* memory/tile_state.h; NULL before its division into tiles */

	bool refined;      /* varve_refine, with the next two */
	uint8_t method;
	uint32_t grain;
	/* grains/grain_sets.h; NULL: deduplicated in chunks. A region in grains has no chunks. */
	struct vv_fine *fine;
	const struct vv_space *space; /* of a region in grains: the owner of its memory, */
	int device;                   /* and on which device */
};

static inline size_t vv_region_chunk_len(const struct vv_region *r, size_t i)
{
	uint64_t left = r->shape.len - (uint64_t)i * r->shape.chunk;

	return left < r->shape.chunk ? (size_t)left : r->shape.chunk;
}

/* The digest of chunk i if all its bytes are zero. */
static inline const struct vv_digest *vv_region_zero(const struct vv_region *r, size_t i)
{
	return i + 1 == r->n_chunks ? &r->zero_tail : &r->zero;
}

#endif
