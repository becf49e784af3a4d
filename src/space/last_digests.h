/* What the grains of a set held when they were looked at last: a digest for each number. */
#ifndef VV_SPACE_PAST_H
#define VV_SPACE_PAST_H

#include "core/dedup/grain.h"

struct vv_past_region;

struct vv_past { /* all zero is no past */
	struct vv_digest *digest; /* by number */
	uint32_t *there;          /* of each tile, a bit for each digest that is there */
	uint32_t end;
	struct vv_past_region *region; /* to which the numbers belong */
	size_t n;
};

void vv_past_fini(struct vv_past *p);
/* From now on it is about these spans, numbered up to `end`. What is known of a region's grains goes with them. */
int vv_past_fit(struct vv_past *p, const struct vv_span *span, size_t n, uint32_t end);
/* Nothing is known of any grain. */
void vv_past_forget(struct vv_past *p);

#endif
