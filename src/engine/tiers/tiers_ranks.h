/* Tiers of ranks that have stores of their own. Rank 0 plans which epochs are due. Together the
 * ranks find out which layers of such an epoch each storage node copies. When the layers of all
 * nodes are in the tier, rank 0 commits the epoch there. */
#ifndef VV_ENGINE_TIERS_TIERS_RANKS_H
#define VV_ENGINE_TIERS_TIERS_RANKS_H

#include "engine/tier_list.h"

struct varve;
struct vv_pool;
struct vv_store;
struct vv_tier;

struct vv_tiers_plan {
	uint64_t due; /* a bit for each tier for which the new epoch is due */
	uint64_t n;   /* older epochs that are being copied, or are to be copied next: */
	uint64_t needed[2 * VV_TIER_LIST_MAX];
};

struct vv_tiers_fate { /* a bit for each tier */
	uint64_t failed; /* this rank, or any, could not copy its layers */
	uint64_t busy;   /* this rank, or any but rank 0, copies layers */
};

/* Do all ranks reach the same store as each tier? Called by all, when they open the session. */
int vv_tiers_ranks_check(struct varve *v);
struct vv_tiers_fate vv_tiers_ranks_fate(const struct varve *v);
/* Called by rank 0 when it commits the epoch. Nothing is due for a tier before the previous epoch
 * is there, or is given up because a rank has failed. So all ranks copy the same epochs. */
void vv_tiers_ranks_plan(struct varve *v, uint64_t epoch, const struct vv_tiers_fate *others, struct vv_tiers_plan *out);
bool vv_tiers_ranks_needs(const struct vv_tiers_plan *p, uint64_t epoch);
/* Called by all ranks once the epoch is committed, before old ones are dropped. */
void vv_tiers_ranks_follow(struct varve *v, uint64_t epoch, const struct vv_tiers_plan *p);
/* Called by all ranks after that, in the background or in the next call that all make: tells each
 * node which layers it copies. */
void vv_tiers_ranks_assign(struct varve *v);
/* The same for the epochs that earlier sessions have not copied. */
void vv_tiers_ranks_assign_first(struct varve *v);

/* For closing, by all ranks: the copies of all other ranks have ended. Rank 0 gives up those that
 * have failed. */
void vv_tiers_ranks_finish(struct varve *v);
/* The same after that, for the newest epoch if it is due. True: it is. */
bool vv_tiers_ranks_assign_last(struct varve *v);

/* For a tier's thread, under the lock: takes over the layers of the epoch that is due. */
void vv_tiers_ranks_take(struct vv_tier *r);
/* Copies them. On rank 0, waits for the other storage nodes and commits the epoch. Returns 1 if the
 * epoch was given up for a newer one. */
int vv_tiers_ranks_copy(struct vv_tier *r, uint64_t epoch, struct vv_store *from, struct vv_store *to, struct vv_pool *pool);

#endif
