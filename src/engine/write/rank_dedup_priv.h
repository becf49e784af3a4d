/* The messages among the ranks in one epoch. */
#ifndef VV_ENGINE_WRITE_RANK_DEDUP_PRIV_H
#define VV_ENGINE_WRITE_RANK_DEDUP_PRIV_H

#include "core/ranks/owner_batch.h"
#include "engine/write/rank_dedup.h"
#include "engine/ranks/exchange.h"
#include "engine/ranks/group.h"

/* All messages of one epoch; they stay until the epoch is committed or discarded. */
struct vv_rank_dedup_priv {
	struct vv_group *g;
	struct vv_comm *comm;
	struct vv_layer_writer *p;
	uint32_t *order;  /* claims by home rank */
	struct vv_exchange counts;
	/* content that this rank stored before the session, for the home ranks */
	struct vv_exchange known;
	struct vv_exchange claims, queries, answers, decisions, shared_positions, locations;
	struct vv_owner_batch batch;
	uint64_t *sums;
	/* gives all shared content its position in the payload */
	int (*assign_positions)(struct vv_layer_writer *p);
	bool failed; /* all ranks know that it failed, or the group is broken: no more messages */
};

/* A failure of one rank is carried in rc to the next of these calls, where all ranks get it. */
static inline int vv_rank_dedup_priv_sum(struct vv_rank_dedup_priv *t, int rc, uint64_t *v, size_t n)
{
	if (t->failed)
		return rc;
	rc = vv_group_sum(t->g, t->comm, rc, v, n);
	t->failed = rc != 0;
	return rc;
}

static inline int vv_rank_dedup_priv_agree(struct vv_rank_dedup_priv *t, int rc)
{
	return vv_rank_dedup_priv_sum(t, rc, NULL, 0);
}

static inline const struct vv_digest *vv_rank_dedup_priv_digest(const struct vv_layer_writer *p, size_t claim)
{
	return &p->v->index_cache->index.digest[p->old_entries + claim];
}

static inline int vv_rank_dedup_priv_mark_remote(struct vv_layer_writer *p, size_t claim, uint64_t source, uint64_t pos)
{
	struct vv_claims *c = p->claims;

	vv_index_move(&p->v->index_cache->index, (uint32_t)(p->old_entries + claim), source, pos);
	c->state[claim] = VV_CLAIM_REMOTE;
	return 0;
}

static inline void vv_rank_dedup_priv_mark_shared(struct vv_layer_writer *p, size_t claim)
{
	p->claims->state[claim] = VV_CLAIM_SHARED;
	p->claims->shared_bytes += vv_owner_index_tag_len(p->claims->tag[claim]);
}

#endif
