/* Pages out of the memory of another process, on several cores. Whether it stands still is the caller's affair. */
#ifndef VV_IMAGE_LIFT_H
#define VV_IMAGE_LIFT_H

#include "base/pool.h"
#include <stdint.h>
#include <sys/types.h>

struct vv_lift_piece {
	uint64_t addr;
	uint8_t *to;
	size_t n;
	bool missing; /* it could not be read, or not all of it */
};

struct vv_lift {
	pid_t pid;
	struct vv_lift_piece *v; /* as they were added, long ones in several pieces */
	size_t n, cap;
};

int vv_lift_add(struct vv_lift *l, uint64_t addr, uint8_t *to, size_t n);
/* Reads them all; the number of those that are missing. */
size_t vv_lift_run(struct vv_lift *l, struct vv_pool *pool);
void vv_lift_fini(struct vv_lift *l);

#endif
