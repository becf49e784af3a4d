// ctest: COST 2
/* Long tables read in parts: the same runs as from front to back, the same verdict on what is damaged. */
#include "base/err.h"
#include "base/mem.h"
#include "base/pool.h"
#include "core/format/run_wire.h"
#include "support/gen.h"
#include "vv_test.h"

enum { REGIONS = 4, LONG = 30000 };

static void backwards(void *ctx, size_t n, void (*turn)(void *arg, size_t i), void *arg)
{
	(void)ctx;
	while (n-- > 0)
		turn(arg, n);
}

static const struct vv_parallel_for plain = { 0 }, from_behind = { backwards, NULL, 3 };

static void make_regions(struct vv_head *h, size_t n)
{
	*h = (struct vv_head){ .epoch = 5000, .ranks = 1, .payload = VV_MAX_PAYLOAD, .digest_kind = 1, .n_regions = n };
	h->region = vv_mem_new(n, sizeof(*h->region));
	for (size_t i = 0; i < n; i++)
		h->region[i].name = vv_mem_printf("r%zu", i);
}

/* In a shape: lengths, sources and steps from tiny to large, or all of them the same, where no beginning of a run shows. */
static void fill(uint64_t *state, struct vv_head_region *r, size_t runs, uint64_t sources, unsigned shape)
{
	uint64_t at = 0, pos = 1000, lengths = shape % 3 == 0 ? 1 : shape % 3 == 1 ? 20 : 100000;

	r->parent = shape & 4 ? 1 : 0;
	for (size_t i = 0; i < runs; i++) {
		uint64_t len = 1 + gen_below(state, lengths), k = shape & 8 ? 1 : gen_below(state, sources + 1);
		uint64_t gap = r->parent && shape & 16 ? gen_below(state, 2) : 0;

		at += gap;
		pos += 1 + (shape & 8 ? 1 : gen_below(state, shape & 32 ? 1ull << 30 : 300));
		CHECK_EQ(vv_run_add(&r->runs, (struct vv_run){ at, len, k ? vv_run_layer(1 + k, 0) : 0, k ? pos % (VV_MAX_PAYLOAD / 2) : 0 }), 0);
		at += len;
		pos += len;
	}
	r->shape.len = at;
}

/* The regions without their runs. */
static void bare(const struct vv_head *h, struct vv_head *out)
{
	make_regions(out, h->n_regions);
	for (size_t i = 0; i < h->n_regions; i++) {
		out->region[i].parent = h->region[i].parent;
		out->region[i].shape.len = h->region[i].shape.len;
	}
	out->parent = h->parent;
}

static int get(const struct vv_head *h, const struct vv_buf *sources, const struct vv_buf *runs, const struct vv_parallel_for *loop, struct vv_head *out)
{
	bare(h, out);
	return vv_run_wire_get(out, sources->p, sources->n, runs->p, runs->n, loop);
}

static void check_same(const struct vv_head *a, const struct vv_head *b)
{
	for (size_t i = 0; i < a->n_regions; i++) {
		CHECK_EQ(a->region[i].runs.n, b->region[i].runs.n);
		CHECK(a->region[i].runs.n == 0 ||
		      memcmp(a->region[i].runs.v, b->region[i].runs.v, a->region[i].runs.n * sizeof(struct vv_run)) == 0);
	}
}

static void check_all_ways(const struct vv_head *h, const struct vv_parallel_for *const *loop, size_t n, const struct vv_buf *sources, const struct vv_buf *runs)
{
	struct vv_head one, other;
	int rc = get(h, sources, runs, &plain, &one);
	char said[300];

	snprintf(said, sizeof(said), "%s", rc ? vv_err_last() : "");
	for (size_t i = 0; i < n; i++) {
		CHECK_EQ(get(h, sources, runs, loop[i], &other), rc);
		if (rc)
			CHECK_STR(vv_err_last(), said);
		else
			check_same(&one, &other);
		vv_head_fini(&other);
	}
	vv_head_fini(&one);
}

