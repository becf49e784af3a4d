/* The bases of a layer's delta blocks: bytes of older layers of the same rank that a block is a
 * difference to. A base lies in blocks that have none themselves. docs/format.md, section 4, kind
 * 11. */
#ifndef VV_CORE_FORMAT_DELTA_BASES_H
#define VV_CORE_FORMAT_DELTA_BASES_H

#include "base/wire.h"

enum {
	VV_DELTA_BASES_EXTENTS = 64, /* of a block, at most */
	/* they are not longer than so many times the block, and so many bytes */
	VV_DELTA_BASES_TIMES = 4,
	VV_DELTA_BASES_MORE = 4 << 20,
};

struct vv_delta_base {
	uint64_t epoch; /* of the layer; 0: bytes of zero */
	uint64_t pos;   /* in its payload */
	uint64_t len;
};

struct vv_delta_bases { /* all zero is none */
	struct vv_delta_base *v; /* of all blocks, in order */
	size_t n, cap;
	struct vv_delta_bases_block {
		size_t block; /* number in BLOCKS; ascending */
		size_t first, n;
	} *block;
	size_t n_blocks, blocks_cap;
};

struct vv_blocks;

void vv_delta_bases_fini(struct vv_delta_bases *b);
/* Adds the bases of a block; blocks come in order. */
int vv_delta_bases_add(struct vv_delta_bases *b, size_t block, const struct vv_delta_base *v, size_t n);
/* The bases of a block, *n of them; NULL if it has none. */
const struct vv_delta_base *vv_delta_bases_of(const struct vv_delta_bases *b, size_t block, size_t *n);
/* The bytes of n bases. */
uint64_t vv_delta_bases_sum(const struct vv_delta_base *v, size_t n);
void vv_delta_bases_put(const struct vv_delta_bases *b, struct vv_buf *out);
/* b must start empty. `codec` is the number of the codec whose blocks have bases, `epoch` that of
 * the layer. p may be NULL: there is no such section, and no block may need one. */
int vv_delta_bases_get(struct vv_delta_bases *b, const void *p, size_t n, const struct vv_blocks *blocks, uint32_t codec, uint64_t epoch);

#endif
