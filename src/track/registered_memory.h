/* Memory that is registered with a userfaultfd of this process. Registered pages and their neighbours are different mappings to the kernel, and mremap takes
 * only one mapping. So the registration is dropped before mremap; who scans or fences the pages next finds it gone, and registers them anew. */
#ifndef VV_TRACK_REGISTERED_MEMORY_H
#define VV_TRACK_REGISTERED_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For write protection. 0, with the ioctls that the memory takes in *ioctls; or an errno. */
int vv_registered_memory_add(int uffd, uintptr_t lo, uintptr_t hi, uint64_t *ioctls);
/* A range as it was added; memory that is gone already is fine. */
bool vv_registered_memory_remove(int uffd, uintptr_t lo, uintptr_t hi);
/* The descriptor is about to be closed. */
void vv_registered_memory_forget(int uffd);

/* [p, p+n) becomes one mapping again, if it was one. Nothing of it may be shut. */
void vv_registered_memory_release(const void *p, size_t n);

/* Around fork, with signals blocked. */
void vv_registered_memory_lock(void);
void vv_registered_memory_unlock(void);

#endif
