/* One epoch's talk among the ranks. */
#ifndef VV_ENGINE_TALK_H
#define VV_ENGINE_TALK_H

#include "core/ranks/judge_round.h"
#include "engine/write/rank_dedup.h"
#include "engine/ranks/exchange.h"
#include "engine/ranks/group.h"

struct vv_talk { /* everything that is said in one epoch; it stays until the epoch's fate is known */
	struct vv_ranks *g;
	struct vv_comm *comm;
	struct vv_pass *p;
	uint32_t *order;  /* claims by judge */
	struct vv_mail hello;
	struct vv_mail known; /* what this rank stored before the session, for the judges */
	struct vv_mail claims, queries, answers, verdicts, lent, where;
	struct vv_case judged;
	uint64_t *sums;
	int (*promise)(struct vv_pass *p); /* gives all lent content its position in the payload */
	bool over; /* all ranks know that it failed, or the group is broken: no more is said */
};

/* A failure of one rank is carried in rc to the next of these, where it becomes everybody's. */
static inline int vv_talk_sum(struct vv_talk *t, int rc, uint64_t *v, size_t n)
{
	if (t->over)
		return rc;
	rc = vv_ranks_sum(t->g, t->comm, rc, v, n);
	t->over = rc != 0;
	return rc;
}

static inline int vv_talk_agree(struct vv_talk *t, int rc)
{
	return vv_talk_sum(t, rc, NULL, 0);
}

static inline const struct vv_digest *vv_talk_digest(const struct vv_pass *p, size_t claim)
{
	return &p->v->history.index.digest[p->old_entries + claim];
}

static inline int vv_talk_refer(struct vv_pass *p, size_t claim, uint64_t source, uint64_t pos)
{
	struct vv_claims *c = p->claims;

	vv_index_move(&p->v->history.index, (uint32_t)(p->old_entries + claim), source, pos);
	c->state[claim] = VV_CLAIM_REFERRED;
	c->referred += vv_judge_tag_len(c->tag[claim]);
	return 0;
}

static inline void vv_talk_lend(struct vv_pass *p, size_t claim)
{
	p->claims->state[claim] = VV_CLAIM_LENT;
	p->claims->lent += vv_judge_tag_len(p->claims->tag[claim]);
}

#endif
