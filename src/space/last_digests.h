/* What the grains of a set held when they were looked at last: a digest for each number. */
#ifndef VV_SPACE_LAST_DIGESTS_H
#define VV_SPACE_LAST_DIGESTS_H

#include "core/dedup/grain.h"

struct vv_last_digests_region;

struct vv_last_digests { /* all zero is no past */
	struct vv_digest *digest; /* by number */
	uint32_t *there;          /* of each tile, a bit for each digest that is there */
	uint32_t end;
	struct vv_last_digests_region *region; /* to which the numbers belong */
	size_t n;
};

void vv_last_digests_fini(struct vv_last_digests *p);
/* From now on it is about these spans, numbered up to `end`. What is known of a region's grains goes with them. */
int vv_last_digests_fit(struct vv_last_digests *p, const struct vv_span *span, size_t n, uint32_t end);
/* Nothing is known of any grain. */
void vv_last_digests_forget(struct vv_last_digests *p);

#endif
