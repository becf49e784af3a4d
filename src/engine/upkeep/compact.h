/* One layer written again with less in it: the part of gc that touches payloads. */
#ifndef VV_ENGINE_UPKEEP_COMPACT_H
#define VV_ENGINE_UPKEEP_COMPACT_H

#include "engine/upkeep/reachable.h"

struct vv_compact_plan {
	uint64_t needed; /* bytes the layer would have with nothing but what is needed, about */
	bool worth;      /* is it that much smaller? */
};

int vv_compact_plan(const struct vv_lineage *lin, const struct vv_reachable_layer *l, struct vv_compact_plan *out);
/* Replaces the layer's object in one step; *size gets its new length. */
int vv_compact_layer(const struct vv_lineage *lin, const struct vv_reachable_layer *l, uint64_t *size);

#endif
