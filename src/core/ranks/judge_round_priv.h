/* What the parts of core/ranks/judge_round.c share. A group's fields change their meaning as the case goes on:
 *
 *            n              rank                at                          tag
 *   opened   claimers       one: the claimer    several: end of holders     of the lowest claimer
 *   OLD      0              the owner           number of the query
 *   chosen                  several: copies
 *   decided  copies         ALONE: the claimer  first of its copies         enum vv_dedup_judge_kind */
#ifndef VV_CORE_RANKS_JUDGE_ROUND_PRIV_H
#define VV_CORE_RANKS_JUDGE_ROUND_PRIV_H

#include "core/ranks/judge_round.h"

struct vv_case_group {
	struct vv_digest digest;
	uint32_t tag, n, rank, at;
};

static inline const uint32_t *vv_case_holders(const struct vv_judge_round *c, const struct vv_case_group *g)
{
	return &c->holder[g->at - g->n];
}

static inline uint32_t vv_case_rank_of(uint64_t copy)
{
	return (uint32_t)(copy / VV_DEDUP_JUDGE_POS_MAX);
}

#endif
