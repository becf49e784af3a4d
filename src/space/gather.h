/* Copies grains by number from the regions into a sink, or compares them with each other. */
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
	struct vv_last_digests *past; /* digests found in the grains; NULL: none were computed */
};

/* grains that were written between hashing and copying; all zero is none */
struct vv_gather_changes {
	struct vv_gather_change {
		size_t i;             /* index in the requested numbers */
		struct vv_digest was; /* digest that was found in it before */
	} *v;
	size_t n, cap;
};

/* The grains of these numbers, ascending, become the next data of the sink. `past` gets the digests
 * of the copies. The previous digests of changed grains are added to `out`, in any order. */
int vv_gather_data(const struct vv_gather *g, const uint32_t *number, size_t n, const struct vv_sink *sink, struct vv_gather_changes *out);
/* Compares the bytes of grains with equal digests if both are in the slice. Each COPY is compared
 * with the grain `back` before it, each ZERO with zero. Grains that were written since they were
 * found are skipped. */
int vv_gather_compare(const struct vv_gather *g, const struct vv_find *f, size_t n);

#endif
