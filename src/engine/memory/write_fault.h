/* A thread of the program writes to a write-protected page. */
#ifndef VV_ENGINE_MEMORY_WRITE_FAULT_H
#define VV_ENGINE_MEMORY_WRITE_FAULT_H

#include "engine/memory/tiles.h"

/* For the fence. */
void vv_write_fault_handle(void *session, uintptr_t page);
/* Under the lock: the program may write tiles first..last of the region, which are safe. False if the kernel refuses. */
bool vv_write_fault_unprotect(struct vv_tiles *t, struct vv_region *r, size_t first, size_t last);

#endif
