/* Where else bytes are that a layer has lost: what the layers with the other copies say (core/format/copies_section.h). */
#ifndef VV_ENGINE_ALTERNATES_H
#define VV_ENGINE_ALTERNATES_H

#include "core/format/copies_section.h"
#include "engine/ranks/group.h"

struct vv_layerio;

struct vv_alternate { /* bytes pos..pos+len of the payload of `home` are also in another layer's, from `at` on */
	uint64_t home, pos, len;
	uint64_t layer, at;
};

struct vv_alternates {
	struct vv_alternate *v; /* after vv_alternates_settle by home, layer and position */
	size_t n, cap;
};

/* The copies that an open layer tells of; none if it has no such section. */
int vv_alternates_read(struct vv_layerio *f, struct vv_copies *out);

void vv_alternates_fini(struct vv_alternates *a);
int vv_alternates_add(struct vv_alternates *a, const struct vv_alternate *x);
void vv_alternates_settle(struct vv_alternates *a);
/* What the layers of this store say of the layers home[0..n-1] (ascending). Layers that cannot be read say nothing. */
int vv_alternates_collect(const struct vv_lineage *lin, const uint64_t *home, size_t n, struct vv_alternates *out);
/* All ranks, each with its own list, which is sorted: what the layers of all places say of the layers of all lists. */
int vv_alternates_ask(struct vv_ranks *g, int rc, const struct vv_lineage *lin, uint64_t *home, size_t n, struct vv_alternates *out);
/* The k-th place (from 0) of the byte at `pos` of home's payload; NULL if it has no more than k. */
const struct vv_alternate *vv_alternates_find(const struct vv_alternates *a, uint64_t home, uint64_t pos, unsigned k);

#endif
