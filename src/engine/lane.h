/* A stretch of a layer's payload that is one extent, with digests of one size of chunk: where its bytes and digests are is a matter
 * of adding. Everything else of a layer is out of the cache by the time the next piece of it comes. */
#ifndef VV_ENGINE_LANE_H
#define VV_ENGINE_LANE_H

#include "engine/layerio.h"

struct vv_lane {
	uint64_t lo, hi; /* positions */
	const struct vv_block *block;
	uint64_t off;    /* of lo in the file, if the block is plain */
	const struct vv_digest *digest; /* of the chunk at `first`; NULL: none are known */
	uint64_t first;
	uint32_t chunk;
};

/* The one that holds pos; 0 if no block does. */
int vv_lane_find(const struct vv_layerio *f, uint64_t pos, struct vv_lane *out);

#endif
