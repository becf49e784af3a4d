/* Who laid down what: an era is the epochs of one session, which has drawn a number for it that no other has. A layer says its own era and those of the layers that it refers to, so
 * that layers of two copies of a lineage, which both went on and have the same numbers, are not taken for each other's. docs/format.md, section 4, kind 9. */
#ifndef VV_CORE_FORMAT_ERA_TABLE_H
#define VV_CORE_FORMAT_ERA_TABLE_H

#include "base/wire.h"
#include <stdbool.h>
#include <stdint.h>

struct vv_era {
	uint64_t first, last; /* epochs; there may be later ones of which is not known whose they are */
	uint64_t token;
};

struct vv_era_table { /* ascending; no epoch is in two */
	struct vv_era *v;
	size_t n, cap;
};

void vv_era_table_fini(struct vv_era_table *e);
/* Do none of its epochs belong to another era? *other: one that does. */
bool vv_era_table_fits(const struct vv_era_table *e, const struct vv_era *era, uint64_t *other);
/* VV_EMISMATCH, without a message: it does not fit. */
int vv_era_table_add(struct vv_era_table *e, const struct vv_era *era, uint64_t *other);
/* That the epoch belongs to; NULL: not known. */
const struct vv_era *vv_era_table_find(const struct vv_era_table *e, uint64_t epoch);

/* The last one is the layer's own, and ends with its epoch. */
void vv_era_table_put(const struct vv_era_table *e, struct vv_buf *out);
/* e must start empty. */
int vv_era_table_get(struct vv_era_table *e, const void *p, size_t n, uint64_t epoch);

#endif
