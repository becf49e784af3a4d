/* The group, which the parts of core/ranks/owner_batch.c share. Its fields change their meaning
 * during the batch.
 *
 *             n         rank                at                       tag
 * opened      claimers  one: the claimer    several: end of holders  of the lowest claimer
 * REMOTE_OLD  0         the owner           number of the query
 * chosen                several: copies
 * decided     copies    STORE: the claimer  first of its copies      enum vv_owner_index_kind */
#ifndef VV_CORE_RANKS_OWNER_BATCH_PRIV_H
#define VV_CORE_RANKS_OWNER_BATCH_PRIV_H

#include "core/ranks/owner_batch.h"

struct vv_owner_batch_group {
	struct vv_digest digest;
	uint32_t tag, n, rank, at;
};

static inline const uint32_t *vv_owner_batch_holders(const struct vv_owner_batch *c, const struct vv_owner_batch_group *g)
{
	return &c->holder[g->at - g->n];
}

static inline uint32_t vv_owner_batch_rank_of(uint64_t copy)
{
	return (uint32_t)(copy / VV_OWNER_INDEX_POS_MAX);
}

#endif
