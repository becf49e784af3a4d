/* collective=topk, algorithm 1 of Nicolae 2013: an all-reduce finds the most frequent content of
 * all ranks and its owners. The owners store it. */
#include "engine/write/rank_dedup_topk.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/write/rank_dedup_priv.h"
#include "engine/ranks/topk.h"
#include <stdlib.h>

static int by_digest(const void *a, const void *b)
{
	const struct vv_tuple *x = a, *y = b;

	return vv_topk_merge_before(&y->digest, &x->digest) - vv_topk_merge_before(&x->digest, &y->digest);
}

/* Algorithm 1, lines 13 to 15. */
static struct vv_tuple *tuples(const struct vv_rank_dedup_priv *t)
{
	size_t n = t->p->claims->n;
	struct vv_tuple *v = vv_mem_new(n, sizeof(*v));

	for (size_t k = 0; v && k < n; k++)
		v[k] = (struct vv_tuple){ *vv_rank_dedup_priv_digest(t->p, k), 1, t->g->rank };
	if (v)
		qsort(v, n, sizeof(*v), by_digest);
	return v;
}

/* The claim with this digest; the number of claims if this rank has none. */
static size_t claim_of(const struct vv_layer_writer *p, const struct vv_digest *d)
{
	uint32_t e = vv_index_find(&p->v->index_cache->index, d);

	if (e == VV_INDEX_NONE || e < p->old_entries || e - p->old_entries >= p->claims->n)
		return p->claims->n;
	return e - p->old_entries;
}

/* Shares the positions of content that others refer to. Each owner adds its own, and all ranks get
 * the sum. */
static int share_positions(struct vv_rank_dedup_priv *t, const struct vv_tuple *top, size_t n, uint64_t *pos)
{
	for (size_t i = 0; i < n; i++)
		pos[i] = top[i].rank == t->g->rank && top[i].count > 1 ? t->p->claims->pos[claim_of(t->p, &top[i].digest)] : 0;
	return vv_comm_allreduce(t->comm, pos, n, VARVE_SUM);
}

/* Lines 17 to 21. Content that only other ranks have is remembered, too: this rank may get it in a
 * later epoch. */
static int apply_top(struct vv_rank_dedup_priv *t, const struct vv_tuple *top, size_t n, const uint64_t *pos)
{
	struct vv_index *x = &t->p->v->index_cache->index;
	uint64_t *source = vv_mem_new(t->g->size, sizeof(*source)); /* 1 + its number */
	int rc = source ? 0 : VV_ENOMEM;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		uint32_t rank = top[i].rank, e;
		size_t k = claim_of(t->p, &top[i].digest);

		if (top[i].count < 2 || rank == t->g->rank)
			continue;
		if (!source[rank]) {
			rc = vv_index_source(x, vv_run_layer(t->p->epoch, rank), &source[rank]);
			source[rank]++;
		}
		if (rc == 0 && k < t->p->claims->n)
			rc = vv_rank_dedup_priv_mark_remote(t->p, k, source[rank] - 1, pos[i]);
		else if (rc == 0 && vv_index_find(x, &top[i].digest) == VV_INDEX_NONE)
			rc = vv_index_add_from(x, &top[i].digest, source[rank] - 1, pos[i], &e);
	}
	vv_mem_free(source);
	return rc;
}

int vv_rank_dedup_topk_exchange(struct vv_rank_dedup_priv *t)
{
	struct vv_claims *c = t->p->claims;
	struct vv_tuple *mine = tuples(t), *top = NULL;
	uint64_t *pos = NULL;
	size_t n = 0;
	int rc = vv_rank_dedup_priv_agree(t, mine ? 0 : VV_ENOMEM);

	if (rc) {
		vv_mem_free(mine);
		return rc;
	}
	rc = vv_topk_allreduce(t->comm, mine, c->n, t->g->threshold, &top, &n);
	t->failed = rc != 0;
	for (size_t i = 0; rc == 0 && i < n; i++) {
		size_t k = claim_of(t->p, &top[i].digest);

		if (top[i].count > 1 && k < c->n && top[i].rank == t->g->rank)
			vv_rank_dedup_priv_mark_shared(t->p, k);
		else if (top[i].count > 1 && k < c->n)
			c->state[k] = VV_CLAIM_REMOTE;
	}
	if (rc == 0) {
		pos = vv_mem_new(n, sizeof(*pos));
		rc = pos ? t->assign_positions(t->p) : VV_ENOMEM;
		rc = vv_rank_dedup_priv_agree(t, rc);
	}
	if (rc == 0) {
		rc = share_positions(t, top, n, pos);
		t->failed = rc != 0;
	}
	if (rc == 0)
		rc = apply_top(t, top, n, pos);
	rc = vv_rank_dedup_priv_agree(t, rc);
	vv_comm_free(t->comm, top);
	vv_comm_free(t->comm, pos);
	return rc;
}
