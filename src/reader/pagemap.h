/* CRIU's pagemap-PID.img: at which addresses the pages of a pages-N.img were. Its first entry names N. */
#ifndef VV_READER_PAGEMAP_H
#define VV_READER_PAGEMAP_H

#include "reader/memory_areas.h"
#include "reader/proto.h"

enum { VV_PAGEMAP_PAGE = 4096, VV_PAGEMAP_PAGE_MOST = 1 << 20 };

struct vv_pagemap_range {
	uint64_t address, pages;
	bool lazy; /* it may come late */
};

/* The entries behind the first, which says whose pages these are; empty if it is none, or is not all there yet. */
struct vv_proto vv_pagemap_open(const uint8_t *image, size_t n, uint64_t *id);
/* The next range of pages that are in the image; false: there is none, or not all of it. */
bool vv_pagemap_next(struct vv_proto *entries, struct vv_pagemap_range *out);
/* A piece for each stretch of pages, as far as the entries go: len is what there is of pages, page the size of one. */
int vv_pagemap_pieces(struct vv_proto entries, uint64_t page, uint64_t len, struct vv_memory_areas *m);

#endif
