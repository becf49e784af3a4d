/* The error for a region whose memory has gone: unmapped, unreadable, or freed on its device. */
#ifndef VV_ENGINE_LOST_MEMORY_H
#define VV_ENGINE_LOST_MEMORY_H

#include "engine/context.h"
#include "track/memory.h"

/* Names the region and, where it can be found, the part that is not there. */
int vv_lost_memory_error(const struct vv_region *r);
/* The first part of n ranges, which are sorted here, that cannot be read. False: all of them can. */
bool vv_lost_memory_find(struct vv_memory_range *v, size_t n, uintptr_t *lo, uintptr_t *hi);
/* The region was device memory, and the device does not own it any more. Reading it would end all work of the program there. */
bool vv_lost_memory_on_device(const struct vv_region *r);

#endif
