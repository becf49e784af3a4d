/* CRIU's pagemap-PID.img: the addresses of the pages in a pages-N.img. Its first entry names N. */
#ifndef VV_READER_PAGEMAP_H
#define VV_READER_PAGEMAP_H

#include "reader/memory_areas.h"
#include "reader/proto.h"

enum { VV_PAGEMAP_PAGE = 4096, VV_PAGEMAP_PAGE_MOST = 1 << 20 };

struct vv_pagemap_range {
	uint64_t address, pages;
	bool lazy; /* the pages may come late */
};

/* The entries behind the first, which holds the number of the pages file. Empty if this is no
 * pagemap, or incomplete. */
struct vv_proto vv_pagemap_open(const uint8_t *image, size_t n, uint64_t *id);
/* The next range of pages in the image; false: none, or an incomplete one. */
bool vv_pagemap_next(struct vv_proto *entries, struct vv_pagemap_range *out);
/* Adds a piece for each range of pages. len: the bytes of pages; page: the page size. */
int vv_pagemap_pieces(struct vv_proto entries, uint64_t page, uint64_t len, struct vv_memory_areas *m);

#endif
