/* The origin of epochs: an era is the epochs of one session, which has drawn a unique number for
 * it. A layer names its own era and those of the layers it refers to. Two copies of a lineage may
 * both continue and use the same epoch numbers; the eras distinguish their layers. docs/format.md,
 * section 4, kind 9. */
#ifndef VV_CORE_FORMAT_ERA_TABLE_H
#define VV_CORE_FORMAT_ERA_TABLE_H

#include "base/wire.h"
#include <stdbool.h>
#include <stdint.h>

struct vv_era {
	uint64_t first, last; /* epochs; the era of later ones may be unknown */
	uint64_t token;
};

struct vv_era_table { /* ascending; no epoch is in two eras */
	struct vv_era *v;
	size_t n, cap;
};

void vv_era_table_fini(struct vv_era_table *e);
/* Is the era consistent with the table? If not, *other is an epoch that belongs to another era. */
bool vv_era_table_fits(const struct vv_era_table *e, const struct vv_era *era, uint64_t *other);
/* Adds an era. VV_EMISMATCH, without a message: it does not fit. */
int vv_era_table_add(struct vv_era_table *e, const struct vv_era *era, uint64_t *other);
/* The era of the epoch; NULL: not known. */
const struct vv_era *vv_era_table_find(const struct vv_era_table *e, uint64_t epoch);

/* The last era is the layer's own, and ends with its epoch. */
void vv_era_table_put(const struct vv_era_table *e, struct vv_buf *out);
/* e must start empty. */
int vv_era_table_get(struct vv_era_table *e, const void *p, size_t n, uint64_t epoch);

#endif
