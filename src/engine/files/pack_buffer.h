/* A stretch of bytes of one kind and one file (several, if they are small), gathered from as many places of it as need be, and cut into chunks: of one size where the bytes are typed,
 * by their content where nothing is known of them. */
#ifndef VV_ENGINE_FILES_PACK_BUFFER_H
#define VV_ENGINE_FILES_PACK_BUFFER_H

#include "base/err.h"
#include "core/format/digest.h"
#include "engine/files/file_set.h"

struct vv_pack_buffer_part { /* where its bytes come from */
	uint32_t file;
	uint64_t at;
	size_t len;
};

enum vv_pack_buffer_found {
	VV_PACK_BUFFER_NEW,
	VV_PACK_BUFFER_ZERO,      /* it need not be anywhere */
	VV_PACK_BUFFER_STORED,    /* by this rank: entry */
	VV_PACK_BUFFER_ELSEWHERE, /* by another: layer, pos */
	VV_PACK_BUFFER_PENDING,    /* the same, in this very round: pos is what to await (engine/files/rank_dedup_rounds.h) */
};

struct vv_pack_buffer_chunk {
	struct vv_digest digest;
	uint32_t len;
	uint8_t found;        /* ZERO or not by the task; the rest by engine/files/pack_pipeline.c */
	bool claimed, shared; /* the other ranks were asked; and one of them stores it, in this epoch */
	uint32_t entry, claim;
	uint64_t layer, pos;
};

struct vv_pack_buffer {
	struct vv_task task; /* reads, cuts and hashes, a piece at a time, while it is in the cache */
	const struct vv_file_set *file_set;
	size_t chunk;        /* of what is not cut by its content */
	vv_digest_fn digest; /* NULL: chunks have none, and none is ZERO */
	struct vv_file_set_kind *kind;
	uint32_t file;       /* the last, if there are several */
	struct vv_pack_buffer_part *part;
	size_t n_parts, parts_cap;
	uint8_t *bytes;
	size_t len, cap;
	bool wide;           /* its memory is in large pages */
	size_t most;         /* bytes that its memory has held */
	struct vv_pack_buffer_chunk *chunks;
	size_t n_chunks, chunks_cap;
	bool asked;  /* the other ranks */
	int rc;      /* of the task */
	struct vv_err_state error;
};

static inline bool vv_pack_buffer_is_zero(const uint8_t *p, size_t n)
{
	return p[0] == 0 && (n == 1 || memcmp(p, p + 1, n - 1) == 0);
}

/* Room for cap bytes; wide: in large pages. */
int vv_pack_buffer_new(const struct vv_file_set *c, size_t chunk, vv_digest_fn digest, size_t cap, bool wide, struct vv_pack_buffer **out);
void vv_pack_buffer_free(struct vv_pack_buffer *s); /* NULL is fine */
/* What its memory has held beyond what it holds now is given back. */
void vv_pack_buffer_trim(struct vv_pack_buffer *s);
/* Its next part. There is room. */
int vv_pack_buffer_add(struct vv_pack_buffer *s, struct vv_pack_buffer_part x);

#endif
