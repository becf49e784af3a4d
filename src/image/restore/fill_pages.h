/* All absent pages of processes that do not run yet, brought on all cores. */
#ifndef VV_IMAGE_FILL_H
#define VV_IMAGE_FILL_H

#include "base/pool.h"
#include "image/restore/missing_pages.h"

/* Those that have no userfaultfd are passed over; afterwards all are forgotten. */
int vv_fill_run(struct vv_absent *m, size_t n, struct vv_pool *pool);

#endif
