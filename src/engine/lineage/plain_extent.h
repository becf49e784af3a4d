/* A range of a layer's payload in one extent, with digests of one chunk size. So the positions of
 * its bytes and digests follow by addition. The other data of a layer would be out of the cache by
 * the time of its next piece. */
#ifndef VV_ENGINE_LINEAGE_PLAIN_EXTENT_H
#define VV_ENGINE_LINEAGE_PLAIN_EXTENT_H

#include "engine/lineage/layer_file.h"

struct vv_plain_extent {
	uint64_t lo, hi; /* positions */
	const struct vv_block *block;
	uint64_t off;    /* of lo in the file, if the block is plain */
	const struct vv_digest *digest; /* of the chunk at `first`; NULL: none */
	uint64_t first;
	uint32_t chunk;
};

/* Finds the extent that holds pos. Returns 1, or 0 if no block holds pos. */
int vv_plain_extent_find(const struct vv_layer_file *f, uint64_t pos, struct vv_plain_extent *out);

/* Bytes of a joined extent: offsets in it fit 32 bits. */
enum { VV_PLAIN_EXTENT_MAX = 1 << 30 };

struct vv_plain_extents {
	struct vv_plain_extent *v;
	size_t n, cap;
};

/* Lists all extents of a layer, ascending. Adjacent extents are joined, with the block of the
 * first. Most layers then have one extent. out starts empty. */
int vv_plain_extent_list(const struct vv_layer_file *f, struct vv_plain_extents *out);

#endif
