/* Content that several hosts hold is stored by more than one of them (option copies): each layer that has such a copy says where the
 * others are. docs/format.md, section 4, kind 8. */
#ifndef VV_CORE_COPIES_H
#define VV_CORE_COPIES_H

#include "base/wire.h"

struct vv_copy { /* bytes pos..pos+len of this layer's payload are also in that of another rank in the same epoch, from `at` on */
	uint64_t pos, len;
	uint64_t at;
	uint32_t rank;
};

struct vv_copies {
	struct vv_copy *v;
	size_t n, cap;
};

void vv_copies_fini(struct vv_copies *c);
int vv_copies_add(struct vv_copies *c, const struct vv_copy *copy);
/* By rank and position, joined where they follow each other: as they are stored. */
void vv_copies_settle(struct vv_copies *c);

void vv_copies_put(const struct vv_copies *c, struct vv_buf *out); /* of those that are settled */
/* c must start empty; the layer is `self` of `ranks`, with a payload of that length. */
int vv_copies_get(struct vv_copies *c, const void *p, size_t n, uint32_t self, uint32_t ranks, uint64_t payload);

#endif
