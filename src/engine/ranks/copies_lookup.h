/* Finds other copies of bytes that a layer has lost, as recorded in the layers with the copies
 * (core/format/copies_section.h). */
#ifndef VV_ENGINE_RANKS_COPIES_LOOKUP_H
#define VV_ENGINE_RANKS_COPIES_LOOKUP_H

#include "core/format/copies_section.h"
#include "engine/ranks/group.h"

struct vv_layer_file;
struct vv_warned;

/* Bytes pos..pos+len of the payload of `home` are also in another layer's payload, from `at` on. */
struct vv_other_copy {
	uint64_t home, pos, len;
	uint64_t layer, at;
};

struct vv_copies_lookup {
	/* after vv_copies_lookup_exchange: sorted by home, layer and position */
	struct vv_other_copy *v;
	size_t n, cap;
};

/* Reads the copies recorded in an open layer; none if it has no such section. */
int vv_copies_lookup_read(struct vv_layer_file *f, struct vv_copies_section *out);

void vv_copies_lookup_fini(struct vv_copies_lookup *a);
int vv_copies_lookup_add(struct vv_copies_lookup *a, const struct vv_other_copy *x);
/* Called by all ranks, each with its own sorted list. Collects the entries of the layers of all
 * storage nodes for the layers of all lists. `warned` keeps the first error of a layer that
 * could not be reached. */
int vv_copies_lookup_exchange(struct vv_group *g, int rc, const struct vv_lineage *lin, uint64_t *home, size_t n, struct vv_copies_lookup *out,
			      struct vv_warned *warned);
/* The k-th other copy (from 0) of the byte at `pos` of home's payload; NULL if there are at most
 * k. */
const struct vv_other_copy *vv_copies_lookup_find(const struct vv_copies_lookup *a, uint64_t home, uint64_t pos, unsigned k);

#endif
