/* Finds in CRIU's images the pages that may be loaded late, for each process. */
#ifndef VV_IMAGE_RESTORE_LAZY_PLAN_H
#define VV_IMAGE_RESTORE_LAZY_PLAN_H

#include "image/restore/missing_pages.h"
#include "image/restore/serve_images.h"

/* For all processes of the images' folder: adds the late pages to *memory, and removes them from
 * criu's parts. */
int vv_lazy_plan_read(struct vv_serve_images *images, struct vv_missing_pages **memory, size_t *n, size_t *cap);
/* Returns the number of processes. */
size_t vv_lazy_plan_count(const struct vv_unpack *files);

#endif
