/* The error for a region whose memory was unmapped, made unreadable, or freed on its device. */
#ifndef VV_ENGINE_LOST_MEMORY_H
#define VV_ENGINE_LOST_MEMORY_H

#include "engine/context.h"
#include "track/memory.h"

/* The message names the region and, if it can be found, the missing part. */
int vv_lost_memory_error(const struct vv_region *r);
/* Sorts n ranges and finds the first unreadable part of them. False: all are readable. */
bool vv_lost_memory_find(struct vv_memory_range *v, size_t n, uintptr_t *lo, uintptr_t *hi);
/* Was the region device memory that the device does not own any more? Reading it would end all work
 * of the program on that device. */
bool vv_lost_memory_on_device(const struct vv_region *r);

#endif
