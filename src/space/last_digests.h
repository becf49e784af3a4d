/* The content of a set's grains at the last look: a digest for each number. */
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
/* The set becomes these spans, numbered up to `end`. Known digests of a region move with its
 * grains. */
int vv_last_digests_fit(struct vv_last_digests *p, const struct vv_span *span, size_t n, uint32_t end);
/* Drops the digests of all grains. */
void vv_last_digests_forget(struct vv_last_digests *p);

#endif
