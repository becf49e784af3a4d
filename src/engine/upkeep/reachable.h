/* The reach of live epochs: their layers, and the needed positions of each payload. */
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
	size_t n_sorted;         /* how many of them there were at the last vv_reachable_sort */
	bool unread;             /* its bases are not known: it could not be read (tolerant) */
	bool whole;              /* it stays as it is: parity was made over it */
	bool no_deltas;          /* none of its blocks is a difference to another layer's */
};

struct vv_reachable {
	const struct vv_lineage *lin;
	struct vv_reachable_layer *v; /* ascending */
	size_t n, cap;
	uint64_t floor; /* all layers of epochs up to this one are needed; 0: no floor */
	/* Epochs, ascending, that other stores need: parity over their layers stays. */
	const uint64_t *others;
	size_t n_others;
	bool tolerant;  /* an unreadable layer needs nothing of others */
	const struct vv_commit *commit; /* of an epoch without a record in this store; NULL: all have one */
};

int vv_reachable_init(struct vv_reachable *r, const struct vv_lineage *lin, const struct vv_listing *l);
void vv_reachable_fini(struct vv_reachable *r);
/* Adds all ranks of an epoch. `live` lists the other added epochs: an epoch with its parent among
 * them adds only its own part. */
int vv_reachable_add_epoch(struct vv_reachable *r, const struct vv_listing *live, uint64_t epoch);
/* The same of one rank, where not all ranks are visible here. */
int vv_reachable_add_rank(struct vv_reachable *r, const struct vv_listing *live, uint64_t epoch, uint32_t rank);
/* Adds a stretch that another rank needs. */
int vv_reachable_add_need(struct vv_reachable *r, uint64_t layer, uint64_t pos, uint64_t len);
/* After vv_reachable_sort: adds the other copies of needed bytes of present layers, with
 * `elsewhere` also those in other stores. Call vv_reachable_sort again afterwards. */
int vv_reachable_add_copies(struct vv_reachable *r, bool elsewhere);
/* Sorts and merges the extents, and adds those that the needed blocks are differences to. A block
 * that is a difference is needed in full or not at all. VV_EDAMAGED if a layer's needs cannot be
 * read. */
int vv_reachable_sort(struct vv_reachable *r);

#endif
