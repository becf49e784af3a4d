/* Linear in the sets: one walk over both, one over the shared entries, a counting select on halves
 * of the counts. */
#include "core/ranks/topk_merge.h"
#include "base/err.h"
#include "base/mem.h"
#include <string.h>

/* an entry of both sets, whose owner is chosen when the loads of all others are known */
struct shared {
	uint32_t at;    /* in out, with left's rank */
	uint32_t right; /* right's rank */
};

struct merger {
	uint32_t *load; /* the paper's PageLoad */
	struct shared *shared;
	size_t n_shared;
	uint32_t *hist;
};

#define HALF (1u << 16)

static uint32_t add_counts(uint32_t a, uint32_t b)
{
	return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

static int check_set(const struct vv_tuple *set, size_t n, uint32_t ranks)
{
	bool bad = false;

	for (size_t i = 0; i < n; i++)
		bad |= set[i].rank >= ranks || !set[i].count;
	for (size_t i = 1; i < n; i++)
		bad |= !vv_topk_merge_before(&set[i - 1].digest, &set[i].digest);
	if (bad)
		return vv_err_set(VV_EPEER, "a set of digests from another rank is not in order, or names a rank that there is not");
	return 0;
}

/* Merges both sets into out, in order. */
static size_t walk(struct merger *m, const struct vv_tuple *l, const struct vv_tuple *l_end, const struct vv_tuple *r,
		   const struct vv_tuple *r_end, struct vv_tuple *out)
{
	struct vv_tuple *to = out;

	while (l < l_end && r < r_end) {
		bool from_right = vv_topk_merge_before(&r->digest, &l->digest);
		bool both = vv_digest_equal(&l->digest, &r->digest);

		*to = from_right ? *r : *l;
		if (both) {
			to->count = add_counts(l->count, r->count);
			m->shared[m->n_shared++] = (struct shared){ (uint32_t)(to - out), r->rank };
		} else {
			m->load[to->rank]++;
		}
		to++;
		r += from_right | both;
		l += !from_right;
	}
	for (; l < l_end; l++, to++)
		m->load[(*to = *l).rank]++;
	for (; r < r_end; r++, to++)
		m->load[(*to = *r).rank]++;
	return (size_t)(to - out);
}

static void balance(struct merger *m, struct vv_tuple *out)
{
	for (size_t i = 0; i < m->n_shared; i++) {
		uint32_t *rank = &out[m->shared[i].at].rank, other = m->shared[i].right;

		if (m->load[other] < m->load[*rank] || (m->load[other] == m->load[*rank] && other < *rank))
			*rank = other;
		m->load[*rank]++;
	}
}

/* Finds in a histogram the highest bin such that it and those above have at least `want` items.
 * Reduces *want to the number of items still wanted from that bin. */
static uint32_t cut(const uint32_t *hist, size_t *want)
{
	uint32_t bin = HALF - 1;

	for (; bin > 0 && hist[bin] < *want; bin--)
		*want -= hist[bin];
	return bin;
}

/* Keeps the `threshold` most frequent of n, in order. */
static size_t truncate_set(struct merger *m, struct vv_tuple *set, size_t n, size_t threshold)
{
	size_t want = threshold, kept = 0;
	uint32_t most = 0, high = 0, least;

	if (n <= threshold)
		return n;
	for (size_t i = 0; i < n; i++)
		most = set[i].count > most ? set[i].count : most;
	if (most >= HALF) {
		for (size_t i = 0; i < n; i++)
			m->hist[set[i].count / HALF]++;
		high = cut(m->hist, &want);
		memset(m->hist, 0, HALF * sizeof(*m->hist));
	}
	for (size_t i = 0; i < n; i++)
		if (set[i].count / HALF == high)
			m->hist[set[i].count % HALF]++;
	least = high * HALF + cut(m->hist, &want);
	for (size_t i = 0; i < n; i++) {
		bool last = set[i].count == least && want > 0;

		want -= last;
		set[kept] = set[i];
		kept += last | (set[i].count > least);
	}
	return kept;
}

int vv_topk_merge_sets(const struct vv_tuple *left, size_t n_left, const struct vv_tuple *right, size_t n_right, uint32_t ranks,
		  size_t threshold, struct vv_tuple *out, size_t *n_out)
{
	struct merger m = { 0 };
	int rc = VV_ENOMEM;
	size_t n;

	if (n_left > UINT32_MAX / 2 || n_right > UINT32_MAX / 2)
		return vv_err_set(VV_EINVAL, "sets of more than 2^31 digests cannot be merged; use larger chunks");
	m.load = vv_mem_new(ranks, sizeof(*m.load));
	m.shared = vv_mem_grow(NULL, (n_left < n_right ? n_left : n_right) + 1, sizeof(*m.shared));
	m.hist = vv_mem_new(HALF, sizeof(*m.hist));
	if (!m.load || !m.shared || !m.hist)
		goto out;
	rc = check_set(left, n_left, ranks);
	if (rc == 0)
		rc = check_set(right, n_right, ranks);
	if (rc)
		goto out;
	n = walk(&m, left, left + n_left, right, right + n_right, out);
	balance(&m, out);
	*n_out = truncate_set(&m, out, n, threshold);
out:
	vv_mem_free(m.hist);
	vv_mem_free(m.shared);
	vv_mem_free(m.load);
	return rc;
}

/* The largest power of two that is not above `ranks`. */
static uint32_t core_ranks(uint32_t ranks)
{
	uint32_t p = 1;

	while (p <= ranks / 2)
		p *= 2;
	return p;
}

uint32_t vv_topk_merge_steps(uint32_t ranks)
{
	uint32_t core = core_ranks(ranks), n = 0;

	for (uint32_t p = 1; p < core; p *= 2)
		n++;
	return n + (core < ranks ? 2 : 0);
}

/* Before and after the doubling: the ranks beyond the power of two give their sets away, and get
 * the result. */
static struct vv_topk_merge_step fold(uint32_t rank, uint32_t ranks, uint32_t core, bool back)
{
	struct vv_topk_merge_step s = { VV_TOPK_MERGE_NOBODY, VV_TOPK_MERGE_NOBODY, VV_TOPK_MERGE_IGNORE };

	if (rank >= core && back)
		s = (struct vv_topk_merge_step){ VV_TOPK_MERGE_NOBODY, rank - core, VV_TOPK_MERGE_REPLACE };
	else if (rank >= core)
		s.to = rank - core;
	else if (rank < ranks - core && back)
		s.to = rank + core;
	else if (rank < ranks - core)
		s = (struct vv_topk_merge_step){ VV_TOPK_MERGE_NOBODY, rank + core, VV_TOPK_MERGE_SETS };
	return s;
}

void vv_topk_merge_step(uint32_t rank, uint32_t ranks, uint32_t step, struct vv_topk_merge_step *out)
{
	uint32_t core = core_ranks(ranks), last = vv_topk_merge_steps(ranks) - 1, peer;
	bool folds = core < ranks;

	if (folds && (step == 0 || step == last)) {
		*out = fold(rank, ranks, core, step == last);
		return;
	}
	*out = (struct vv_topk_merge_step){ VV_TOPK_MERGE_NOBODY, VV_TOPK_MERGE_NOBODY, VV_TOPK_MERGE_IGNORE };
	if (rank >= core)
		return;
	peer = rank ^ 1u << (step - folds);
	*out = (struct vv_topk_merge_step){ peer, peer, VV_TOPK_MERGE_SETS };
}
