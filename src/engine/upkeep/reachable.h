/* What live epochs reach: which layers they are made of, and which positions of each payload they need. */
#ifndef VV_ENGINE_UPKEEP_REACHABLE_H
#define VV_ENGINE_UPKEEP_REACHABLE_H

#include "core/format/payload.h"
#include "engine/lineage/catalog.h"

struct vv_reachable_layer {
	uint64_t layer;
	uint64_t size;
	bool present; /* the store lists it */
	bool chain;   /* a live epoch's own layer, or an ancestor whose head it needs */
	struct vv_extents need; /* after vv_reachable_sort: ascending, disjoint */
	size_t n_sorted;         /* how many of them were at the last settling */
};

struct vv_reachable {
	const struct vv_lineage *lin;
	struct vv_reachable_layer *v; /* ascending */
	size_t n, cap;
	uint64_t floor; /* layers of epochs up to this one are all needed; 0: none is for that reason */
};

int vv_reachable_init(struct vv_reachable *r, const struct vv_lineage *lin, const struct vv_listing *l);
void vv_reachable_fini(struct vv_reachable *r);
/* Adds all ranks of an epoch. `live` lists the epochs that are added too, so that an epoch whose parent is among them
 * adds only what it has of its own. */
int vv_reachable_add_epoch(struct vv_reachable *r, const struct vv_listing *live, uint64_t epoch);
/* The same of one rank, where not all are to be seen from here. */
int vv_reachable_add_rank(struct vv_reachable *r, const struct vv_listing *live, uint64_t epoch, uint32_t rank);
/* A stretch that somebody else needs. */
int vv_reachable_add_need(struct vv_reachable *r, uint64_t layer, uint64_t pos, uint64_t len);
/* After settling: what is needed of a layer that is present is needed of the other copies too, those in other stores included if
 * `elsewhere`. To be settled again. */
int vv_reachable_add_copies(struct vv_reachable *r, bool elsewhere);
/* Sorts and joins the extents. */
int vv_reachable_sort(struct vv_reachable *r);

#endif
