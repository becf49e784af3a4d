/* Which pages of which processes may come late, as CRIU's images tell. */
#ifndef VV_IMAGE_LATE_H
#define VV_IMAGE_LATE_H

#include "image/restore/missing_pages.h"
#include "image/restore/serve_images.h"

/* Of all processes of the images' folder: what they lack is added to *memory, and taken out of what criu gets. */
int vv_late_read(struct vv_serve *images, struct vv_absent **memory, size_t *n, size_t *cap);
/* How many processes there are. */
size_t vv_late_count(const struct vv_unpack *files);

#endif
