/* Pages out of the memory of another process, on several cores. Whether it stands still is the caller's affair. */
#ifndef VV_IMAGE_PROCESS_COPY_MEMORY_H
#define VV_IMAGE_PROCESS_COPY_MEMORY_H

#include "base/pool.h"
#include <stdint.h>
#include <sys/types.h>

struct vv_copy_memory_piece {
	uint64_t addr;
	uint8_t *to;
	size_t n;
	bool missing; /* it could not be read, or not all of it */
};

struct vv_copy_memory {
	pid_t pid;
	struct vv_copy_memory_piece *v; /* as they were added, long ones in several pieces */
	size_t n, cap;
};

int vv_copy_memory_add(struct vv_copy_memory *l, uint64_t addr, uint8_t *to, size_t n);
/* Reads them all; the number of those that are missing. */
size_t vv_copy_memory_run(struct vv_copy_memory *l, struct vv_pool *pool);
void vv_copy_memory_fini(struct vv_copy_memory *l);

#endif
