/* HASH_MERGER against a transcription of the paper's algorithm 2 by brute force, and the all-reduce of it among simulated ranks. */
#include "base/err.h"
#include "base/mem.h"
#include "core/ranks/topk_merge.h"
#include "support/gen.h"
#include "vv_test.h"

enum { MAX_RANKS = 37, MAX_SET = 400 };

struct set {
	struct vv_tuple v[2 * MAX_SET];
	size_t n;
};

static int by_digest(const void *a, const void *b)
{
	const struct vv_tuple *x = a, *y = b;

	return vv_topk_merge_before(&x->digest, &y->digest) ? -1 : vv_topk_merge_before(&y->digest, &x->digest);
}

/* Some differ only in the second word. */
static struct vv_digest digest_of(uint64_t k)
{
	return (struct vv_digest){ { (k / 3) * 0x9e3779b97f4a7c15ull, k * 0xbf58476d1ce4e5b9ull } };
}

static const struct vv_tuple *find(const struct set *s, struct vv_digest d)
{
	for (size_t i = 0; i < s->n; i++)
		if (vv_digest_equal(&s->v[i].digest, &d))
			return &s->v[i];
	return NULL;
}

static void sort(struct set *s)
{
	qsort(s->v, s->n, sizeof(s->v[0]), by_digest);
}

/* Line by line; "for all" is in the order of digests, a tie of loads goes to the lower rank, of what is minimal the highest
 * digest is removed first. */
static void paper(const struct set *left, const struct set *right, size_t threshold, struct set *result)
{
	uint32_t page_load[MAX_RANKS] = { 0 };

	result->n = 0;
	for (size_t i = 0; i < left->n; i++)
		if (!find(right, left->v[i].digest)) {
			result->v[result->n++] = left->v[i];
			page_load[left->v[i].rank]++;
		}
	for (size_t i = 0; i < right->n; i++)
		if (!find(left, right->v[i].digest)) {
			result->v[result->n++] = right->v[i];
			page_load[right->v[i].rank]++;
		}
	for (size_t i = 0; i < left->n; i++) {
		const struct vv_tuple *a = &left->v[i], *b = find(right, a->digest);
		uint32_t r;

		if (!b)
			continue;
		if (page_load[a->rank] == page_load[b->rank])
			r = a->rank < b->rank ? a->rank : b->rank;
		else
			r = page_load[a->rank] < page_load[b->rank] ? a->rank : b->rank;
		result->v[result->n++] = (struct vv_tuple){ a->digest, a->count + b->count, r };
		page_load[r]++;
	}
	while (result->n > threshold) {
		size_t least = 0;

		for (size_t i = 1; i < result->n; i++)
			if (result->v[i].count < result->v[least].count ||
			    (result->v[i].count == result->v[least].count && by_digest(&result->v[least], &result->v[i]) < 0))
				least = i;
		result->v[least] = result->v[--result->n];
	}
	sort(result);
}

static void random_set(uint64_t *state, uint64_t kinds, uint32_t lo, uint32_t hi, uint32_t max_count, struct set *out)
{
	size_t n = gen_below(state, MAX_SET);

	out->n = 0;
	for (size_t i = 0; i < n; i++) {
		struct vv_digest d = digest_of(gen_below(state, kinds));

		if (!find(out, d))
			out->v[out->n++] = (struct vv_tuple){ d, 1 + (uint32_t)gen_below(state, max_count),
							      lo + (uint32_t)gen_below(state, hi - lo) };
	}
	sort(out);
}

static void same(const struct set *a, const struct set *b)
{
	CHECK_EQ(a->n, b->n);
	CHECK(memcmp(a->v, b->v, a->n * sizeof(a->v[0])) == 0);
}

static void merge(const struct set *l, const struct set *r, uint32_t ranks, size_t threshold, struct set *out)
{
	CHECK_EQ(vv_topk_merge_sets(l->v, l->n, r->v, r->n, ranks, threshold, out->v, &out->n), 0);
}

