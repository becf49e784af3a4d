/* A stretch of a layer's payload that is one extent, with digests of one size of chunk: where its bytes and digests are is a matter
 * of adding. Everything else of a layer is out of the cache by the time the next piece of it comes. */
#ifndef VV_ENGINE_LINEAGE_PLAIN_EXTENT_H
#define VV_ENGINE_LINEAGE_PLAIN_EXTENT_H

#include "engine/lineage/layer_file.h"

struct vv_plain_extent {
	uint64_t lo, hi; /* positions */
	const struct vv_block *block;
	uint64_t off;    /* of lo in the file, if the block is plain */
	const struct vv_digest *digest; /* of the chunk at `first`; NULL: none are known */
	uint64_t first;
	uint32_t chunk;
};

/* The one that holds pos; 0 if no block does. */
int vv_plain_extent_find(const struct vv_layer_file *f, uint64_t pos, struct vv_plain_extent *out);

enum { VV_PLAIN_EXTENT_MAX = 1 << 30 }; /* bytes of a lane that is several: offsets in it fit 32 bits */

struct vv_plain_extents {
	struct vv_plain_extent *v;
	size_t n, cap;
};

/* All of a layer's, ascending; those that adding leads from one to the next are one, with its first block. Most layers are one lane then.
 * out starts empty. */
int vv_plain_extent_list(const struct vv_layer_file *f, struct vv_plain_extents *out);

#endif
