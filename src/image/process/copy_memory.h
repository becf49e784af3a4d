/* Copies pages out of the memory of another process, on several cores. The caller decides whether
 * to stop the process first. */
#ifndef VV_IMAGE_PROCESS_COPY_MEMORY_H
#define VV_IMAGE_PROCESS_COPY_MEMORY_H

#include "base/pool.h"
#include <stdint.h>
#include <sys/types.h>

struct vv_copy_memory_piece {
	uint64_t addr;
	uint8_t *to;
	size_t n;
	bool missing; /* it could not be read completely */
};

struct vv_copy_memory {
	pid_t pid;
	/* In the order of the calls; a long range has several pieces. */
	struct vv_copy_memory_piece *v;
	size_t n, cap;
};

int vv_copy_memory_add(struct vv_copy_memory *l, uint64_t addr, uint8_t *to, size_t n);
/* Reads all pieces and returns the number of missing ones. */
size_t vv_copy_memory_run(struct vv_copy_memory *l, struct vv_pool *pool);
void vv_copy_memory_fini(struct vv_copy_memory *l);

#endif
