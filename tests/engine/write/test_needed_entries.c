/* Needs against a plain list of chunks. */
#include "engine/write/needed_entries.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/format/manifest.h"
#include "support/gen.h"
#include "vv_test.h"

enum { LAYERS = 4, LENGTH = 200, ROUNDS = 400 };

static bool covered[LAYERS][LENGTH], begins[LAYERS][LENGTH];

static void add(struct vv_needed_entries *n, uint64_t *state)
{
	uint32_t chunk = 1 + (uint32_t)gen_below(state, 7);
	uint64_t layer = gen_below(state, LAYERS), pos = gen_below(state, LENGTH - 60), len = 1 + gen_below(state, 60);

	CHECK_EQ(vv_needed_entries_add(n, layer, pos, len, chunk), 0);
	for (uint64_t i = 0; i < len; i++)
		covered[layer][pos + i] = true;
	for (uint64_t i = 0; i < len; i += chunk)
		begins[layer][pos + i] = true;
}

static void check_questions(const struct vv_needed_entries *n)
{
	for (uint64_t l = 0; l < LAYERS; l++) {
		bool any = false;

		for (uint64_t pos = 0; pos < LENGTH; pos++) {
			CHECK_EQ(vv_needed_entries_chunk(n, l, pos), covered[l][pos]);
			any |= covered[l][pos];
		}
		CHECK_EQ(vv_needed_entries_layer(n, l), any);
		CHECK(!vv_needed_entries_chunk(n, LAYERS, 5) && !vv_needed_entries_layer(n, LAYERS));
	}
}

/* An index with all of it, and more; and without any one of those that are needed. */
static void check_met(const struct vv_needed_entries *n, uint64_t *state)
{
	struct vv_index x = { 0 };
	size_t needed = 0, leave_out, at = 0;

	for (uint64_t i = 0; i < LAYERS * LENGTH; i++)
		needed += begins[i / LENGTH][i % LENGTH];
	leave_out = (size_t)gen_below(state, 2 * needed + 1);
	for (uint64_t i = 0; i < LAYERS * LENGTH; i++) {
		struct vv_digest d = { { i, i } };
		uint32_t number;
		bool is = begins[i / LENGTH][i % LENGTH];

		at += is;
		if (is ? at != leave_out : gen_below(state, 2) == 0)
			CHECK_EQ(vv_index_add(&x, &d, i / LENGTH, i % LENGTH, &number), 0);
	}
	CHECK_EQ(vv_needed_entries_are_in(n, &x, x.n), leave_out == 0 || leave_out > needed);
	vv_index_fini(&x);
}

/* Chunks one by one become one need; a shorter one ends it. */
static void test_join(void)
{
	struct vv_needed_entries n = { 0 };

	for (uint64_t i = 0; i < 10; i++)
		CHECK_EQ(vv_needed_entries_add(&n, 3, 100 + 8 * i, 8, 8), 0);
	CHECK_EQ(n.n, 1);
	CHECK_EQ(vv_needed_entries_add(&n, 3, 180, 5, 8), 0);
	CHECK_EQ(n.n, 1);
	CHECK_EQ(vv_needed_entries_add(&n, 3, 185, 8, 8), 0);
	CHECK_EQ(n.n, 2);
	CHECK_EQ(vv_needed_entries_add(&n, 4, 193, 8, 8), 0);
	CHECK_EQ(n.n, 3);
	vv_needed_entries_sort(&n);
	CHECK(vv_needed_entries_chunk(&n, 3, 180) && vv_needed_entries_chunk(&n, 3, 192) && !vv_needed_entries_chunk(&n, 3, 193) && !vv_needed_entries_chunk(&n, 3, 99));
	vv_needed_entries_fini(&n);
	vv_mem_fail_at(1);
	CHECK_EQ(vv_needed_entries_add(&n, 1, 0, 1, 1), VV_ENOMEM);
	vv_mem_fail_at(0);
}

