/* What a home rank remembers against a plain array, through growth, loss and fullness; and the reading of its messages. */
#include "base/err.h"
#include "base/mem.h"
#include "core/ranks/owner_index.h"
#include "support/owner_trial.h"
#include "support/gen.h"
#include "vv_test.h"

enum { CONTENTS = 5000 };

/* All in one corner of any table, so that probes are long and removals must mend them. */
static struct vv_digest crowded(uint32_t content)
{
	return (struct vv_digest){ { content, (uint64_t)(content % 3) << 40 | 7 } };
}

static void test_memory(struct vv_digest (*digest)(uint32_t), uint32_t contents)
{
	static uint32_t owner[CONTENTS];
	struct vv_owner_index j;
	uint64_t state = 11;
	size_t n = 0;

	vv_owner_index_init(&j, SIZE_MAX);
	memset(owner, 0xff, sizeof(owner));
	for (int i = 0; i < 60000; i++) {
		uint32_t content = (uint32_t)gen_below(&state, contents), rank = (uint32_t)gen_below(&state, VV_OWNER_INDEX_RANKS_MAX);
		struct vv_digest d = digest(content);

		vv_owner_index_prefetch(&j, &d);
		CHECK_EQ(vv_owner_index_find(&j, &d), owner[content]);
		n -= owner[content] != VV_OWNER_INDEX_NOBODY;
		if (gen_below(&state, 3)) {
			vv_owner_index_add(&j, rank, &d, 1);
			owner[content] = rank;
			n++;
		} else {
			vv_owner_index_forget(&j, &d);
			owner[content] = VV_OWNER_INDEX_NOBODY;
		}
		CHECK_EQ(j.n, n);
	}
	for (uint32_t content = 0; content < contents; content++) {
		struct vv_digest d = digest(content);

		CHECK_EQ(vv_owner_index_find(&j, &d), owner[content]);
	}
	vv_owner_index_fini(&j);
}

static void test_full(void)
{
	struct vv_digest d[200];
	struct vv_owner_index j;

	for (uint32_t i = 0; i < 200; i++)
		d[i] = owner_trial_digest(i);
	vv_owner_index_init(&j, 100);
	vv_owner_index_add(&j, 5, d, 100);
	CHECK_EQ(j.n, 100);
	CHECK_EQ(vv_owner_index_find(&j, &d[0]), 5);
	vv_owner_index_add(&j, 7, &d[100], 1); /* the older half goes */
	CHECK_EQ(j.n, 51);
	CHECK_EQ(vv_owner_index_find(&j, &d[49]), VV_OWNER_INDEX_NOBODY);
	CHECK_EQ(vv_owner_index_find(&j, &d[50]), 5);
	CHECK_EQ(vv_owner_index_find(&j, &d[100]), 7);
	vv_owner_index_add(&j, 6, &d[50], 10); /* what is said again is young again */
	vv_owner_index_add(&j, 8, &d[101], 39);
	CHECK_EQ(j.n, 90);
	vv_owner_index_add(&j, 8, &d[140], 1);
	CHECK_EQ(vv_owner_index_find(&j, &d[59]), 6);
	CHECK_EQ(vv_owner_index_find(&j, &d[60]), VV_OWNER_INDEX_NOBODY);
	vv_owner_index_add(&j, 8, d, 200);
	CHECK(j.n <= 100);
	for (uint32_t i = 150; i < 200; i++)
		CHECK_EQ(vv_owner_index_find(&j, &d[i]), 8);
	vv_owner_index_set_cap(&j, 20);
	for (uint32_t i = 0; i < 40; i++)
		vv_owner_index_add(&j, 9, &d[i], 1);
	CHECK(j.n <= 20);
	CHECK_EQ(vv_owner_index_find(&j, &d[39]), 9);
	vv_owner_index_set_cap(&j, 0);
	CHECK_EQ(j.n, 0);
	CHECK_EQ(vv_owner_index_find(&j, &d[39]), VV_OWNER_INDEX_NOBODY);
	vv_owner_index_fini(&j);
	vv_owner_index_init(&j, 0);
	vv_owner_index_add(&j, 1, d, 200);
	vv_owner_index_forget(&j, d);
	CHECK_EQ(vv_owner_index_find(&j, d), VV_OWNER_INDEX_NOBODY);
	vv_owner_index_fini(&j);
}

/* Without memory to grow it forgets, and goes on. */
static void test_no_memory(void)
{
	struct vv_owner_index j;
	struct vv_digest d;

	vv_owner_index_init(&j, SIZE_MAX);
	for (uint32_t i = 0; i < 3000; i++) {
		d = owner_trial_digest(i);
		vv_mem_fail_at(i == 0 || i == 2500 ? 1 : 0);
		vv_owner_index_add(&j, i, &d, 1);
	}
	vv_mem_fail_at(0);
	CHECK_EQ(vv_owner_index_find(&j, &d), 2999);
	CHECK(j.n > 0 && j.n < 3000);
	vv_owner_index_fini(&j);
}

