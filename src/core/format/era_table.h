/* Who laid down what: an era is the epochs of one session, which has drawn a number for it that no other has. A layer says its own era and those of the layers that it refers to, so
 * that layers of two copies of a lineage, which both went on and have the same numbers, are not taken for each other's. docs/format.md, section 4, kind 9. */
#ifndef VV_CORE_ERAS_H
#define VV_CORE_ERAS_H

#include "base/wire.h"
#include <stdbool.h>
#include <stdint.h>

struct vv_era {
	uint64_t first, last; /* epochs; there may be later ones of which is not known whose they are */
	uint64_t token;
};

struct vv_eras { /* ascending; no epoch is in two */
	struct vv_era *v;
	size_t n, cap;
};

void vv_eras_fini(struct vv_eras *e);
/* Do none of its epochs belong to another era? *other: one that does. */
bool vv_eras_fits(const struct vv_eras *e, const struct vv_era *era, uint64_t *other);
/* VV_EMISMATCH, without a message: it does not fit. */
int vv_eras_add(struct vv_eras *e, const struct vv_era *era, uint64_t *other);
/* That the epoch belongs to; NULL: not known. */
const struct vv_era *vv_eras_find(const struct vv_eras *e, uint64_t epoch);

/* The last one is the layer's own, and ends with its epoch. */
void vv_eras_put(const struct vv_eras *e, struct vv_buf *out);
/* e must start empty. */
int vv_eras_get(struct vv_eras *e, const void *p, size_t n, uint64_t epoch);

#endif
