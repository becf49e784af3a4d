/* Content that several hosts hold is stored by more than one of them (option copies). Each layer
 * with such a copy names the places of the others. docs/format.md, section 4, kind 8. */
#ifndef VV_CORE_FORMAT_COPIES_SECTION_H
#define VV_CORE_FORMAT_COPIES_SECTION_H

#include "base/wire.h"

/* bytes pos..pos+len of this layer's payload are also in that of another rank of the epoch, from
 * `at` on */
struct vv_copy {
	uint64_t pos, len;
	uint64_t at;
	uint32_t rank;
};

struct vv_copies_section {
	struct vv_copy *v;
	size_t n, cap;
};

void vv_copies_section_fini(struct vv_copies_section *c);
int vv_copies_section_add(struct vv_copies_section *c, const struct vv_copy *copy);
/* Sorts by rank and position and joins adjacent entries: the stored form. */
void vv_copies_section_sort(struct vv_copies_section *c);

/* c must be sorted */
void vv_copies_section_put(const struct vv_copies_section *c, struct vv_buf *out);
/* c must start empty; the layer belongs to rank `self` of `ranks`, and its payload has `payload`
 * bytes. */
int vv_copies_section_get(struct vv_copies_section *c, const void *p, size_t n, uint32_t self, uint32_t ranks, uint64_t payload);

#endif
