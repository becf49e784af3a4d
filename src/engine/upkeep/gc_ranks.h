/* Needs and retention where ranks have stores of their own. Every storage node drops the same
 * epochs. Space is freed on all together, since only all ranks together know the needs. */
#ifndef VV_ENGINE_UPKEEP_GC_RANKS_H
#define VV_ENGINE_UPKEEP_GC_RANKS_H

#include "engine/upkeep/gc.h"
#include "engine/context.h"

/* Called by all ranks, while no epoch is in progress. Layers of epochs up to `floor` stay. *out is
 * the report of this storage node, for its leader. */
int vv_gc_ranks_gc(struct vv_context *ctx, uint64_t floor, struct vv_gc_report *out);
/* Called by all ranks, in the background. For the leader of a storage node: the layers there that
 * the epoch needs, for whatever rank. The other ranks get none. */
int vv_gc_ranks_needs(struct vv_context *ctx, uint64_t epoch, struct vv_reachable *out);

#endif
