/* Retention where ranks have stores of their own: every place drops the same epochs, and space is taken back in all places together,
 * since only all ranks together know what is needed of each. */
#ifndef VV_ENGINE_UPKEEP_GC_RANKS_H
#define VV_ENGINE_UPKEEP_GC_RANKS_H

#include "engine/upkeep/gc.h"
#include "engine/context.h"

/* All ranks, while no epoch is in progress. Layers of epochs up to `floor` stay. *out is this place's, for its leader. */
int vv_gc_ranks_gc(struct vv_context *ctx, uint64_t floor, struct vv_gc_report *out);

#endif
