/* Missing pages of a process: their addresses, and their offsets in an image. */
#ifndef VV_IMAGE_RESTORE_PAGE_SPANS_H
#define VV_IMAGE_RESTORE_PAGE_SPANS_H

#include <stddef.h>
#include <stdint.h>

struct vv_page_span {
	uint64_t lo, hi; /* addresses */
	uint64_t at;     /* offset of lo in the image */
};

struct vv_page_spans {
	struct vv_page_span *v; /* ascending, disjoint */
	size_t n, cap;
};

void vv_page_spans_fini(struct vv_page_spans *s);
/* Appends a span; VV_EINVAL: it does not lie behind all others. */
int vv_page_spans_add(struct vv_page_spans *s, struct vv_page_span span);
/* Returns the span that contains an address, or NULL. */
const struct vv_page_span *vv_page_spans_find(const struct vv_page_spans *s, uint64_t addr);
/* Removes lo..hi: these pages are loaded, or not needed any more. */
int vv_page_spans_drop(struct vv_page_spans *s, uint64_t lo, uint64_t hi);
/* Moves the missing pages of from..from+len to to..to+len. */
int vv_page_spans_move(struct vv_page_spans *s, uint64_t from, uint64_t to, uint64_t len);
int vv_page_spans_copy(const struct vv_page_spans *s, struct vv_page_spans *out);

#endif
