/* Grains by their numbers, out of the regions: into a sink, or against each other. */
#ifndef VV_SPACE_GATHER_H
#define VV_SPACE_GATHER_H

#include "base/pool.h"
#include "core/runs.h"
#include "space/space.h"

struct vv_gather {
	const struct vv_span *span;
	size_t n_spans;
	uint32_t chunk;
	struct vv_pool *pool; /* NULL: this thread alone */
	const struct vv_sieve_options *opt;
};

/* The grains of these numbers, ascending, become the next data of the sink. */
int vv_gather_data(const struct vv_gather *g, const uint32_t *number, size_t n, const struct vv_sink *sink);
/* Compares the bytes wherever digests say that they are equal and both are in the slice: each COPY with what is `back` before it, each
 * ZERO with zero. */
int vv_gather_compare(const struct vv_gather *g, const struct vv_find *f, size_t n);

#endif
