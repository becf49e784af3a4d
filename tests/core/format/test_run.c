/* Runs against a model that knows the layer and position of every single byte. */
#include "base/err.h"
#include "base/mem.h"
#include "core/format/run.h"
#include "support/gen.h"
#include "vv_test.h"

enum { MAX = 120 };

struct byte { /* where a byte lives */
	int known;
	uint64_t layer, pos;
};

static void spread(const struct vv_runs *r, struct byte model[MAX])
{
	memset(model, 0, MAX * sizeof(*model));
	for (size_t i = 0; i < r->n; i++)
		for (uint64_t k = 0; k < r->v[i].len; k++) {
			struct byte *b = &model[r->v[i].at + k];

			CHECK(!b->known);
			*b = (struct byte){ 1, r->v[i].layer, r->v[i].layer ? r->v[i].pos + k : 0 };
		}
}

static int continues(const struct byte *a, const struct byte *b)
{
	return a->known && b->known && a->layer == b->layer && (a->layer == 0 || a->pos + 1 == b->pos);
}

/* The runs say what the model says, in order, with no two that should be one. */
static void check_table(const struct vv_runs *r, const struct byte model[MAX])
{
	struct byte got[MAX];
	size_t runs = 0;

	spread(r, got);
	CHECK(memcmp(got, model, sizeof(got)) == 0);
	for (size_t i = 0; i < MAX; i++)
		runs += model[i].known && (i == 0 || !continues(&model[i - 1], &model[i]));
	CHECK_EQ(r->n, runs);
	for (size_t i = 0; i < r->n; i++) {
		CHECK(r->v[i].len > 0);
		CHECK(i == 0 || r->v[i - 1].at + r->v[i - 1].len <= r->v[i].at);
		CHECK(r->v[i].layer || r->v[i].pos == 0);
	}
}

static void test_layer_word(void)
{
	static const uint64_t epochs[] = { 1, 2, 99, VV_MAX_EPOCH };
	static const uint32_t ranks[] = { 0, 1, VV_MAX_RANKS - 1 };

	for (size_t e = 0; e < 4; e++)
		for (size_t r = 0; r < 3; r++) {
			uint64_t layer = vv_run_layer(epochs[e], ranks[r]);

			CHECK(layer != 0);
			CHECK_EQ(vv_run_epoch(layer), epochs[e]);
			CHECK_EQ(vv_run_rank(layer), ranks[r]);
		}
	CHECK(vv_run_layer(1, VV_MAX_RANKS - 1) < vv_run_layer(2, 0));
}

/* Runs cut into single bytes and added again give the same table. */
static void test_add_joins(void)
{
	uint64_t state = 1;

	for (int round = 0; round < 2000; round++) {
		struct vv_runs a = { 0 }, b = { 0 };
		struct byte model[MAX];

		gen_runs(&state, &a, gen_below(&state, MAX), (int)gen_below(&state, 2), vv_run_layer(3, 0), 40);
		spread(&a, model);
		check_table(&a, model);
		for (uint64_t i = 0; i < MAX; i++)
			if (model[i].known)
				CHECK_EQ(vv_run_add(&b, (struct vv_run){ i, 1, model[i].layer, model[i].pos }), 0);
		CHECK_EQ(vv_run_add(&b, (struct vv_run){ 500, 0, 7, 7 }), 0);
		CHECK_EQ(a.n, b.n);
		CHECK(a.n == 0 || memcmp(a.v, b.v, a.n * sizeof(*a.v)) == 0);
		vv_run_fini(&a);
		vv_run_fini(&b);
	}
}

static void test_find_and_covers(void)
{
	uint64_t state = 2;

	for (int round = 0; round < 1000; round++) {
		struct vv_runs r = { 0 };
		struct byte model[MAX];

		gen_runs(&state, &r, gen_below(&state, MAX), round % 2, vv_run_layer(3, 0), 40);
		spread(&r, model);
		for (uint64_t at = 0; at <= MAX; at++) {
			size_t want = 0;
			int full = at == MAX || !model[at].known;

			while (want < r.n && r.v[want].at + r.v[want].len <= at)
				want++;
			CHECK_EQ(vv_run_find(&r, at), want);
			for (uint64_t i = 0; i < MAX; i++)
				full &= model[i].known == (i < at);
			CHECK_EQ(vv_run_covers(&r, at), full);
		}
		vv_run_fini(&r);
	}
}

static void test_slice(void)
{
	uint64_t state = 3;

	for (int round = 0; round < 4000; round++) {
		uint64_t at = gen_below(&state, MAX), end = at + gen_below(&state, MAX - at);
		struct vv_runs from = { 0 }, out = { 0 };
		struct byte model[MAX];

		gen_runs(&state, &from, gen_below(&state, MAX), round % 2, vv_run_layer(3, 0), 40);
		spread(&from, model);
		for (uint64_t i = 0; i < MAX; i++)
			if (i < at || i >= end)
				model[i] = (struct byte){ 0 };
		CHECK_EQ(vv_run_slice(&from, at, end, &out), 0);
		check_table(&out, model);
		vv_run_fini(&from);
		vv_run_fini(&out);
	}
}

