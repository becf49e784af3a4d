/* Loads all missing pages of processes that do not run yet, on all cores. */
#ifndef VV_IMAGE_RESTORE_FILL_PAGES_H
#define VV_IMAGE_RESTORE_FILL_PAGES_H

#include "base/pool.h"
#include "image/restore/missing_pages.h"

/* Skips processes without a userfaultfd. On success vv_missing_pages_forget was called for all of
 * them. */
int vv_fill_pages_run(struct vv_missing_pages *m, size_t n, struct vv_pool *pool);

#endif
