/* Finds written memory: by the kernel's record, by write faults, or by comparing digests. */
#ifndef VV_ENGINE_MEMORY_DIRTY_H
#define VV_ENGINE_MEMORY_DIRTY_H

#include "engine/memory/tiles.h"

/* Fills the dirty masks; pages that were seen to be written are counted. */
void vv_dirty_find(struct varve *v, uint64_t *pages);
/* Compares some groups that are said to be clean. A miss is an error. */
int vv_dirty_audit(struct varve *v);
/* Is what is shut of the region still there, unchanged? */
bool vv_dirty_is_intact(struct varve *v, struct vv_region *r);
/* Can that not be told, because the program has closed the descriptors by which the region is watched or write-protected? Then an error says so. */
bool vv_dirty_lost_descriptor(struct varve *v, const struct vv_region *r);

#endif
