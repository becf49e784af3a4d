/* Which pages of which processes may come late, as CRIU's images tell. */
#ifndef VV_IMAGE_RESTORE_LAZY_PLAN_H
#define VV_IMAGE_RESTORE_LAZY_PLAN_H

#include "image/restore/missing_pages.h"
#include "image/restore/serve_images.h"

/* Of all processes of the images' folder: what they lack is added to *memory, and taken out of what criu gets. */
int vv_lazy_plan_read(struct vv_serve_images *images, struct vv_missing_pages **memory, size_t *n, size_t *cap);
/* How many processes there are. */
size_t vv_lazy_plan_count(const struct vv_unpack *files);

#endif
