/* Reading into the memory of a space that checks and places by itself: the host only brings the stored chunks, whole and once for each stretch
 * of the region, and says what goes where. Each thread fills a room of its own, so that nobody waits for anybody but the link. */
#ifndef VV_ENGINE_FERRY_H
#define VV_ENGINE_FERRY_H

#include "core/payload.h"
#include "engine/restore.h"
#include "space/space.h"

struct vv_ferry_way {
	const struct vv_space *space;
	int device;
	uint64_t memory; /* of the device, that may be used */
};

/* What is left of the want, offsets in the region, is for the host to read, check and copy: what is coded, what has no digests that the space knows, and
 * what turned out not to be what its digests say. It begins empty. */
int vv_ferry_read(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_ferry_way *way, const struct vv_want *want,
		  struct vv_extents *left);

#endif
