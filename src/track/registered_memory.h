/* Memory that is registered with a userfaultfd of this process. To the kernel, registered pages and
 * their neighbours are different mappings, and mremap accepts only one mapping. So the registration
 * is dropped before mremap. The next scan or write protection finds it missing and registers the
 * pages again. */
#ifndef VV_TRACK_REGISTERED_MEMORY_H
#define VV_TRACK_REGISTERED_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Registers memory for write protection. Returns 0 or an errno. *ioctls: the ioctls that the memory
 * supports. */
int vv_registered_memory_add(int uffd, uintptr_t lo, uintptr_t hi, uint64_t *ioctls);
/* The range must be one that was added. Unmapped memory is allowed. */
bool vv_registered_memory_remove(int uffd, uintptr_t lo, uintptr_t hi);
/* Call it before the descriptor is closed. */
void vv_registered_memory_forget(int uffd);

/* [p, p+n) becomes one mapping again, if it was one before. No page of it may be
 * write-protected. */
void vv_registered_memory_release(const void *p, size_t n);

/* Around fork, with signals blocked. */
void vv_registered_memory_lock(void);
void vv_registered_memory_unlock(void);

#endif