/* Whatever is added, said again and forgotten: the counts are right, and the newest half of what is allowed is there. */
static void test_generations(void)
{
	enum { IDS = 600, CAP = 128 };
	static uint32_t order[IDS]; /* when it was last added; 0 = forgotten */
	uint32_t now = 0, young;
	struct vv_owner_index j;
	size_t n;

	memset(order, 0, sizeof(order));
	vv_owner_index_init(&j, CAP);
	for (uint64_t k = 0; k < 20000; k++) {
		uint32_t i = (uint32_t)(owner_trial_digest((uint32_t)k).w[0] % IDS);
		struct vv_digest d = owner_trial_digest(i);

		if (k % 7 == 3) {
			vv_owner_index_forget(&j, &d);
			order[i] = 0;
		} else {
			vv_owner_index_add(&j, i % 50, &d, 1);
			order[i] = ++now;
		}
		CHECK(j.n <= CAP);
	}
	n = young = 0;
	for (uint32_t i = 0; i < IDS; i++) {
		struct vv_digest d = owner_trial_digest(i);
		uint32_t rank = vv_owner_index_find(&j, &d);

		n += rank != VV_OWNER_INDEX_NOBODY;
		CHECK(rank == VV_OWNER_INDEX_NOBODY || (order[i] && rank == i % 50));
		CHECK(rank != VV_OWNER_INDEX_NOBODY || !order[i] || order[i] + CAP / 2 <= now);
	}
	for (size_t i = 0; i <= j.mask; i++)
		young += j.slot[i].owner && j.slot[i].generation == j.generation;
	CHECK_EQ(n, j.n);
	CHECK_EQ(young, j.young);
	vv_owner_index_fini(&j);
}

static void test_partition(void)
{
	for (uint32_t ranks = 1; ranks <= 65536; ranks = ranks * 3 + 1) {
		struct vv_digest low = { { 0, 0 } }, high = { { UINT64_MAX, 0 } };

		CHECK_EQ(vv_owner_index_home(&low, ranks), 0);
		CHECK_EQ(vv_owner_index_home(&high, ranks), ranks - 1);
	}
	CHECK_EQ(vv_owner_index_tag_len(vv_owner_index_tag(VV_OWNER_INDEX_LEN_MAX, UINT64_MAX)), VV_OWNER_INDEX_LEN_MAX);
	CHECK_EQ(vv_owner_index_tag_segment(vv_owner_index_tag(VV_OWNER_INDEX_LEN_MAX, 16 * 2048 + 35)), 2);
}

static void test_verdicts(void)
{
	const uint32_t good[] = { vv_owner_index_decision(VV_OWNER_INDEX_STORE, 2), vv_owner_index_decision(VV_OWNER_INDEX_STORE_SHARED, 2),
				  vv_owner_index_decision(VV_OWNER_INDEX_REMOTE, 0), vv_owner_index_decision(VV_OWNER_INDEX_REMOTE_OLD, 3) };
	const uint32_t bad[] = { vv_owner_index_decision(VV_OWNER_INDEX_STORE, 1), vv_owner_index_decision(VV_OWNER_INDEX_STORE_SHARED, 3),
				 vv_owner_index_decision(VV_OWNER_INDEX_REMOTE, 2), vv_owner_index_decision(VV_OWNER_INDEX_REMOTE, 4),
				 vv_owner_index_decision(VV_OWNER_INDEX_REMOTE_OLD, 2),   vv_owner_index_decision(VV_OWNER_INDEX_REMOTE_OLD, VV_OWNER_INDEX_RANKS_MAX),
				 UINT32_MAX };

	CHECK_EQ(vv_owner_index_check(good, 4, 2, 4), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_EQ(vv_owner_index_check(&bad[i], 1, 2, 4), VV_EPEER);
	CHECK_EQ(vv_owner_index_count_shared(good, 4), 1);
	CHECK_EQ(vv_owner_index_count_words(good, 4, 1), 3);
	CHECK_EQ(vv_owner_index_count_words(good, 4, 3), 2 + 3 + 2);
}

static void test_where(void)
{
	const uint32_t old = vv_owner_index_decision(VV_OWNER_INDEX_REMOTE_OLD, 0), refer = vv_owner_index_decision(VV_OWNER_INDEX_REMOTE, 0),
		       lend = vv_owner_index_decision(VV_OWNER_INDEX_STORE_SHARED, 1);
	uint64_t word[8] = { 9, 70, 80, 3 * VV_OWNER_INDEX_POS_MAX + 5, VV_OWNER_INDEX_NO_COPY, VV_OWNER_INDEX_NO_COPY, 2 * VV_OWNER_INDEX_POS_MAX };
	struct vv_owner_index_location w;
	size_t at = 0;

	CHECK_EQ(vv_owner_index_next_location(word, &at, old, 4, 3, &w), 0);
	CHECK(w.layer == 9 && w.pos == 70 && !w.copy && at == 2);
	CHECK_EQ(vv_owner_index_next_location(word, &at, refer, 4, 3, &w), 0);
	CHECK(w.pos == 80 && w.copy == &word[3] && at == 5);
	CHECK_EQ(vv_owner_index_next_location(word, &at, lend, 4, 3, &w), 0);
	CHECK(w.copy == &word[5] && at == 7);
	at = 2;
	CHECK_EQ(vv_owner_index_next_location(word, &at, refer, 3, 3, &w), VV_EPEER); /* a copy at a rank that there is not */
	CHECK_EQ(at, 2);
	CHECK_EQ(vv_owner_index_next_location(word, &at, refer, 3, 1, &w), 0);
	CHECK(!w.copy && at == 3);
	word[2] = VV_OWNER_INDEX_POS_MAX;
	at = 2;
	CHECK_EQ(vv_owner_index_next_location(word, &at, refer, 4, 1, &w), VV_EPEER);
	word[0] = at = 0;
	CHECK_EQ(vv_owner_index_next_location(word, &at, old, 4, 1, &w), VV_EPEER);
}

int main(void)
{
	test_memory(owner_trial_digest, CONTENTS);
	test_memory(crowded, 60);
	test_full();
	test_generations();
	test_no_memory();
	test_partition();
	test_verdicts();
	test_where();
	return 0;
}
