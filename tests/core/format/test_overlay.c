/* Tables laid over each other, by one thread, by several, and with turns taken from the last to the first. */
#include "base/err.h"
#include "base/mem.h"
#include "base/pool.h"
#include "core/format/overlay.h"
#include "support/gen.h"
#include "vv_test.h"

static void backwards(void *ctx, size_t n, void (*turn)(void *arg, size_t i), void *arg)
{
	(void)ctx;
	while (n-- > 0)
		turn(arg, n);
}

static const struct vv_parallel_for plain = { 0 }, from_behind = { backwards, NULL, 3 };

enum { TABLES = 9, UNITS = 300000 };

static void make_table(uint64_t *state, struct vv_runs *t, uint64_t unit, uint64_t units, uint64_t longest)
{
	for (uint64_t at = 0, len; at < units; at += len) {
		len = 1 + gen_below(state, longest);
		len = len < units - at ? len : units - at;
		if (gen_below(state, 3))
			CHECK_EQ(vv_run_add(t, (struct vv_run){ at * unit, len * unit, gen_below(state, 3), 0 }), 0);
	}
	for (size_t k = 0; k < t->n; k++)
		t->v[k].pos = t->v[k].layer ? gen_below(state, 50) * unit : 0;
}

static void one_by_one(const struct vv_runs *table, size_t n, struct vv_runs *out)
{
	CHECK_EQ(vv_run_slice(&table[n - 1], 0, UINT64_MAX, out), 0);
	for (size_t i = n - 1; i-- > 0;) {
		struct vv_runs both = { 0 };

		CHECK_EQ(vv_run_overlay(&table[i], out, &both), 0);
		vv_run_fini(out);
		*out = both;
	}
}

static void check_stack(const struct vv_runs *const *list, size_t n, const struct vv_parallel_for *loop, const struct vv_runs *want)
{
	struct vv_runs got = { 0 };
	uint64_t end = want->n ? want->v[want->n - 1].at + want->v[want->n - 1].len : 0;
	bool gaps = true;

	CHECK_EQ(vv_overlay_runs(list, n, loop, &got, &gaps), 0);
	CHECK_EQ(got.n, want->n);
	CHECK(got.n == 0 || memcmp(got.v, want->v, got.n * sizeof(*got.v)) == 0);
	CHECK_EQ(gaps, !vv_run_covers(want, end));
	vv_run_fini(&got);
}

/* Many tables at once give what they give laid over each other one by one: on borders that fit a grid, which are painted,
 * and on others, which are merged; over more than one window and part; with gaps and without, and with tables that say nothing. */
static void test_as_one_by_one(struct vv_pool *pool)
{
	struct vv_parallel_for threads = vv_pool_loop(pool);
	uint64_t state = 77;

	for (int round = 0; round < 60; round++) {
		uint64_t unit = round % 3 == 2 ? 1 : 512, units = round % 10 ? 40 : UNITS - (uint64_t)round;
		struct vv_runs table[TABLES] = { 0 }, want = { 0 };
		const struct vv_runs *list[TABLES];
		size_t n = 1 + (size_t)gen_below(&state, TABLES);

		for (size_t i = 0; i < n; i++) {
			list[i] = &table[i];
			if (i != 3)
				make_table(&state, &table[i], unit, units, i + 1 == n ? units : round % 4 ? 9 : 3000);
		}
		if (round % 2) { /* the lowest says all */
			vv_run_fini(&table[n - 1]);
			CHECK_EQ(vv_run_add(&table[n - 1], (struct vv_run){ 0, units * unit, 7, 0 }), 0);
		}
		one_by_one(table, n, &want);
		check_stack(list, n, &plain, &want);
		check_stack(list, n, &from_behind, &want);
		check_stack(list, n, &threads, &want);
		for (size_t i = 0; i < n; i++)
			vv_run_fini(&table[i]);
		vv_run_fini(&want);
	}
	check_stack(NULL, 0, &plain, &(struct vv_runs){ 0 });
}

/* A run that goes over many parts comes out as one, whatever lies before it and behind it. */
static void test_joined_over_parts(void)
{
	struct vv_runs table[3] = { 0 }, want = { 0 };
	const struct vv_runs *list[3] = { &table[0], &table[1], &table[2] };
	uint64_t end = 64ull * 5000000, some = 64ull * 3;

	for (uint64_t i = 0; i < 400000; i++)
		CHECK_EQ(vv_run_add(&table[i < 200000], (struct vv_run){ i < 200000 ? i * 64 : end - (400000 - i) * 64, 64, 5, i * 4096 }), 0);
	CHECK_EQ(vv_run_add(&table[2], (struct vv_run){ some, end - some - some, 9, 0 }), 0);
	one_by_one(table, 3, &want);
	check_stack(list, 3, &plain, &want);
	check_stack(list, 3, &from_behind, &want);
	for (int i = 0; i < 3; i++)
		vv_run_fini(&table[i]);
	vv_run_fini(&want);
}

static void test_no_memory(const struct vv_parallel_for *loop)
{
	struct vv_runs table[3] = { 0 };
	const struct vv_runs *list[3] = { &table[0], &table[1], &table[2] };
	int rc = VV_ENOMEM;

	for (uint64_t i = 0; i < 300; i++)
		CHECK_EQ(vv_run_add(&table[i % 3], (struct vv_run){ i * 64, 64, vv_run_layer(1 + i % 3, 0), i * 128 }), 0);
	for (long k = 1; rc != 0; k++) {
		struct vv_runs out = { 0 };
		bool gaps;

		vv_mem_fail_at(k);
		rc = vv_overlay_runs(list, 3, loop, &out, &gaps);
		CHECK(rc == 0 ? out.n == 300 && k > 3 : rc == VV_ENOMEM);
		vv_run_fini(&out);
	}
	vv_mem_fail_at(0);
	for (int i = 0; i < 3; i++)
		vv_run_fini(&table[i]);
}

int main(void)
{
	struct vv_pool *pool = NULL;

	CHECK_EQ(vv_pool_new(3, &pool), 0);
	test_as_one_by_one(pool);
	test_joined_over_parts();
	test_no_memory(&plain);
	test_no_memory(&from_behind);
	vv_pool_free(pool);
	return 0;
}
