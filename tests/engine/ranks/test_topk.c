// ctest: COST 2
/* The all-reduce of Nicolae 2013's merge among threads: every rank ends with the set that the plan gives, or all fail together. */
#include "base/err.h"
#include "base/mem.h"
#include "engine/ranks/topk.h"
#include "support/gen.h"
#include "support/threadcomm.h"
#include "vv_test.h"

enum { MAX_RANKS = 9, MAX_SET = 3000 };

struct round {
	uint32_t ranks;
	size_t threshold;
	struct vv_tuple *set[MAX_RANKS];
	size_t n[MAX_RANKS];
	long fail_at; /* this allocation, of all ranks together */
	uint32_t spoilt; /* this rank's set is out of order */
	struct vv_tuple *result[MAX_RANKS];
	size_t n_result[MAX_RANKS];
	int rc[MAX_RANKS];
	uint64_t sent[MAX_RANKS];
};

static int by_digest(const void *a, const void *b)
{
	const struct vv_tuple *x = a, *y = b;

	return vv_topk_merge_before(&x->digest, &y->digest) ? -1 : vv_topk_merge_before(&y->digest, &x->digest);
}

/* Some of the content 0..kinds-1; never the same twice. */
static void fill(struct round *r, uint64_t *state)
{
	uint64_t kinds = 1 + gen_below(state, MAX_SET);

	for (uint32_t k = 0; k < r->ranks; k++) {
		size_t n = 0;

		r->set[k] = vv_mem_new(MAX_SET, sizeof(*r->set[k]));
		CHECK(r->set[k] != NULL);
		for (uint64_t i = 0; i < kinds; i++)
			if (gen_below(state, 3))
				r->set[k][n++] = (struct vv_tuple){ { { i * 0x9e3779b97f4a7c15ull, i } }, 1, k };
		qsort(r->set[k], n, sizeof(*r->set[k]), by_digest);
		r->n[k] = n;
	}
}

static void rank_main(const struct varve_comm *plug, void *arg)
{
	struct round *r = arg;
	uint32_t k = plug->rank;
	struct vv_tuple *mine = vv_mem_new(MAX_SET, sizeof(*mine));
	struct vv_comm *c;
	uint64_t sum = 0;

	CHECK(mine != NULL);
	memcpy(mine, r->set[k], r->n[k] * sizeof(*mine));
	if (k == r->spoilt && r->n[k] > 1)
		mine[1] = mine[0];
	CHECK_EQ(vv_comm_open(plug, plug->ctx, 60, &c), 0);
	CHECK_EQ(vv_comm_allreduce(c, &sum, 1, VARVE_SUM), 0); /* all have opened: from here on allocations may fail */
	if (k == 0)
		vv_mem_fail_at(r->fail_at);
	CHECK_EQ(vv_comm_allreduce(c, &sum, 1, VARVE_SUM), 0);
	c->sent = 0;
	r->rc[k] = vv_topk_allreduce(c, mine, r->n[k], r->threshold, &r->result[k], &r->n_result[k]);
	CHECK(!c->broken);
	r->sent[k] = c->sent;
	CHECK_EQ(vv_comm_allreduce(c, &sum, 1, VARVE_SUM), 0);
	vv_comm_close(c);
}

static void run(struct round *r)
{
	threadcomm_run(r->ranks, rank_main, r);
	vv_mem_fail_at(0);
}

static void release(struct round *r)
{
	for (uint32_t k = 0; k < r->ranks; k++) {
		vv_mem_free(r->set[k]);
		if (r->rc[k] == 0)
			vv_mem_free(r->result[k]);
	}
}

/* Where nothing is cut off, the result is the union with exact counts, whatever the order of merges. */
static void check_union(const struct round *r)
{
	for (uint32_t k = 0; k < r->ranks; k++)
		for (size_t i = 0; i < r->n[k]; i++) {
			const struct vv_tuple *t = bsearch(&r->set[k][i], r->result[0], r->n_result[0], sizeof(*t), by_digest);
			uint32_t held = 0;

			CHECK(t != NULL);
			for (uint32_t j = 0; j < r->ranks; j++)
				held += bsearch(t, r->set[j], r->n[j], sizeof(*t), by_digest) != NULL;
			CHECK_EQ(t->count, held);
			CHECK(bsearch(t, r->set[t->rank], r->n[t->rank], sizeof(*t), by_digest) != NULL);
		}
}

static void test_result(void)
{
	uint64_t state = 21;

	for (int i = 0; i < 27; i++) {
		struct round r = { .ranks = 1 + (uint32_t)i % MAX_RANKS, .spoilt = UINT32_MAX };

		r.threshold = i % 3 == 2 ? SIZE_MAX : gen_below(&state, 500);
		fill(&r, &state);
		if (i == 10)
			r.n[0] = 0;
		run(&r);
		for (uint32_t k = 0; k < r.ranks; k++) {
			CHECK_EQ(r.rc[k], 0);
			CHECK_EQ(r.n_result[k], r.n_result[0]);
			CHECK(memcmp(r.result[k], r.result[0], r.n_result[0] * sizeof(struct vv_tuple)) == 0);
		}
		CHECK(r.ranks == 1 || r.n_result[0] <= r.threshold);
		if (r.threshold == SIZE_MAX)
			check_union(&r);
		CHECK_EQ(r.sent[0] > 0, r.ranks > 1);
		release(&r);
	}
}

static void check_failed(struct round *r, int code)
{
	int own = 0;

	for (uint32_t k = 0; k < r->ranks; k++) {
		CHECK(r->rc[k] == code || r->rc[k] == VV_EPEER);
		own += r->rc[k] == code;
	}
	CHECK(own > 0);
}

/* Every allocation fails once: all ranks come back, with the same verdict. */
static void test_failure(void)
{
	uint64_t state = 22;
	int failures = 0;

	for (uint32_t ranks = 2; ranks <= 5; ranks++)
		for (long at = 1; at < 200; at++) {
			struct round r = { .ranks = ranks, .spoilt = UINT32_MAX, .threshold = 100, .fail_at = at };
			bool failed;

			fill(&r, &state);
			run(&r);
			failed = r.rc[0] != 0;
			if (failed)
				check_failed(&r, VV_ENOMEM);
			for (uint32_t k = 0; k < ranks; k++)
				CHECK_EQ(r.rc[k] != 0, failed);
			release(&r);
			failures += failed;
			if (!failed)
				break;
		}
	CHECK(failures > 30);
}

static void test_spoilt(void)
{
	uint64_t state = 23;

	for (uint32_t ranks = 2; ranks <= 6; ranks++)
		for (uint32_t spoilt = 0; spoilt < ranks; spoilt++) {
			struct round r = { .ranks = ranks, .spoilt = spoilt, .threshold = 50 };

			fill(&r, &state);
			while (r.n[spoilt] < 2) {
				release(&r);
				fill(&r, &state);
			}
			run(&r);
			check_failed(&r, VV_EPEER);
			release(&r);
		}
}

int main(void)
{
	test_result();
	test_failure();
	test_spoilt();
	return 0;
}
