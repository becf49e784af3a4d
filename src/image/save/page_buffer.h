/* A buffer for pages, and the position of each file's bytes in it. */
#ifndef VV_IMAGE_SAVE_PAGE_BUFFER_H
#define VV_IMAGE_SAVE_PAGE_BUFFER_H

#include <stddef.h>
#include <stdint.h>

struct vv_page_buffer_gap { /* a free range */
	size_t from, n;
};

struct vv_page_buffer {
	uint8_t *pages;
	size_t cap;
	struct vv_page_buffer_gap *gap; /* at least one; the last is used first */
	size_t n_gaps, gaps_cap;
};

struct vv_page_buffer_stretch { /* a range of a file */
	uint64_t at;
	size_t from, n;
};

struct vv_page_buffer_file {
	struct vv_page_buffer_stretch *stretch; /* ascending and contiguous in the file */
	size_t n, cap;
};

/* Maps `bytes` bytes and populates the first `expected` of them. */
int vv_page_buffer_open(struct vv_page_buffer *r, size_t bytes, size_t expected);
void vv_page_buffer_close(struct vv_page_buffer *r); /* accepts an empty buffer */
/* Frees all but the first `used` bytes. */
void vv_page_buffer_reset(struct vv_page_buffer *r, size_t used);
/* Frees a range. */
int vv_page_buffer_give(struct vv_page_buffer *r, size_t from, size_t n);
/* Returns a free range; n = 0: the buffer is full. */
const struct vv_page_buffer_gap *vv_page_buffer_find(struct vv_page_buffer *r);
/* Allocates the first n bytes of the range that was found. */
void vv_page_buffer_take(struct vv_page_buffer *r, size_t n);

/* Records that the next n bytes of a file, which has `at` bytes so far, are in the buffer. */
int vv_page_buffer_add(struct vv_page_buffer_file *f, uint64_t at, size_t from, size_t n);
void vv_page_buffer_file_fini(struct vv_page_buffer_file *f);

#endif
