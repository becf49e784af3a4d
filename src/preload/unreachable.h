/* Objects that a restart brought back although nothing in the restored state points to them. Only
 * the stack, a register or a variable outside of the state did, and those are gone.
 *
 * An object of a later lane was allocated by an earlier run. This run cannot know its address from
 * anywhere but the restored memory. So the restored memory has all roots: objects of the start-up,
 * variables and named regions. An object counts as reachable if a plain pointer to any of its bytes
 * lies in the roots or in a reachable object. The pointer may begin at any byte. */
#ifndef VV_PRELOAD_UNREACHABLE_H
#define VV_PRELOAD_UNREACHABLE_H

#include "track/memory.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vv_unreachable {
	uint64_t objects, bytes;
	uint64_t heap; /* bytes of all objects in later lanes */
};

/* To be called after the content is restored and before vv_heap_run. The heap's own roots come in
 * addition to these n. free_them: the unreachable objects become free memory. If some root is not
 * readable, or memory for the search is missing, all objects count as reachable. */
void vv_unreachable_find(const struct vv_memory_range *root, size_t n, bool free_them, struct vv_unreachable *out);

#endif
