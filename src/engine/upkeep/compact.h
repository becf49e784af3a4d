/* Writes one layer again with fewer bytes: the part of gc that changes payloads. */
#ifndef VV_ENGINE_UPKEEP_COMPACT_H
#define VV_ENGINE_UPKEEP_COMPACT_H

#include "base/progress.h"
#include "engine/upkeep/reachable.h"

struct vv_compact_plan {
	uint64_t needed; /* approximate bytes of the layer with only its needed content */
	uint64_t size;   /* its bytes now */
};

int vv_compact_plan(const struct vv_lineage *lin, const struct vv_reachable_layer *l, struct vv_compact_plan *out);
enum { VV_COMPACT_LATER = 1 };

/* Replaces the layer's object in one step. *size: its expected length; gets its new length.
 * VV_COMPACT_LATER: it gave way to other work, and the layer is as it was. progress may be NULL. */
int vv_compact_layer(const struct vv_lineage *lin, const struct vv_reachable_layer *l, const struct vv_progress *progress, uint64_t *size);

#endif
