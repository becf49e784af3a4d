/* Handles a program thread's write to a write-protected page. */
#ifndef VV_ENGINE_MEMORY_WRITE_FAULT_H
#define VV_ENGINE_MEMORY_WRITE_FAULT_H

#include "engine/memory/tiles.h"

/* The handler for vv_write_protect_new. Returns when the write may be repeated. */
void vv_write_fault_handle(void *session, uintptr_t page);
/* Under the lock. Removes the protection of tiles first..last, which must be safe. Returns false if
 * the kernel refuses. */
bool vv_write_fault_unprotect(struct vv_tiles *t, struct vv_region *r, size_t first, size_t last);

#endif