/* Slices of a table, one after another, are the table again. */
static void test_slices_join(void)
{
	uint64_t state = 4;

	for (int round = 0; round < 1000; round++) {
		struct vv_runs from = { 0 }, out = { 0 };
		struct byte model[MAX];
		uint64_t at = 0;

		gen_runs(&state, &from, gen_below(&state, MAX), round % 2, vv_run_layer(3, 0), 40);
		spread(&from, model);
		while (at < MAX) {
			uint64_t end = at + gen_below(&state, 9);

			CHECK_EQ(vv_run_slice(&from, at, end, &out), 0);
			at = end;
		}
		check_table(&out, model);
		vv_run_fini(&from);
		vv_run_fini(&out);
	}
}

/* What shows is what is above, and below where nothing is above. */
static void check_overlay(uint64_t *state)
{
	struct vv_runs below = { 0 }, above = { 0 }, out = { 0 };
	struct byte model[MAX], top[MAX];

	gen_runs(state, &below, gen_below(state, MAX), gen_below(state, 2) == 0, vv_run_layer(3, 0), 40);
	gen_runs(state, &above, gen_below(state, MAX), gen_below(state, 4) != 0, vv_run_layer(4, 0), 40);
	spread(&below, model);
	spread(&above, top);
	for (size_t i = 0; i < MAX; i++)
		if (top[i].known)
			model[i] = top[i];
	CHECK_EQ(vv_run_overlay(&above, &below, &out), 0);
	check_table(&out, model);
	vv_run_fini(&below);
	vv_run_fini(&above);
	vv_run_fini(&out);
}

static void test_overlay(void)
{
	uint64_t state = 5;

	for (int i = 0; i < 8000; i++)
		check_overlay(&state);
}

/* One long run below, many short ones above it: it shows in every gap. */
static void test_overlay_straddles(void)
{
	struct vv_runs below = { 0 }, above = { 0 }, out = { 0 };
	struct byte model[MAX], top[MAX];

	CHECK_EQ(vv_run_add(&below, (struct vv_run){ 1, MAX - 2, vv_run_layer(1, 0), 1000 }), 0);
	for (uint64_t at = 0; at + 2 < MAX; at += 2 + at % 3)
		CHECK_EQ(vv_run_add(&above, (struct vv_run){ at, 1 + at % 2, vv_run_layer(2, 0), at * 5 }), 0);
	spread(&below, model);
	spread(&above, top);
	for (size_t i = 0; i < MAX; i++)
		if (top[i].known)
			model[i] = top[i];
	CHECK_EQ(vv_run_overlay(&above, &below, &out), 0);
	check_table(&out, model);
	CHECK(out.n > above.n);
	vv_run_fini(&below);
	vv_run_fini(&above);
	vv_run_fini(&out);
}

/* Near the limits of the format nothing wraps. */
static void test_large(void)
{
	uint64_t half = VV_MAX_REGION_BYTES / 2, layer = vv_run_layer(VV_MAX_EPOCH, VV_MAX_RANKS - 1);
	struct vv_runs below = { 0 }, above = { 0 }, out = { 0 };

	CHECK_EQ(vv_run_add(&below, (struct vv_run){ 0, VV_MAX_REGION_BYTES, layer, VV_MAX_PAYLOAD }), 0);
	CHECK_EQ(vv_run_add(&above, (struct vv_run){ half, 1, 0, 0 }), 0);
	CHECK_EQ(vv_run_overlay(&above, &below, &out), 0);
	CHECK_EQ(out.n, 3);
	CHECK_EQ(out.v[2].at, half + 1);
	CHECK_EQ(out.v[2].len, half - 1);
	CHECK_EQ(out.v[2].pos, VV_MAX_PAYLOAD + half + 1);
	CHECK_EQ(vv_run_find(&out, VV_MAX_REGION_BYTES - 1), 2);
	CHECK_EQ(vv_run_find(&out, VV_MAX_REGION_BYTES), 3);
	vv_run_fini(&below);
	vv_run_fini(&above);
	vv_run_fini(&out);
}

static void test_no_memory(void)
{
	struct vv_runs below = { 0 }, above = { 0 };
	int rc = -1;

	for (uint64_t i = 0; i < 100; i++)
		CHECK_EQ(vv_run_add(&below, (struct vv_run){ i, 1, vv_run_layer(1, 0), i * 2 }), 0);
	CHECK_EQ(vv_run_add(&above, (struct vv_run){ 50, 1, 0, 0 }), 0);
	for (long k = 1; rc != 0; k++) {
		struct vv_runs out = { 0 };

		vv_mem_fail_at(k);
		rc = vv_run_overlay(&above, &below, &out);
		CHECK(rc == 0 ? out.n == 100 && k > 1 : rc == VV_ENOMEM);
		vv_run_fini(&out);
	}
	vv_mem_fail_at(0);
	vv_run_fini(&below);
	vv_run_fini(&above);
}

int main(void)
{
	test_layer_word();
	test_add_joins();
	test_find_and_covers();
	test_slice();
	test_slices_join();
	test_overlay();
	test_overlay_straddles();
	test_large();
	test_no_memory();
	return 0;
}