static void test_paper(void)
{
	static struct set l, r, ours, theirs;
	uint64_t state = 1;

	for (int round = 0; round < 400; round++) {
		uint64_t kinds = 1 + gen_below(&state, 600);
		uint32_t ranks = 2 + (uint32_t)gen_below(&state, MAX_RANKS - 2), mid = 1 + (uint32_t)gen_below(&state, ranks - 1);
		uint32_t counts = round % 3 == 0 ? 1 : round % 3 == 1 ? 5 : 400000;
		size_t threshold = gen_below(&state, 2 * MAX_SET);

		random_set(&state, kinds, 0, mid, counts, &l);
		random_set(&state, kinds, mid, ranks, counts, &r);
		paper(&l, &r, threshold, &theirs);
		merge(&l, &r, ranks, threshold, &ours);
		same(&ours, &theirs);
		merge(&r, &l, ranks, threshold, &ours); /* which one is left does not matter */
		same(&ours, &theirs);
	}
}

/* Both sets from any rank: the paper's "if there is a choice". */
static void test_same_rank(void)
{
	struct vv_tuple l[] = { { digest_of(1), 3, 1 } }, r[] = { { digest_of(1), 4, 1 } }, out[2];
	size_t n;

	CHECK_EQ(vv_topk_merge_sets(l, 1, r, 1, 2, 10, out, &n), 0);
	CHECK_EQ(n, 1);
	CHECK_EQ(out[0].count, 7);
	CHECK_EQ(out[0].rank, 1);
	l[0].count = UINT32_MAX - 2;
	CHECK_EQ(vv_topk_merge_sets(l, 1, r, 1, 2, 10, out, &n), 0);
	CHECK_EQ(out[0].count, UINT32_MAX);
	CHECK_EQ(vv_topk_merge_sets(l, 1, r, 1, 2, 0, out, &n), 0);
	CHECK_EQ(n, 0);
	CHECK_EQ(vv_topk_merge_sets(l, 0, r, 0, 2, 5, out, &n), 0);
	CHECK_EQ(n, 0);
}

static void test_hostile(void)
{
	struct vv_tuple good[] = { { digest_of(1), 1, 0 }, { digest_of(5), 1, 1 } }, bad[2], out[4];
	size_t n = 77;

	qsort(good, 2, sizeof(good[0]), by_digest);
	for (int kind = 0; kind < 4; kind++) {
		memcpy(bad, good, sizeof(bad));
		if (kind == 0)
			bad[1].rank = 2;
		else if (kind == 1)
			bad[0].count = 0;
		else if (kind == 2)
			bad[1].digest = bad[0].digest;
		else
			memcpy(bad, (struct vv_tuple[]){ good[1], good[0] }, sizeof(bad));
		CHECK_EQ(vv_topk_merge_sets(good, 2, bad, 2, 2, 9, out, &n), VV_EPEER);
		CHECK_EQ(vv_topk_merge_sets(bad, 2, good, 2, 2, 9, out, &n), VV_EPEER);
		CHECK_EQ(n, 77);
	}
	for (long at = 1; at <= 3; at++) {
		vv_mem_fail_at(at);
		CHECK_EQ(vv_topk_merge_sets(good, 2, good, 2, 2, 9, out, &n), VV_ENOMEM);
	}
	vv_mem_fail_at(0);
	CHECK_EQ(vv_topk_merge_sets(good, 2, good, 2, 2, 9, out, &n), 0);
}

/* ---- the all-reduce */

static struct set now[MAX_RANKS], next[MAX_RANKS], before[MAX_RANKS];

static void all_reduce(uint32_t ranks, size_t threshold)
{
	for (uint32_t step = 0; step < vv_topk_merge_steps(ranks); step++) {
		for (uint32_t r = 0; r < ranks; r++) {
			struct vv_topk_merge_step s, peer;

			vv_topk_merge_step(r, ranks, step, &s);
			if (s.to != VV_TOPK_MERGE_NOBODY) { /* who sends is awaited */
				CHECK(s.to < ranks && s.to != r);
				vv_topk_merge_step(s.to, ranks, step, &peer);
				CHECK_EQ(peer.from, r);
			}
			if (s.from != VV_TOPK_MERGE_NOBODY) {
				CHECK(s.from < ranks && s.from != r);
				vv_topk_merge_step(s.from, ranks, step, &peer);
				CHECK_EQ(peer.to, r);
			}
			CHECK_EQ(s.what == VV_TOPK_MERGE_IGNORE, s.from == VV_TOPK_MERGE_NOBODY);
			if (s.what == VV_TOPK_MERGE_SETS)
				merge(&now[r], &now[s.from], ranks, threshold, &next[r]);
			else
				next[r] = s.what == VV_TOPK_MERGE_REPLACE ? now[s.from] : now[r];
		}
		memcpy(now, next, ranks * sizeof(now[0]));
	}
}