static void test_as_from_front_to_back(struct vv_pool *pool)
{
	struct vv_parallel_for threads = vv_pool_loop(pool);
	const struct vv_parallel_for *loop[] = { &from_behind, &threads };
	struct vv_buf sources = { 0 }, runs = { 0 };
	uint64_t state = 5;

	for (unsigned shape = 0; shape < 64; shape += 1 + shape % 3) {
		static const uint64_t many[] = { 1, 3, 40, 2000 };
		size_t n = 1 + (size_t)gen_below(&state, REGIONS);
		struct vv_head h, back;

		make_regions(&h, n);
		h.parent = shape & 4 ? 7 : 0;
		for (size_t i = 0; i < n; i++)
			fill(&state, &h.region[i], gen_below(&state, 3) ? LONG : (size_t)gen_below(&state, 100), many[gen_below(&state, 4)], shape);
		sources.n = runs.n = 0;
		CHECK_EQ(vv_run_wire_put(&h, &sources, &runs), 0);
		CHECK_EQ(get(&h, &sources, &runs, &from_behind, &back), 0);
		check_same(&h, &back);
		vv_head_fini(&back);
		check_all_ways(&h, loop, 2, &sources, &runs);
		vv_head_fini(&h);
	}
	vv_buf_fini(&sources);
	vv_buf_fini(&runs);
}

/* Any byte another one, anything cut off or put in, at borders of parts and elsewhere: what one reader says the other says. */
static void test_damaged(struct vv_pool *pool)
{
	struct vv_parallel_for threads = vv_pool_loop(pool);
	const struct vv_parallel_for *loop[] = { &from_behind, &threads };
	struct vv_buf sources = { 0 }, runs = { 0 };
	struct vv_head h;
	uint64_t state = 99;
	long refused = 0;

	make_regions(&h, 2);
	fill(&state, &h.region[0], LONG, 3, 1);
	fill(&state, &h.region[1], LONG, 3, 0);
	CHECK_EQ(vv_run_wire_put(&h, &sources, &runs), 0);
	for (int i = 0; i < 120; i++) {
		size_t at = (size_t)gen_below(&state, runs.n), n = runs.n;
		struct vv_head back;
		uint8_t was;

		if (i % 3 == 0)
			at = (1 + at / 32768) * 32768 - 4 + (size_t)gen_below(&state, 8); /* near where a part begins */
		at = at < runs.n ? at : runs.n - 1;
		was = runs.p[at];
		runs.p[at] ^= (uint8_t)(1u << gen_below(&state, 8));
		runs.n = i % 10 ? n : at;
		refused += get(&h, &sources, &runs, &from_behind, &back) != 0;
		vv_head_fini(&back);
		check_all_ways(&h, loop, 2, &sources, &runs);
		runs.p[at] = was;
		runs.n = n;
	}
	CHECK(refused > 80);
	vv_head_fini(&h);
	vv_buf_fini(&sources);
	vv_buf_fini(&runs);
}

/* Two runs that should be one, right where two parts meet, wherever that may be. */
static void test_split_anywhere(void)
{
	const struct vv_parallel_for *loop[] = { &from_behind };
	struct vv_head h;
	uint64_t state = 3;

	for (int i = 0; i < 20; i++) {
		struct vv_buf sources = { 0 }, runs = { 0 };
		struct vv_head_region *r;
		struct vv_head back;
		size_t at;

		make_regions(&h, 1);
		r = &h.region[0];
		fill(&state, r, LONG, 1, 8 + 1);
		at = 4096 + (size_t)gen_below(&state, 16) + (size_t)i * 800;
		for (size_t k = at; k < at + 1500; k++) /* so that the seam meets a border of a part in one of the rounds */
			r->runs.v[k].pos = r->runs.v[k - 1].pos + r->runs.v[k - 1].len + (k > at + 1490);
		CHECK_EQ(vv_run_wire_put(&h, &sources, &runs), 0);
		CHECK_EQ(get(&h, &sources, &runs, &from_behind, &back), VV_EDAMAGED);
		CHECK(strstr(vv_err_last(), "should be one"));
		vv_head_fini(&back);
		check_all_ways(&h, loop, 1, &sources, &runs);
		vv_head_fini(&h);
		vv_buf_fini(&sources);
		vv_buf_fini(&runs);
	}
}

