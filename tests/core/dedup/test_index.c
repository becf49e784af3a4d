/* The digest index against a plain list: first place wins, numbers stay, truncation forgets exactly the rest. */
#include "base/err.h"
#include "base/mem.h"
#include "core/dedup/index.h"
#include "core/format/run.h"
#include "support/gen.h"
#include "vv_test.h"

struct naive {
	struct vv_digest digest[6000];
	uint64_t layer[6000], pos[6000];
	bool supersedes[6000];
	size_t n;
};

static struct naive list;

/* Few different digests, so that many occur twice; some differ in one word, or only in bits that the table's slots do
 * not hold. */
static struct vv_digest some_digest(uint64_t *state)
{
	uint64_t k = gen_below(state, 3000);

	switch (k % 4) {
	case 0:
		return (struct vv_digest){ { k, 7 } };
	case 1:
		return (struct vv_digest){ { 7, k << 40 } };
	case 2:
		return (struct vv_digest){ { 7, k } };
	default:
		return (struct vv_digest){ { k * 0x9e3779b97f4a7c15ull, k * 0xbf58476d1ce4e5b9ull } };
	}
}

static uint32_t naive_find(const struct vv_digest *d)
{
	uint32_t found = VV_INDEX_NONE;

	for (size_t i = 0; i < list.n; i++)
		if (vv_digest_equal(&list.digest[i], d) && (found == VV_INDEX_NONE || list.supersedes[i]))
			found = (uint32_t)i;
	return found;
}

static void put_both(struct vv_index *x, struct vv_digest d, uint64_t layer, uint64_t pos, bool supersede)
{
	uint32_t number = 99;

	CHECK_EQ((supersede ? vv_index_supersede : vv_index_add)(x, &d, layer, pos, &number), 0);
	CHECK_EQ(number, list.n);
	list.supersedes[list.n] = supersede;
	list.digest[list.n] = d;
	list.layer[list.n] = layer;
	list.pos[list.n++] = pos;
}

static void add_both(struct vv_index *x, struct vv_digest d, uint64_t layer, uint64_t pos)
{
	put_both(x, d, layer, pos, false);
}

static void check_same(const struct vv_index *x, uint64_t *state)
{
	CHECK_EQ(x->n, list.n);
	for (size_t i = 0; i < list.n; i++) {
		CHECK(vv_digest_equal(&x->digest[i], &list.digest[i]));
		CHECK_EQ(vv_index_layer(x, (uint32_t)i), list.layer[i]);
		CHECK_EQ(vv_index_pos(x, (uint32_t)i), list.pos[i]);
	}
	for (int i = 0; i < 500; i++) {
		struct vv_digest d = some_digest(state);

		vv_index_prefetch(x, &d);
		CHECK_EQ(vv_index_find(x, &d), naive_find(&d));
	}
}

static void test_empty(void)
{
	struct vv_digest d = { { 1, 2 } };
	struct vv_index x = { 0 };

	vv_index_prefetch(&x, &d);
	CHECK_EQ(vv_index_find(&x, &d), VV_INDEX_NONE);
	CHECK_EQ(vv_index_at(&x, 0, 1, 0), VV_INDEX_NONE);
	vv_index_truncate(&x, 0);
	vv_index_truncate(&x, 5);
	vv_index_fini(&x);
}

static void test_against_list(void)
{
	struct vv_index x = { 0 };
	uint64_t state = 1, epoch = 1, pos = 0;

	list.n = 0;
	while (list.n < 5000) {
		if (gen_below(&state, 40) == 0) {
			epoch += 1 + gen_below(&state, 3);
			pos = 0;
		}
		add_both(&x, some_digest(&state), vv_run_layer(epoch, 1), pos);
		pos += 1 + gen_below(&state, 1000);
		if (list.n % 1000 == 0)
			check_same(&x, &state);
	}
	vv_index_fini(&x);
}

/* Up and down; a layer that comes back after a truncation is the same layer. */
static void test_truncate(void)
{
	struct vv_index x = { 0 };
	uint64_t state = 2;

	list.n = 0;
	for (int round = 0; round < 60; round++) {
		size_t keep = gen_below(&state, 10) == 0 ? 0 : (size_t)gen_below(&state, list.n + 1);
		uint64_t layer = vv_run_layer((uint64_t)round + 1, 0), pos = 0;

		for (uint64_t i = gen_below(&state, 300); i > 0 && list.n < 5900; i--, pos += 32)
			add_both(&x, some_digest(&state), layer + (pos > 5000), pos);
		if (round % 3 == 0) {
			vv_index_truncate(&x, keep);
			list.n = keep < list.n ? keep : list.n;
		}
		check_same(&x, &state);
	}
	vv_index_truncate(&x, 0);
	CHECK_EQ(x.n_layers, 0);
	vv_index_fini(&x);
}