/* Of a table: chunks of this rank's layers that are wholly in one run. */
static void test_table(void)
{
	struct vv_run run[] = { { 0, 250, vv_run_layer(1, 0), 1000 }, { 250, 150, vv_run_layer(2, 0), 50 },
				{ 400, 100, 0, 0 }, { 500, 100, vv_run_layer(2, 1), 0 }, { 600, 130, vv_run_layer(3, 0), 0 } };
	char name[] = "r";
	struct vv_run_table_region r = { .shape = { .len = 730, .chunk = 100 }, .name = name, .runs = { .v = run, .n = 5 } };
	struct vv_run_table t = { .region = &r, .n = 1 };
	struct vv_needed_entries n = { 0 };

	CHECK_EQ(vv_needed_entries_add_table(&n, &t, 0, NULL), 0);
	vv_needed_entries_sort(&n);
	CHECK_EQ(n.n, 3);
	CHECK(n.v[0].layer == vv_run_layer(1, 0) && n.v[0].pos == 1000 && n.v[0].end == 1200);
	CHECK(n.v[1].layer == vv_run_layer(2, 0) && n.v[1].pos == 100 && n.v[1].end == 200);
	CHECK(n.v[2].layer == vv_run_layer(3, 0) && n.v[2].pos == 0 && n.v[2].end == 130);
	vv_needed_entries_fini(&n);
	CHECK_EQ(vv_needed_entries_add_table(&n, &t, 0, (bool[]){ true }), 0);
	CHECK_EQ(n.n, 0);
	vv_needed_entries_fini(&n);
}

/* Of files: chunks begin anywhere. They are known unless all that begins in the layer before the end of a run is forgotten. */
static void test_packed(void)
{
	char file[] = "f", manifest[] = VV_MANIFEST_REGION;
	struct vv_run run[] = { { 0, 250, vv_run_layer(1, 0), 1013 }, { 250, 7, vv_run_layer(2, 0), 50 } };
	struct vv_run_table_region r[] = { { .shape = { .len = 257, .chunk = 100 }, .name = file, .runs = { .v = run, .n = 2 } },
				       { .shape = { .len = 0, .chunk = 100 }, .name = manifest } };
	struct vv_run_table t = { .region = r, .n = 2 };
	struct vv_needed_entries n = { 0 };

	CHECK_EQ(vv_needed_entries_add_table(&n, &t, 0, NULL), 0);
	vv_needed_entries_sort(&n);
	CHECK_EQ(n.n, 2);
	CHECK(vv_needed_entries_chunk(&n, vv_run_layer(1, 0), 1200) && vv_needed_entries_chunk(&n, vv_run_layer(2, 0), 56) && !vv_needed_entries_chunk(&n, vv_run_layer(2, 0), 57));
	for (unsigned known = 0; known < 16; known++) {
		const struct {
			uint64_t layer, pos;
		} place[] = { { vv_run_layer(1, 0), 1000 }, { vv_run_layer(1, 0), 1300 }, { vv_run_layer(2, 0), 0 }, { vv_run_layer(2, 0), 57 } };
		struct vv_index x = { 0 };

		for (unsigned i = 0; i < 4; i++) {
			struct vv_digest d = { { i, i } };
			uint32_t number;

			if (known >> i & 1)
				CHECK_EQ(vv_index_add(&x, &d, place[i].layer, place[i].pos, &number), 0);
		}
		CHECK_EQ(vv_needed_entries_are_in(&n, &x, x.n), (known & 1) && (known & 4));
		vv_index_fini(&x);
	}
	vv_needed_entries_fini(&n);
}

int main(void)
{
	uint64_t state = 1;

	for (int round = 0; round < ROUNDS; round++) {
		struct vv_needed_entries n = { 0 };

		memset(covered, 0, sizeof(covered));
		memset(begins, 0, sizeof(begins));
		for (uint64_t k = gen_below(&state, 12); k > 0; k--)
			add(&n, &state);
		vv_needed_entries_sort(&n);
		check_questions(&n);
		check_met(&n, &state);
		vv_needed_entries_fini(&n);
	}
	test_join();
	test_table();
	test_packed();
	return 0;
}
