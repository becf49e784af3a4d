/* Pages that a process does not have yet: where they belong, and where they are in an image. */
#ifndef VV_IMAGE_RESTORE_PAGE_SPANS_H
#define VV_IMAGE_RESTORE_PAGE_SPANS_H

#include <stddef.h>
#include <stdint.h>

struct vv_page_span {
	uint64_t lo, hi; /* addresses */
	uint64_t at;     /* of lo, in the image */
};

struct vv_page_spans {
	struct vv_page_span *v; /* ascending, disjoint */
	size_t n, cap;
};

void vv_page_spans_fini(struct vv_page_spans *s);
/* Behind all others: VV_EINVAL if it is not. */
int vv_page_spans_add(struct vv_page_spans *s, struct vv_page_span span);
/* The one that holds an address; NULL: none does. */
const struct vv_page_span *vv_page_spans_find(const struct vv_page_spans *s, uint64_t addr);
/* What is in lo..hi is there, or not needed any more. */
int vv_page_spans_drop(struct vv_page_spans *s, uint64_t lo, uint64_t hi);
/* What was to come at from..from+len is to come at to..to+len. */
int vv_page_spans_move(struct vv_page_spans *s, uint64_t from, uint64_t to, uint64_t len);
int vv_page_spans_copy(const struct vv_page_spans *s, struct vv_page_spans *out);

#endif
