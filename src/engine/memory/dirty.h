/* Finds written memory: by the kernel's record, by write faults, or by comparing digests. */
#ifndef VV_ENGINE_MEMORY_DIRTY_H
#define VV_ENGINE_MEMORY_DIRTY_H

#include "engine/memory/tiles.h"

/* Fills the dirty masks. *pages grows by the number of pages that were seen to be written. */
void vv_dirty_find(struct varve *v, uint64_t *pages);
/* Compares some groups that are reported as clean. A changed group is an error. */
int vv_dirty_audit(struct varve *v);
/* Is the write-protected part of the region still mapped and unchanged? */
bool vv_dirty_is_intact(struct varve *v, struct vv_region *r);
/* Is that unknown, because the program has closed the descriptors that watch or write-protect the
 * region? If so, an error is set. */
bool vv_dirty_lost_descriptor(struct varve *v, const struct vv_region *r);

#endif
