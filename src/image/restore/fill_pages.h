/* All absent pages of processes that do not run yet, brought on all cores. */
#ifndef VV_IMAGE_RESTORE_FILL_PAGES_H
#define VV_IMAGE_RESTORE_FILL_PAGES_H

#include "base/pool.h"
#include "image/restore/missing_pages.h"

/* Those that have no userfaultfd are passed over; afterwards all are forgotten. */
int vv_fill_pages_run(struct vv_missing_pages *m, size_t n, struct vv_pool *pool);

#endif
