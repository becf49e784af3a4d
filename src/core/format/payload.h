/* The payload of a layer: blocks of compressed bytes, and the digests of the chunks in them. Unlike
 * the head, the payload may be reduced by gc. docs/format.md, section 4, kinds 6 and 7. */
#ifndef VV_CORE_FORMAT_PAYLOAD_H
#define VV_CORE_FORMAT_PAYLOAD_H

#include "base/wire.h"
#include "core/format/delta_bases.h"
#include "core/format/digest.h"

enum { VV_MAX_BLOCK = 1 << 26, VV_MAX_STORED_BLOCK = 1 << 27 };

struct vv_extent { /* a range of payload positions */
	uint64_t pos;
	uint64_t len;
};

struct vv_extents {
	struct vv_extent *v;
	size_t n;
	size_t cap;
};

struct vv_block {
	uint64_t off; /* in the file; follows from the blocks before it */
	uint64_t check;
	uint32_t codec;
	uint32_t raw_len;
	uint32_t stored_len;
	uint32_t n_extents;
	size_t extent; /* the first of them in vv_blocks.extent */
};

struct vv_blocks {
	struct vv_block *v;
	size_t n;
	size_t cap;
	struct vv_extents extent; /* of all blocks, ascending */
	/* by extent, of blocks that were read: the bytes of its block before it; NULL: not known */
	uint32_t *before;
	struct vv_delta_bases bases; /* of blocks that are differences */
};

/* Adds a range at or after the end of the last one. With `join`, a range that touches the last one
 * is joined to it. */
int vv_payload_extent_add(struct vv_extents *e, uint64_t pos, uint64_t len, int join);
/* Index of the first extent that ends after pos. */
size_t vv_payload_extent_find(const struct vv_extents *e, uint64_t pos);
/* Are all of pos..pos+len in the extents (which may touch)? */
int vv_payload_extent_has(const struct vv_extents *e, uint64_t pos, uint64_t len);
void vv_payload_extents_fini(struct vv_extents *e);

void vv_payload_blocks_fini(struct vv_blocks *b);
/* Adds a block; its extents are those added to b->extent since the last block. */
int vv_payload_block_add(struct vv_blocks *b, uint32_t codec, uint32_t raw_len, uint32_t stored_len, uint64_t check);
/* The block that holds position pos; b->n if none does. */
size_t vv_payload_block_find(const struct vv_blocks *b, uint64_t pos);
/* The stored bytes of positions from..to, of blocks in the order of the payload. A block that is
 * only partly in the range contributes proportionally. */
uint64_t vv_payload_stored(const struct vv_blocks *b, uint64_t from, uint64_t to);
/* The extent of the last search, and the bytes of its block before it; starts as zeros. */
struct vv_payload_cursor {
	size_t block, extent;
	uint64_t before;
};
/* Moves the cursor to the extent that holds pos: usually the current one or its successor. Returns
 * 0 if no block holds pos. */
int vv_payload_locate(const struct vv_blocks *b, uint64_t pos, struct vv_payload_cursor *c);
/* The bytes at pos..pos+len in a decompressed block, or NULL if it does not hold all of them. */
const uint8_t *vv_payload_inside(const struct vv_blocks *b, size_t block, const uint8_t *raw, uint64_t pos, uint64_t len);
void vv_payload_put_blocks(const struct vv_blocks *b, struct vv_buf *out);
/* first_off: file offset of block 0. The last block must end at blocks_end. */
int vv_payload_get_blocks(struct vv_blocks *b, const void *p, size_t n, uint64_t payload, uint64_t first_off,
			  uint64_t blocks_end);

struct vv_digest_group {
	uint64_t pos;
	uint32_t chunk;
	uint64_t count;
	size_t digest; /* the first of them in vv_digests.v */
};

struct vv_digests {
	struct vv_digest_group *group;
	size_t n_groups;
	size_t groups_cap;
	struct vv_digest *v;
	size_t n;
	size_t cap;
	uint8_t *own; /* memory that contains v; NULL: v is allocated itself */
	bool lent;    /* v belongs to the caller and need not be aligned */
};

void vv_payload_digests_fini(struct vv_digests *d);
/* Adds the digest of the chunk at pos, which lies at or after the end of the last one. */
int vv_payload_digest_add(struct vv_digests *d, uint64_t pos, uint32_t chunk, const struct vv_digest *digest);
/* The same for a digest that the caller keeps, as number d->n of an array. The digests of d may not
 * be read or added to at first. They may be after the caller points v to the array and sets `lent`,
 * or after vv_payload_digests_keep has copied them. */
int vv_payload_digest_count(struct vv_digests *d, uint64_t pos, uint32_t chunk);
int vv_payload_digests_keep(struct vv_digests *d, const struct vv_digest *v);
/* The number of the group that holds pos, or of the first one after it; n_groups if there is
 * none. */
size_t vv_payload_digest_group(const struct vv_digests *d, uint64_t pos);
void vv_payload_put_digests(const struct vv_digests *d, struct vv_buf *out);
/* The same without the digests themselves, d->v, which follow. */
void vv_payload_put_groups(const struct vv_digests *d, struct vv_buf *out);
int vv_payload_get_digests(struct vv_digests *d, const void *p, size_t n, uint64_t payload);
/* The same for bytes in allocated memory, which d owns afterwards: *own becomes NULL on success.
 * Digests that end at a multiple of 8 stay in place, and none can be added. */
int vv_payload_take_digests(struct vv_digests *d, const void *p, size_t n, uint64_t payload, uint8_t **own);
/* The same, but the digests stay in p, which must outlive their use. */
int vv_payload_lend_digests(struct vv_digests *d, const void *p, size_t n, uint64_t payload);

#endif