static void check_places(const struct vv_index *x, size_t n, uint64_t max_epoch, uint64_t max_pos)
{
	for (uint64_t e = 0; e <= max_epoch; e++)
		for (uint64_t pos = 0; pos <= max_pos; pos++) {
			uint64_t layer = vv_run_layer(e, 0);
			uint32_t want = VV_INDEX_NONE;

			for (size_t i = 0; i < n; i++)
				if (list.layer[i] == layer && list.pos[i] == pos)
					want = (uint32_t)i;
			CHECK_EQ(vv_index_at(x, n, layer, pos), want);
		}
}

static void test_at(void)
{
	struct vv_index x = { 0 };
	uint64_t state = 3;

	list.n = 0;
	for (uint64_t e = 1; e < 6; e++)
		for (uint64_t pos = gen_below(&state, 3); pos < 60; pos += 1 + gen_below(&state, 4))
			add_both(&x, some_digest(&state), vv_run_layer(e, 0), pos);
	for (size_t n = 0; n <= list.n; n += 7)
		check_places(&x, n, 7, 64);
	vv_index_fini(&x);
}

static void test_reserve(void)
{
	struct vv_index x = { 0 };
	uint64_t state = 4;

	list.n = 0;
	for (int round = 0; round < 8; round++) {
		const struct vv_digest *before;

		CHECK_EQ(vv_index_reserve(&x, 600), 0);
		before = x.digest;
		for (int i = 0; i < 600; i++)
			add_both(&x, some_digest(&state), vv_run_layer(1, 0), (uint64_t)list.n * 8);
		CHECK(x.digest == before);
	}
	check_same(&x, &state);
	CHECK_EQ(vv_index_reserve(&x, VV_INDEX_MAX), VV_EINVAL);
	CHECK_EQ(vv_index_reserve(&x, SIZE_MAX), VV_EINVAL);
	CHECK_EQ(vv_index_reserve(&x, SIZE_MAX - x.n + 1), VV_EINVAL);
	CHECK_EQ(vv_index_reserve(&x, 0), 0);
	vv_index_fini(&x);
}

static void test_add_layer(void)
{
	uint64_t state = 5;

	for (int round = 0; round < 200; round++) {
		struct vv_digests d = { 0 };
		struct vv_index x = { 0 };
		size_t k = 0;

		gen_digests(&state, gen_below(&state, 2000), &d);
		CHECK_EQ(vv_index_add_layer(&x, vv_run_layer(9, 2), &d), 0);
		CHECK_EQ(vv_index_add_layer(&x, vv_run_layer(10, 2), &d), 0);
		CHECK_EQ(x.n, 2 * d.n);
		for (size_t g = 0; g < d.n_groups; g++)
			for (uint64_t i = 0; i < d.group[g].count; i++, k++) {
				uint64_t pos = d.group[g].pos + i * d.group[g].chunk;

				CHECK_EQ(vv_index_find(&x, &d.v[k]), k);
				CHECK_EQ(vv_index_at(&x, x.n, vv_run_layer(9, 2), pos), k);
				CHECK_EQ(vv_index_at(&x, x.n, vv_run_layer(10, 2), pos), d.n + k);
			}
		vv_payload_digests_fini(&d);
		vv_index_fini(&x);
	}
}

/* Any choice of entries: those stay, in their order, at their places; sources that nobody names are gone. Where memory cannot be given back, the
 * same. */

static void compact_both(struct vv_index *x, uint64_t *state)
{
	uint32_t *moved = vv_mem_new(x->n, sizeof(*moved)), *source = vv_mem_new(x->n_layers, sizeof(*source));
	size_t n = 0, percent = (size_t)gen_below(state, 101);

	for (size_t i = 0; i < x->n; i++)
		moved[i] = gen_below(state, 100) < percent;
	vv_mem_fail_at(1 + (long)gen_below(state, 5));
	vv_index_compact(x, moved, source);
	vv_mem_fail_at(0);
	for (size_t i = 0; i < list.n; i++)
		if (moved[i]) {
			list.digest[n] = list.digest[i];
			list.layer[n] = list.layer[i];
			list.supersedes[n] = list.supersedes[i];
			list.pos[n] = list.pos[i];
			CHECK_EQ(moved[i], ++n);
		}
	list.n = n;
	for (size_t k = 0; k < x->n_layers; k++) {
		size_t named = 0;

		for (size_t i = 0; i < x->n; i++)
			named += vv_index_from(x, (uint32_t)i) == k;
		CHECK(named);
	}
	vv_mem_free(moved);
	vv_mem_free(source);
}

