/* Where else bytes are that a layer has lost: what the layers with the other copies say (core/format/copies_section.h). */
#ifndef VV_ENGINE_RANKS_COPIES_LOOKUP_H
#define VV_ENGINE_RANKS_COPIES_LOOKUP_H

#include "core/format/copies_section.h"
#include "engine/ranks/group.h"

struct vv_layer_file;

struct vv_other_copy { /* bytes pos..pos+len of the payload of `home` are also in another layer's, from `at` on */
	uint64_t home, pos, len;
	uint64_t layer, at;
};

struct vv_copies_lookup {
	struct vv_other_copy *v; /* after asking by home, layer and position */
	size_t n, cap;
};

/* The copies that an open layer tells of; none if it has no such section. */
int vv_copies_lookup_read(struct vv_layer_file *f, struct vv_copies_section *out);

void vv_copies_lookup_fini(struct vv_copies_lookup *a);
int vv_copies_lookup_add(struct vv_copies_lookup *a, const struct vv_other_copy *x);
/* All ranks, each with its own list, which is sorted: what the layers of all places say of the layers of all lists. */
int vv_copies_lookup_exchange(struct vv_group *g, int rc, const struct vv_lineage *lin, uint64_t *home, size_t n, struct vv_copies_lookup *out);
/* The k-th place (from 0) of the byte at `pos` of home's payload; NULL if it has no more than k. */
const struct vv_other_copy *vv_copies_lookup_find(const struct vv_copies_lookup *a, uint64_t home, uint64_t pos, unsigned k);

#endif
