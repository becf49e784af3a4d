/* A slab: bytes of one kind and one file (several small files), gathered from any number of places
 * and cut into chunks. Typed bytes are cut at one size, untyped bytes by content. */
#ifndef VV_ENGINE_FILES_PACK_BUFFER_H
#define VV_ENGINE_FILES_PACK_BUFFER_H

#include "base/err.h"
#include "core/format/digest.h"
#include "engine/files/file_set.h"

struct vv_pack_buffer_part { /* a source of its bytes */
	uint32_t file;
	uint64_t at;
	size_t len;
};

enum vv_pack_buffer_found {
	VV_PACK_BUFFER_NEW,
	VV_PACK_BUFFER_ZERO,      /* need not be stored */
	VV_PACK_BUFFER_STORED,    /* by this rank: entry */
	VV_PACK_BUFFER_ELSEWHERE, /* by another rank: layer, pos */
	/* by another rank, in this round: pos is the number to await
	 * (engine/files/rank_dedup_rounds.h) */
	VV_PACK_BUFFER_PENDING,
};

struct vv_pack_buffer_chunk {
	struct vv_digest digest;
	uint32_t len;
	uint8_t found;        /* the task sets ZERO; engine/files/pack_pipeline.c sets the others */
	bool claimed, shared; /* the other ranks were asked; one of them stores it, in this epoch */
	uint32_t entry, claim;
	uint64_t layer, pos;
};

struct vv_pack_buffer {
	/* reads, cuts and hashes piece by piece, while a piece is in the cache */
	struct vv_task task;
	const struct vv_file_set *file_set;
	size_t chunk;        /* length of chunks that are not cut by content */
	vv_digest_fn digest; /* NULL: chunks have no digest, and none is ZERO */
	struct vv_file_set_kind *kind;
	uint32_t file;       /* the last file, if there are several */
	struct vv_pack_buffer_part *part;
	size_t n_parts, parts_cap;
	uint8_t *bytes;
	size_t len, cap;
	bool wide;           /* its memory uses large pages */
	size_t most;         /* the most bytes that its memory has held */
	struct vv_pack_buffer_chunk *chunks;
	size_t n_chunks, chunks_cap;
	bool asked;  /* the other ranks were asked */
	int rc;      /* of the task */
	struct vv_err_state error;
};

static inline bool vv_pack_buffer_is_zero(const uint8_t *p, size_t n)
{
	return p[0] == 0 && (n == 1 || memcmp(p, p + 1, n - 1) == 0);
}

/* Room for cap bytes; wide: in large pages. */
int vv_pack_buffer_new(const struct vv_file_set *c, size_t chunk, vv_digest_fn digest, size_t cap, bool wide, struct vv_pack_buffer **out);
void vv_pack_buffer_free(struct vv_pack_buffer *s); /* NULL is allowed */
/* Returns memory beyond its present content to the kernel. */
void vv_pack_buffer_trim(struct vv_pack_buffer *s);
/* Adds a part. The caller has checked that there is room. */
int vv_pack_buffer_add(struct vv_pack_buffer *s, struct vv_pack_buffer_part x);

#endif
