/* The steps of core/ranks/topk_merge.h over a comm. Memory for all steps is allocated, and agreed
 * upon, before the first. A rank whose merge fails continues with an empty set, so that no rank
 * waits for it. All learn of the failure at the end. */
#include "engine/ranks/topk.h"
#include "base/err.h"
#include "base/mem.h"

_Static_assert(VV_TOPK_MERGE_NOBODY == VARVE_NOBODY, "the plan speaks of nobody as a comm does");

struct topk {
	struct vv_comm *c;
	size_t limit; /* tuples in any set during the steps */
	struct vv_tuple *own, *merged; /* room for two sets each */
	struct vv_tuple *in;
	size_t n;
};

/* The ranks' common result: 0 unless one failed. */
static int agree(struct vv_comm *c, int rc)
{
	struct vv_err_state mine;
	uint64_t failed = rc != 0;
	int rc_comm;

	vv_err_save(rc, &mine);
	rc_comm = vv_comm_allreduce(c, &failed, 1, VARVE_MAX);
	if (rc)
		return vv_err_restore(&mine);
	if (rc_comm)
		return rc_comm;
	return failed ? vv_err_set(VV_EPEER, "another rank could not take part in the merge of digests; its own message says why") : 0;
}

static int make_room(struct topk *t, size_t threshold)
{
	uint64_t most = t->n, all;
	struct vv_tuple *own;
	int rc = vv_comm_allreduce(t->c, &most, 1, VARVE_MAX);

	if (rc)
		return rc;
	if (most > UINT32_MAX / 2)
		return vv_err_set(VV_EINVAL, "a rank has %llu digests, too many to be merged; use larger chunks", (unsigned long long)most);
	all = most * t->c->plug.size;
	threshold = threshold < all ? threshold : (size_t)all;
	t->limit = most > threshold ? (size_t)most : threshold;
	own = vv_mem_grow(t->own, 2 * t->limit, sizeof(*own));
	t->own = own ? own : t->own;
	t->merged = vv_mem_new(2 * t->limit, sizeof(*t->merged));
	t->in = vv_mem_new(t->limit, sizeof(*t->in));
	return agree(t->c, own && t->merged && t->in ? 0 : VV_ENOMEM);
}

/* Lengths first, then the sets. */
static int exchange(struct topk *t, const struct vv_topk_merge_step *s, size_t *n_in)
{
	uint64_t out_n = t->n, in_n = 0;
	int rc = vv_comm_sendrecv(t->c, &out_n, sizeof(out_n), s->to, &in_n, sizeof(in_n), s->from);

	if (rc)
		return rc;
	if (in_n > t->limit)
		rc = vv_err_set(VV_EPEER, "rank %u sends a set of %llu digests, when there are at most %zu", s->from, (unsigned long long)in_n,
				t->limit);
	rc = agree(t->c, rc);
	if (rc)
		return rc;
	*n_in = (size_t)in_n;
	return vv_comm_sendrecv(t->c, t->own, t->n * sizeof(*t->own), s->to, t->in, *n_in * sizeof(*t->in), s->from);
}

/* Returns the code of the comm; *failed: of this rank alone. */
static int take_step(struct topk *t, uint32_t step, size_t threshold, int *failed)
{
	struct vv_comm *c = t->c;
	struct vv_topk_merge_step s;
	struct vv_tuple *merged = t->merged;
	size_t n_in = 0;
	int rc;

	vv_topk_merge_step(c->plug.rank, c->plug.size, step, &s);
	/* also without a partner: all ranks begin the same operations */
	rc = exchange(t, &s, &n_in);
	if (rc || *failed)
		return rc;
	if (s.what == VV_TOPK_MERGE_REPLACE) {
		memcpy(t->own, t->in, n_in * sizeof(*t->in));
		t->n = n_in;
	} else if (s.what == VV_TOPK_MERGE_SETS) {
		*failed = vv_topk_merge_sets(t->own, t->n, t->in, n_in, c->plug.size, threshold, merged, &t->n);
		if (*failed) {
			t->n = 0;
			return 0;
		}
		t->merged = t->own;
		t->own = merged;
	}
	return 0;
}

int vv_topk_allreduce(struct vv_comm *c, struct vv_tuple *mine, size_t n, size_t threshold, struct vv_tuple **out, size_t *n_out)
{
	struct topk t = { .c = c, .own = mine, .n = n };
	struct vv_err_state why = { 0 };
	int failed = 0, rc = 0;

	if (c->plug.size > 1)
		rc = make_room(&t, threshold);
	for (uint32_t step = 0; rc == 0 && step < vv_topk_merge_steps(c->plug.size); step++) {
		rc = take_step(&t, step, threshold, &failed);
		if (failed && !why.code)
			vv_err_save(failed, &why);
	}
	if (rc == 0 && c->plug.size > 1)
		rc = agree(c, failed ? vv_err_restore(&why) : 0);
	vv_comm_free(c, t.in);
	vv_comm_free(c, t.merged);
	if (rc) {
		vv_comm_free(c, t.own);
		return rc;
	}
	*out = t.own;
	*n_out = t.n;
	return 0;
}