static uint32_t held_by(struct vv_digest d, uint32_t ranks)
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < ranks; r++)
		n += find(&before[r], d) != NULL;
	return n;
}

/* Nothing was cut off: everything is there, with its count, and the owner holds it. */
static void check_complete(uint32_t ranks)
{
	for (uint32_t r = 0; r < ranks; r++)
		for (size_t i = 0; i < before[r].n; i++) {
			const struct vv_tuple *t = find(&now[0], before[r].v[i].digest);

			CHECK(t != NULL);
			CHECK_EQ(t->count, held_by(t->digest, ranks));
			CHECK(t->rank < ranks && find(&before[t->rank], t->digest));
		}
}

static void test_all_reduce(void)
{
	uint64_t state = 2;

	CHECK_EQ(vv_topk_merge_steps(1), 0);
	CHECK_EQ(vv_topk_merge_steps(8), 3);
	CHECK_EQ(vv_topk_merge_steps(9), 5);
	for (uint32_t ranks = 1; ranks <= 12; ranks++) {
		for (int round = 0; round < 12; round++) {
			bool cut = round % 2;
			size_t threshold = cut ? 1 + gen_below(&state, 20) : 2 * MAX_SET;

			for (uint32_t r = 0; r < ranks; r++) /* few kinds: the union has room in a set */
				random_set(&state, 1 + gen_below(&state, MAX_SET), r, r + 1, 1, &before[r]);
			memcpy(now, before, ranks * sizeof(now[0]));
			all_reduce(ranks, threshold);
			for (uint32_t r = 1; r < ranks; r++)
				same(&now[r], &now[0]);
			if (!cut)
				check_complete(ranks);
			else
				CHECK(ranks == 1 || now[0].n <= threshold);
		}
	}
}

/* Two ranks, one merge: what was cut off is nowhere more frequent than what stayed. */
static void test_truncation(void)
{
	static struct set l, r, whole, some;
	uint64_t state = 3;

	for (int round = 0; round < 50; round++) {
		uint32_t least = UINT32_MAX;
		size_t threshold = gen_below(&state, 300);

		random_set(&state, 500, 0, 3, 70000, &l);
		random_set(&state, 500, 3, 5, 70000, &r);
		merge(&l, &r, 5, SIZE_MAX, &whole);
		merge(&l, &r, 5, threshold, &some);
		CHECK_EQ(some.n, whole.n < threshold ? whole.n : threshold);
		for (size_t i = 0; i < some.n; i++)
			least = some.v[i].count < least ? some.v[i].count : least;
		for (size_t i = 0; i < whole.n; i++)
			CHECK(find(&some, whole.v[i].digest) || whole.v[i].count <= least);
	}
}

/* All ranks hold the same: the owners are balanced. */
static void test_balance(void)
{
	for (uint32_t ranks = 2; ranks <= 16; ranks *= 2) {
		uint32_t load[MAX_RANKS] = { 0 }, most = 0;

		for (uint32_t r = 0; r < ranks; r++) {
			before[r].n = 320;
			for (size_t i = 0; i < 320; i++)
				before[r].v[i] = (struct vv_tuple){ digest_of(i), 1, r };
			sort(&before[r]);
		}
		memcpy(now, before, ranks * sizeof(now[0]));
		all_reduce(ranks, 320);
		for (size_t i = 0; i < 320; i++)
			load[now[0].v[i].rank]++;
		for (uint32_t r = 0; r < ranks; r++)
			most = load[r] > most ? load[r] : most;
		CHECK(most <= 320 / ranks * 2); /* the paper's owners are balanced pair by pair */
	}
}

int main(void)
{
	test_paper();
	test_same_rank();
	test_hostile();
	test_all_reduce();
	test_truncation();
	test_balance();
	return 0;
}
