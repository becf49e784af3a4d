/* Grains by their numbers, out of the regions: into a sink, or against each other. */
#ifndef VV_SPACE_GATHER_H
#define VV_SPACE_GATHER_H

#include "base/pool.h"
#include "core/dedup/grain_pieces.h"
#include "space/last_digests.h"
#include "space/space.h"

struct vv_gather {
	const struct vv_span *span;
	size_t n_spans;
	uint32_t chunk;
	struct vv_pool *pool; /* NULL: this thread alone */
	const struct vv_sieve_options *opt;
	struct vv_last_digests *past; /* what was found in them; NULL: nobody has looked */
};

struct vv_gather_changes { /* grains that were written between the look and the copy; all zero is none */
	struct vv_gather_change {
		size_t i;             /* of those that were asked for */
		struct vv_digest was; /* that was found in it */
	} *v;
	size_t n, cap;
};

/* The grains of these numbers, ascending, become the next data of the sink. The past has the digests of what was copied; what it had before of those that
 * have changed is added to `out`, in any order. */
int vv_gather_data(const struct vv_gather *g, const uint32_t *number, size_t n, const struct vv_sink *sink, struct vv_gather_changes *out);
/* Compares the bytes wherever digests say that they are equal and both are in the slice: each COPY with what is `back` before it, each
 * ZERO with zero. Those that are not any more what was found are passed over. */
int vv_gather_compare(const struct vv_gather *g, const struct vv_find *f, size_t n);

#endif
