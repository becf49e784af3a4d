/* The regions of all ranks, with their distributions: as an epoch has them, or as the ranks have
 * declared them now. */
#ifndef VV_ENGINE_RANKS_RANK_PARTS_H
#define VV_ENGINE_RANKS_RANK_PARTS_H

#include "core/format/distribution.h"
#include "engine/context.h"

struct vv_rank_regions {
	struct vv_head head; /* without runs */
	const struct vv_head_region **by_name; /* those of one array are neighbours */
};

struct vv_rank_parts {
	uint32_t ranks;
	struct vv_rank_regions *rank;
};

/* All ranks call this. Each reads some of the heads, and sends them to all. ranks: those of the
 * epoch. Without a group, one rank reads all of them. */
int vv_rank_parts_of_epoch(struct vv_context *ctx, int rc, uint64_t epoch, uint32_t ranks, struct vv_rank_parts *out);
/* The n regions of this session, on all its ranks. */
int vv_rank_parts_declared(const struct vv_context *ctx, struct vv_region *const *region, size_t n, struct vv_rank_parts *out);
void vv_rank_parts_fini(struct vv_rank_parts *p);
/* The region with that name, or NULL. */
const struct vv_head_region *vv_rank_parts_region(const struct vv_rank_regions *r, const char *name);
/* The regions whose names are equal to this one up to the first '#', and their number. */
size_t vv_rank_parts_array(const struct vv_rank_regions *r, const char *name, const struct vv_head_region *const **out);

#endif
