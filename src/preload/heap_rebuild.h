/* Makes the restored objects of a lane known to jemalloc, which allocates them again, each at
 * its address.
 *
 * An empty arena takes its memory from the beginning of its lane upwards. So everything is
 * allocated in the order of addresses. A large object is one allocation, a slab of small objects
 * has all its slots allocated, and free memory becomes objects of complete pages. Then the
 * allocations without a mark are freed. Nothing of this writes into the lane. */
#ifndef VV_PRELOAD_HEAP_REBUILD_H
#define VV_PRELOAD_HEAP_REBUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns whether the objects in these n bytes, by their marks, can be jemalloc's. */
bool vv_heap_rebuild_is_sound(uintptr_t lo, size_t n);
/* Rebuilds sound objects in an empty arena, whose memory will come from `lo` on. Their free pages
 * are returned to the kernel. */
int vv_heap_rebuild_lane(unsigned arena, uintptr_t lo, size_t n);

#endif
