/* Memory that the program has shut to writes (mprotect), opened for a while to be filled, and shut again as it was. */
#ifndef VV_TRACK_MAKE_WRITABLE_H
#define VV_TRACK_MAKE_WRITABLE_H

#include "track/memory.h"

struct vv_make_writable { /* starts as zeros */
	struct vv_make_writable_piece *v;
	size_t n, cap;
	unsigned entered; /* vv_write_protect_begin_syscall, so many times: by the thread that opens, which shuts, too */
};

/* Opens what cannot be written of the ranges, which it sorts and joins; until it is shut, fences around it stay open as well. If some of it cannot be opened,
 * nothing is: VV_EINVAL, and *bad is the first stretch of that. Not opened: what is not mapped; what is shared, for others see it. */
int vv_make_writable_begin(struct vv_make_writable *l, struct vv_memory_range *r, size_t n, struct vv_memory_range *bad);
/* All that was opened is as it was. Fails if the kernel refuses, and leaves open what cannot be shut. */
int vv_make_writable_end(struct vv_make_writable *l);

#endif