static void test_compact(void)
{
	struct vv_index x = { 0 };
	uint64_t state = 7;

	list.n = 0;
	for (uint64_t round = 1; round < 80; round++) {
		for (uint64_t i = gen_below(&state, 300), pos = 0; i > 0 && list.n < 5900; i--, pos += 32)
			add_both(&x, some_digest(&state), vv_run_layer(round, 0), pos);
		if (round % 3 == 0)
			compact_both(&x, &state);
		check_same(&x, &state);
	}
	vv_index_fini(&x);
}

/* An index that is cut keeps its slots, so its next entries do not wait for a rehash. One that becomes much smaller does
 * not. */
static void test_compact_keeps_slots(void)
{
	struct vv_index x = { 0 };
	struct vv_digest d = { { 0, 1 } };
	uint32_t moved[5000] = { 0 }, source[1] = { 0 }, number;
	size_t slots;

	for (; d.w[0] < 5000; d.w[0]++, d.w[1] *= 0x9e3779b97f4a7c15u)
		CHECK_EQ(vv_index_add(&x, &d, 1, d.w[0], &number), 0);
	slots = x.n_slots;
	for (size_t i = 2500; i < 5000; i++)
		moved[i] = 1;
	vv_index_compact(&x, moved, source);
	CHECK_EQ(x.n, 2500);
	CHECK_EQ(x.n_slots, slots);
	memset(moved, 0, sizeof(moved));
	memset(source, 0, sizeof(source));
	moved[7] = 1;
	vv_index_compact(&x, moved, source);
	CHECK(x.n == 1 && x.n_slots < slots);
	vv_index_fini(&x);
}

/* What supersedes another is found, also when the index has grown or others have left. */
static void test_supersede(void)
{
	struct vv_digest d = { { 1, 2 } }, other = { { 0, 1ull << 40 } };
	uint32_t *moved, source[3] = { 0 }, number;
	struct vv_index x = { 0 };

	CHECK_EQ(vv_index_add(&x, &d, 1, 0, &number), 0);
	CHECK_EQ(vv_index_supersede(&x, &d, 2, 0, &number), 0);
	for (; other.w[0] < 5000; other.w[0]++)
		CHECK_EQ(vv_index_add(&x, &other, 3, other.w[0], &number), 0);
	CHECK_EQ(vv_index_find(&x, &d), 1);
	moved = vv_mem_new(x.n, sizeof(*moved));
	moved[0] = moved[1] = moved[100] = 1;
	vv_index_compact(&x, moved, source);
	CHECK_EQ(vv_index_find(&x, &d), 1);
	memset(source, 0, sizeof(source));
	memset(moved, 0, 3 * sizeof(*moved));
	moved[0] = 1; /* the other one goes: this is what there is */
	vv_index_compact(&x, moved, source);
	CHECK_EQ(vv_index_find(&x, &d), 0);
	CHECK_EQ(vv_index_layer(&x, 0), 1);
	CHECK_EQ(x.n_layers, 1);
	vv_mem_free(moved);
	vv_index_fini(&x);
}

/* Adding, superseding, truncating and compacting in any order: what is found is what would be found if only the entries that
 * are left had been added. */
static void test_supersede_any_order(void)
{
	struct vv_index x = { 0 };
	uint64_t state = 9;

	list.n = 0;
	for (uint64_t round = 1; round < 150; round++) {
		for (uint64_t i = gen_below(&state, 200), pos = 0; i > 0 && list.n < 5900; i--, pos += 32)
			put_both(&x, some_digest(&state), vv_run_layer(round, 0), pos, gen_below(&state, 3) == 0);
		check_same(&x, &state);
		if (gen_below(&state, 2)) {
			size_t keep = list.n - (size_t)gen_below(&state, list.n / 4 + 1);

			vv_index_truncate(&x, keep);
			list.n = keep;
		}
		if (round % 7 == 0)
			compact_both(&x, &state);
		check_same(&x, &state);
	}
	vv_index_fini(&x);
}