static void test_no_memory(void)
{
	struct vv_buf sources = { 0 }, runs = { 0 };
	uint64_t state = 1;
	struct vv_head h;
	int rc = VV_ENOMEM;

	make_regions(&h, 1);
	fill(&state, &h.region[0], LONG, 3, 1);
	CHECK_EQ(vv_run_wire_put(&h, &sources, &runs), 0);
	for (long k = 1; rc != 0; k++) {
		struct vv_head back;

		bare(&h, &back);
		vv_mem_fail_at(k);
		rc = vv_run_wire_get(&back, sources.p, sources.n, runs.p, runs.n, &from_behind);
		CHECK(rc == 0 ? k > 3 : rc == VV_ENOMEM);
		vv_head_fini(&back);
	}
	vv_mem_fail_at(0);
	vv_head_fini(&h);
	vv_buf_fini(&sources);
	vv_buf_fini(&runs);
}

/* A table of runs of one byte of zero, each a byte after the one before. *room: the runs that memory was taken for. */
static int claim(uint64_t runs, uint64_t region, size_t *room)
{
	static const uint8_t step[] = { 1, 1, 0 }, none[] = { 0 };
	struct vv_buf b = { 0 };
	struct vv_head h;
	int rc;

	make_regions(&h, 1);
	h.parent = 7;
	h.region[0].parent = 1;
	h.region[0].shape.len = region;
	vv_wire_put_var(&b, runs);
	for (uint64_t i = 0; i < runs; i++)
		vv_buf_add(&b, step, sizeof(step));
	rc = vv_run_wire_get(&h, none, sizeof(none), b.p, b.n, &plain);
	*room = h.region[0].runs.cap;
	vv_head_fini(&h);
	vv_buf_fini(&b);
	return rc;
}

/* A run has at least one byte. Many runs are refused if the memory cannot hold them. */
static void test_too_many_runs(void)
{
	enum { MANY = 3 << 20, MIB = 1 << 20 };
	size_t room;

	CHECK_EQ(claim(1000, 999, &room), VV_EDAMAGED);
	CHECK(strstr(vv_err_last(), "impossible number of runs"));
	CHECK_EQ(room, 0);
	CHECK_EQ(claim(1000, 2000, &room), 0);
	vv_mem_pretend_available(95 * MIB);
	CHECK_EQ(claim(MANY, 2 * MANY, &room), VV_ENOMEM);
	CHECK_STR(vv_err_last(), "section RUNS: out of memory (96 MiB wanted, 95 MiB available)");
	CHECK_EQ(room, 0);
	CHECK_EQ(claim(MANY / 2, 2 * MANY, &room), 0);
	vv_mem_pretend_available(96 * MIB);
	CHECK_EQ(claim(MANY, 2 * MANY, &room), 0);
	vv_mem_pretend_available(0);
}

/* Kilobytes of address space, at most so far. */
static long peak(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[200];
	long kib = 0;

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "VmPeak: %ld", &kib);
	CHECK(f && fclose(f) == 0);
	return kib;
}

/* With many sources, the parts of a table do not take room for the sources each. */
static void test_many_sources(void)
{
	enum { SOURCES = 1 << 20, RUNS = 1 << 20, MOST_KIB = 300 << 10 };
	struct vv_buf sources = { 0 }, runs = { 0 };
	struct vv_head h;
	long before;

	vv_wire_put_var(&sources, SOURCES);
	for (uint64_t i = 0; i < SOURCES; i++) {
		vv_wire_put_var(&sources, 1 + i % 5000);
		vv_wire_put_var(&sources, i);
	}
	make_regions(&h, 1);
	h.parent = 7;
	h.region[0].parent = 1;
	h.region[0].shape.len = 2 * RUNS;
	vv_wire_put_var(&runs, RUNS);
	for (int i = 0; i < RUNS; i++)
		vv_buf_add(&runs, (uint8_t[]){ 1, 1, 0 }, 3);
	before = peak();
	CHECK_EQ(vv_run_wire_get(&h, sources.p, sources.n, runs.p, runs.n, &from_behind), 0);
	CHECK_EQ(h.region[0].runs.n, RUNS);
	CHECK(peak() - before < MOST_KIB);
	vv_head_fini(&h);
	vv_buf_fini(&sources);
	vv_buf_fini(&runs);
}

int main(void)
{
	struct vv_pool *pool = NULL;

	CHECK_EQ(vv_pool_new(3, &pool), 0);
	test_as_from_front_to_back(pool);
	test_damaged(pool);
	test_split_anywhere();
	test_no_memory();
	test_too_many_runs();
	test_many_sources();
	vv_pool_free(pool);
	return 0;
}
