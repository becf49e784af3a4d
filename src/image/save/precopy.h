/* The memory of processes, copied while they run, before they are frozen; and what of the copy still holds once they are. As live migration does, in one round.
 * Private memory of no file counts, which is nearly all of it; the kernel marks its pages (track/marks.h) before they are copied. Nothing of it is left in a
 * process when this is closed, or we are killed. */
#ifndef VV_IMAGE_SAVE_PRECOPY_H
#define VV_IMAGE_SAVE_PRECOPY_H

#include "base/pool.h"
#include <stdint.h>
#include <sys/types.h>

struct vv_precopy_span { /* of a copy */
	uint64_t lo, hi; /* addresses */
	size_t from;     /* of lo, in the room that was given */
	bool is_unchanged;      /* nobody has written there since */
};

struct vv_precopy_process { /* a process */
	pid_t pid;
	int uffd;
	struct vv_precopy_span *span; /* ascending */
	size_t n, cap;
	size_t from, len; /* its part of the room */
};

struct vv_precopy {
	struct vv_precopy_process *process;
	size_t n, cap;
	double stopped_s; /* how long one of them had to stand still for it, at most */
	char why[200];    /* not, or not all of them; empty: all */
};

/* A process and all below it, as far as that can be done and there is room; *used becomes how much of it was taken. */
void vv_precopy_run(struct vv_precopy *p, pid_t root, struct vv_pool *pool, uint8_t *room, size_t n, size_t *used);
/* This one stands still now: which spans hold. NULL: there is none, or too little holds to be of use: it is dropped, and its part of the room is *from,
 * *len. */
const struct vv_precopy_process *vv_precopy_check(struct vv_precopy *p, pid_t pid, size_t *from, size_t *len);
/* Its first span that ends behind the address; NULL: there is none. */
const struct vv_precopy_span *vv_precopy_find(const struct vv_precopy_process *one, uint64_t addr);
/* The room is somebody else's now: nothing holds any more. */
void vv_precopy_forget(struct vv_precopy *p);
/* The kernel marks nothing any more. */
void vv_precopy_disarm(struct vv_precopy *p);
void vv_precopy_close(struct vv_precopy *p);

#endif
