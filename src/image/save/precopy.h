/* Copies the memory of processes before they are frozen, and finds the unchanged pages afterwards.
 * That is live migration with one round. It covers private anonymous memory, which is nearly all
 * memory; the kernel marks its pages (track/marks.h) before the copy. The processes are left
 * unchanged when this is closed, or we are killed. */
#ifndef VV_IMAGE_SAVE_PRECOPY_H
#define VV_IMAGE_SAVE_PRECOPY_H

#include "base/pool.h"
#include <stdint.h>
#include <sys/types.h>

struct vv_precopy_span { /* a range of a copy */
	uint64_t lo, hi; /* addresses */
	size_t from;     /* position of lo in the given buffer */
	bool is_unchanged;      /* not written since the copy */
};

struct vv_precopy_process {
	pid_t pid;
	int uffd;
	struct vv_precopy_span *span; /* ascending */
	size_t n, cap;
	size_t from, len; /* its part of the buffer */
};

struct vv_precopy {
	struct vv_precopy_process *process;
	size_t n, cap;
	double stopped_s; /* longest stop of a process */
	char why[200];    /* reason why some processes were not copied; empty: all were */
};

/* Copies a process and its descendants, as far as possible and as the buffer has room. The number
 * of used bytes of the buffer goes to *used. */
void vv_precopy_run(struct vv_precopy *p, pid_t root, struct vv_pool *pool, uint8_t *room, size_t n, size_t *used);
/* For a frozen process: updates is_unchanged of its spans. Returns NULL if there is no copy or
 * too little of it is unchanged. Then the copy is dropped, and *from, *len is its part of the
 * buffer. */
const struct vv_precopy_process *vv_precopy_check(struct vv_precopy *p, pid_t pid, size_t *from, size_t *len);
/* Returns its first span that ends behind the address, or NULL. */
const struct vv_precopy_span *vv_precopy_find(const struct vv_precopy_process *one, uint64_t addr);
/* The buffer is reused: all copies become invalid. */
void vv_precopy_forget(struct vv_precopy *p);
/* Stops the kernel's marking. */
void vv_precopy_disarm(struct vv_precopy *p);
void vv_precopy_close(struct vv_precopy *p);

#endif
