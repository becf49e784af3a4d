/* The objects of a lane, put back by a restart, are made known to jemalloc: it allocates them anew, each at its address.
 *
 * An empty arena takes its memory from the beginning of its lane upwards. So all is allocated in the order of addresses: a large object as one, a slab
 * of small objects with all its places, free memory as objects of whole pages. What the marks do not have is freed then. Nothing of this
 * writes into the lane. */
#ifndef VV_PRELOAD_HEAP_REBUILD_H
#define VV_PRELOAD_HEAP_REBUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Could the objects in these n bytes, by their marks, be jemalloc's? */
bool vv_heap_rebuild_is_sound(uintptr_t lo, size_t n);
/* They are sound, and the arena is an empty one whose memory will come from `lo` on. Their free pages go back to the kernel. */
int vv_heap_rebuild_lane(unsigned arena, uintptr_t lo, size_t n);

#endif
