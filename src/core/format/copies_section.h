/* Content that several hosts hold is stored by more than one of them (option copies): each layer that has such a copy says where the
 * others are. docs/format.md, section 4, kind 8. */
#ifndef VV_CORE_FORMAT_COPIES_SECTION_H
#define VV_CORE_FORMAT_COPIES_SECTION_H

#include "base/wire.h"

struct vv_copy { /* bytes pos..pos+len of this layer's payload are also in that of another rank in the same epoch, from `at` on */
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
/* By rank and position, joined where they follow each other: as they are stored. */
void vv_copies_section_sort(struct vv_copies_section *c);

void vv_copies_section_put(const struct vv_copies_section *c, struct vv_buf *out); /* of those that are settled */
/* c must start empty; the layer is `self` of `ranks`, with a payload of that length. */
int vv_copies_section_get(struct vv_copies_section *c, const void *p, size_t n, uint32_t self, uint32_t ranks, uint64_t payload);

#endif
