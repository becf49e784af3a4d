/* Makes memory that the program has made read-only (mprotect) writable for a while, and restores
 * its rights. */
#ifndef VV_TRACK_MAKE_WRITABLE_H
#define VV_TRACK_MAKE_WRITABLE_H

#include "track/memory.h"

struct vv_make_writable { /* starts as zeros */
	struct vv_make_writable_piece *v;
	size_t n, cap;
	/* Calls of vv_write_protect_begin_syscall: begin and end must run on the same thread. */
	unsigned entered;
};

/* Makes the read-only parts of the ranges writable. Sorts and joins the ranges. Until
 * vv_make_writable_end, write protection for checkpoints is off there as well. If some part cannot
 * be made writable, nothing is changed. Then the result is VV_EINVAL, and *bad is the first such
 * part. Unmapped memory is refused, and so is shared memory, since other processes see it. */
int vv_make_writable_begin(struct vv_make_writable *l, struct vv_memory_range *r, size_t n, struct vv_memory_range *bad);
/* Restores the rights of all parts. Fails if the kernel refuses, and leaves such parts writable. */
int vv_make_writable_end(struct vv_make_writable *l);

#endif
