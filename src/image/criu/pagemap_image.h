/* pagemap-PID.img: which pages of a process are in which image of pages, one behind the other. reader/pagemap.c parses it; here it must make sense. */
#ifndef VV_IMAGE_CRIU_PAGEMAP_IMAGE_H
#define VV_IMAGE_CRIU_PAGEMAP_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vv_pagemap_image_entry {
	uint64_t addr, len; /* bytes */
	uint64_t at;        /* in the image */
	bool lazy;          /* it may come late */
};

struct vv_pagemap_image {
	uint64_t pages; /* the number in the image's name */
	struct vv_pagemap_image_entry *v; /* those that are in the image, ascending */
	size_t n, cap;
	uint64_t len; /* of all of them */
};

/* VV_EDAMAGED: it makes no sense. */
int vv_pagemap_image_read(const uint8_t *image, size_t n, struct vv_pagemap_image *out);
void vv_pagemap_image_fini(struct vv_pagemap_image *m);

#endif
