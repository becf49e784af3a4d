/* Memory for pages, and which bytes of a file of pages lie where in it. */
#ifndef VV_IMAGE_SAVE_PAGE_BUFFER_H
#define VV_IMAGE_SAVE_PAGE_BUFFER_H

#include <stddef.h>
#include <stdint.h>

struct vv_page_buffer_gap { /* that is free */
	size_t from, n;
};

struct vv_page_buffer {
	uint8_t *pages;
	size_t cap;
	struct vv_page_buffer_gap *gap; /* one at least; the last is used first */
	size_t n_gaps, gaps_cap;
};

struct vv_page_buffer_stretch { /* of a file */
	uint64_t at;
	size_t from, n;
};

struct vv_page_buffer_file {
	struct vv_page_buffer_stretch *stretch; /* ascending, one behind the other */
	size_t n, cap;
};

/* So many bytes, of which `expected` are there before they are touched. */
int vv_page_buffer_open(struct vv_page_buffer *r, size_t bytes, size_t expected);
void vv_page_buffer_close(struct vv_page_buffer *r); /* what is empty is fine */
/* All is free but the first bytes. */
void vv_page_buffer_reset(struct vv_page_buffer *r, size_t used);
/* So much is free again. */
int vv_page_buffer_give(struct vv_page_buffer *r, size_t from, size_t n);
/* Where there is some left; n = 0: nowhere. */
const struct vv_page_buffer_gap *vv_page_buffer_find(struct vv_page_buffer *r);
/* The first n bytes of what was found. */
void vv_page_buffer_take(struct vv_page_buffer *r, size_t n);

/* The next n bytes of a file, which has `at` bytes so far, are in there. */
int vv_page_buffer_add(struct vv_page_buffer_file *f, uint64_t at, size_t from, size_t n);
void vv_page_buffer_file_fini(struct vv_page_buffer_file *f);

#endif
