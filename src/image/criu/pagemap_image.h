/* pagemap-PID.img: the list of a process's pages in an image of pages, in the order of that image.
 * The parser is reader/pagemap.c; this unit checks that the result is consistent. */
#ifndef VV_IMAGE_CRIU_PAGEMAP_IMAGE_H
#define VV_IMAGE_CRIU_PAGEMAP_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vv_pagemap_image_entry {
	uint64_t addr, len; /* bytes */
	uint64_t at;        /* offset in the image */
	bool lazy;          /* it may be loaded late */
};

struct vv_pagemap_image {
	uint64_t pages; /* the number in the image's name */
	struct vv_pagemap_image_entry *v; /* ascending */
	size_t n, cap;
	uint64_t len; /* of all of them */
};

/* VV_EDAMAGED: the map is inconsistent. On success the caller frees *out by
 * vv_pagemap_image_fini. */
int vv_pagemap_image_read(const uint8_t *image, size_t n, struct vv_pagemap_image *out);
void vv_pagemap_image_fini(struct vv_pagemap_image *m);

#endif
