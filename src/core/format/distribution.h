/* The role of a region in the state of all ranks. It is a part of a global array, the same on all
 * ranks, or a part of a list. docs/format.md, section 4, kind 10. */
#ifndef VV_CORE_FORMAT_DISTRIBUTION_H
#define VV_CORE_FORMAT_DISTRIBUTION_H

#include "core/format/head.h"

enum vv_distribution_kind { VV_DISTRIBUTION_SLAB = 1, VV_DISTRIBUTION_SHARED, VV_DISTRIBUTION_LIST };

struct vv_distribution {
	uint8_t kind;
	uint64_t item; /* of a list: bytes of an item */
	/* Of a slab, in each dimension: the length of the global array, the first element of the
	 * part, and the ghost cells at each end. The shape of the region includes them. */
	uint64_t global[VV_MAX_DIMS], start[VV_MAX_DIMS], ghost[VV_MAX_DIMS];
};

/* Elements with index start..end - 1 in each dimension. Ghost cells may lie below 0. */
struct vv_box {
	unsigned ndim;
	int64_t start[VV_MAX_DIMS], end[VV_MAX_DIMS];
};

struct vv_distribution *vv_distribution_copy(const struct vv_distribution *d); /* NULL: no memory */
/* Does the format allow it for a region of this shape? Returns an error with the reason if not. */
int vv_distribution_check(const char *name, const struct vv_shape *s, const struct vv_distribution *d);
/* Do both regions hold the same elements at the same places? */
bool vv_distribution_same(const struct vv_shape *s, const struct vv_distribution *a, const struct vv_shape *t, const struct vv_distribution *b);
const char *vv_distribution_kind_name(const struct vv_distribution *d); /* NULL: a plain region */

/* A global array may have several regions per rank. Its name is theirs up to the first '#'. Returns
 * the length of that name. */
size_t vv_distribution_name_length(const char *region);

/* All cells of a slab's memory. */
void vv_distribution_memory(const struct vv_shape *s, const struct vv_distribution *d, struct vv_box *out);
/* The slab's own part of the global array. */
void vv_distribution_owned(const struct vv_shape *s, const struct vv_distribution *d, struct vv_box *out);
/* The cells that a restart takes from this slab: its own part, and its ghost cells outside of the
 * global array. No other slab has these. */
void vv_distribution_provided(const struct vv_shape *s, const struct vv_distribution *d, struct vv_box *out);
bool vv_distribution_is_empty(const struct vv_box *b);
/* Returns false if it is empty. out may be a or b. */
bool vv_distribution_intersect(const struct vv_box *a, const struct vv_box *b, struct vv_box *out);
uint64_t vv_distribution_volume(const struct vv_box *b); /* of a box that is not empty */
/* An element as a text such as "(3, 0, 17)". */
enum { VV_DISTRIBUTION_TEXT = 22 * VV_MAX_DIMS };
const char *vv_distribution_text(unsigned ndim, const int64_t *at, char out[VV_DISTRIBUTION_TEXT]);

/* The section PARTS: nothing if no region has a distribution. */
bool vv_distribution_has_any(const struct vv_head *h);
void vv_distribution_put(const struct vv_head *h, struct vv_buf *b);
/* Into the regions of the head, which were read before. */
int vv_distribution_get(struct vv_head *h, const void *p, size_t n);

#endif
