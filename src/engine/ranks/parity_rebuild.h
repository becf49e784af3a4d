/* Makes the lost objects of the parity sets of a lineage again. */
#ifndef VV_ENGINE_RANKS_PARITY_REBUILD_H
#define VV_ENGINE_RANKS_PARITY_REBUILD_H

#include "engine/ranks/parity_sets.h"

struct vv_parity_report {
	struct vv_parity_built built;
	struct vv_parity_lost { /* cannot be made again */
		uint64_t epoch;
		char text[400];
	} *lost;
	size_t n_lost, lost_cap;
};

/* Writes the missing objects of all epochs up to `last`; with `scan` also those with damaged
 * blocks. Sets that cannot be made again are added to the report, and are no error. If a store
 * fails, the other sets are made all the same; the result is the first error. */
int vv_parity_rebuild_run(struct vv_parity_sets *s, uint64_t last, bool scan, struct vv_parity_report *out);
void vv_parity_rebuild_free_report(struct vv_parity_report *r);

#endif