/* What an entry was added for is not found any more, and can be added again; all others are. */
static void test_rename(void)
{
	enum { N = 5000, OTHER = 7 };
	struct vv_index x = { 0 };
	struct vv_digest d = { { 0 } };
	uint32_t number;

	for (uint64_t i = 0; i < N; i++) {
		d = (struct vv_digest){ { i % 3000, i << 32 } };
		CHECK_EQ(vv_index_add(&x, &d, vv_run_layer(1, 0), i, &number), 0);
	}
	for (uint64_t i = 0; i < N; i += OTHER)
		vv_index_rename(&x, (uint32_t)i, &(struct vv_digest){ { i, ~i } });
	for (uint64_t i = 0; i < N; i++) {
		d = (struct vv_digest){ { i % 3000, i << 32 } };
		CHECK_EQ(vv_index_find(&x, &d), i % OTHER ? i : VV_INDEX_NONE);
	}
	for (uint64_t i = 0; i < N; i += OTHER) {
		d = (struct vv_digest){ { i % 3000, i << 32 } };
		CHECK_EQ(vv_index_add(&x, &d, vv_run_layer(2, 0), i, &number), 0);
		CHECK_EQ(vv_index_find(&x, &d), number);
	}
	vv_index_truncate(&x, N);
	CHECK_EQ(vv_index_find(&x, &(struct vv_digest){ { OTHER, ~(uint64_t)OTHER } }), OTHER);
	vv_index_fini(&x);
}

/* A limit is the caller's error, not a want of memory. */
static void test_limits(void)
{
	struct vv_digest d = { { 1, 2 } };
	struct vv_index x = { 0 };
	uint32_t number;

	CHECK_EQ(vv_index_add(&x, &d, 1, 1ull << 40, &number), VV_EINVAL);
	CHECK_EQ(vv_index_add(&x, &d, 1, (1ull << 40) - 1, &number), 0);
	CHECK_EQ(vv_index_pos(&x, number), (1ull << 40) - 1);
	CHECK_EQ(vv_index_layer(&x, number), 1);
	vv_mem_free(x.layer);
	x.layer = vv_mem_new(1 << 24, sizeof(*x.layer));
	CHECK(x.layer);
	x.n_layers = x.layers_cap = 1 << 24;
	CHECK_EQ(vv_index_add(&x, &d, 1, 0, &number), VV_EINVAL);
	CHECK(strstr(vv_err_last(), "2^24 layers"));
	vv_index_fini(&x);
	x.n = x.cap = VV_INDEX_MAX; /* pretended: nothing is touched before the limit */
	CHECK_EQ(vv_index_add(&x, &d, 1, 0, &number), VV_EINVAL);
	CHECK(strstr(vv_err_last(), "its limit is"));
	vv_index_fini(&x);
}

/* Whatever allocation fails, what was there before is still found, and nothing that was not added. */
static void test_no_memory(void)
{
	for (long k = 1; k < 12; k++) {
		struct vv_index x = { 0 };
		uint64_t state = 6;
		uint32_t number;

		list.n = 0;
		vv_mem_fail_at(k);
		for (int i = 0; i < 4000; i++) {
			struct vv_digest d = some_digest(&state);
			uint64_t layer = (uint64_t)i / 10 + 1;
			int rc = vv_index_add(&x, &d, layer, 5, &number);

			CHECK(rc == 0 || rc == VV_ENOMEM);
			if (rc)
				continue;
			list.supersedes[list.n] = false;
			list.digest[list.n] = d;
			list.layer[list.n] = layer;
			list.pos[list.n++] = 5;
		}
		CHECK(vv_mem_asked() >= k);
		CHECK_EQ(list.n, 3999);
		check_same(&x, &state);
		vv_mem_fail_at(1);
		vv_index_truncate(&x, 100);
		list.n = 100;
		vv_mem_fail_at(0);
		check_same(&x, &state);
		vv_index_fini(&x);
	}
}

int main(void)
{
	test_empty();
	test_against_list();
	test_truncate();
	test_at();
	test_reserve();
	test_add_layer();
	test_compact();
	test_compact_keeps_slots();
	test_supersede();
	test_supersede_any_order();
	test_rename();
	test_limits();
	test_no_memory();
	return 0;
}
