/* Tables that are read when they are needed: whoever looks, wherever and whenever, sees what is seen of a table that was read from front to back; what is
 * wrong with one is said in the same words. */
#include "base/err.h"
#include "base/mem.h"
#include "engine/lineage/lazy_runs.h"
#include "support/gen.h"
#include "vv_test.h"

enum { LONG = 60000, LOOKS = 200, REGIONS = 3 };

struct world {
	struct vv_head h; /* what is stored */
	struct vv_buf sources, runs;
	struct vv_pool *pool;
};

static void make_regions(struct vv_head *h)
{
	*h = (struct vv_head){ .epoch = 5000, .parent = 7, .ranks = 1, .payload = VV_MAX_PAYLOAD, .digest_kind = 1, .n_regions = REGIONS };
	h->region = vv_mem_new(REGIONS, sizeof(*h->region));
	for (size_t i = 0; i < REGIONS; i++)
		h->region[i].name = vv_mem_printf("r%zu", i);
}

/* Two long ones, of which the second has gaps, around a short one. */
static void lay_down(struct world *w, uint64_t seed)
{
	uint64_t state = seed;

	make_regions(&w->h);
	for (size_t i = 0; i < REGIONS; i++) {
		struct vv_head_region *r = &w->h.region[i];
		uint64_t at = 0, pos = 0;

		r->parent = i == 2;
		for (size_t k = 0; k < (i == 1 ? 10 : LONG); k++) {
			uint64_t len = 1 + gen_below(&state, 3000), source = gen_below(&state, 5);

			at += r->parent ? gen_below(&state, 2) * gen_below(&state, 5000) : 0;
			pos += 1 + gen_below(&state, 400);
			CHECK_EQ(vv_run_add(&r->runs, (struct vv_run){ at, len, source ? vv_run_layer(source, 0) : 0, source ? pos : 0 }), 0);
			at += len;
			pos += len;
		}
		r->shape.len = at;
	}
	w->sources = w->runs = (struct vv_buf){ 0 };
	CHECK_EQ(vv_run_wire_put(&w->h, &w->sources, &w->runs), 0);
	CHECK_EQ(vv_pool_new(3, &w->pool), 0);
}

static void tear_down(struct world *w)
{
	vv_pool_free(w->pool);
	vv_head_fini(&w->h);
	vv_buf_fini(&w->sources);
	vv_buf_fini(&w->runs);
}

/* The regions without their runs. */
static void bare(const struct world *w, struct vv_head *out)
{
	make_regions(out);
	for (size_t i = 0; i < REGIONS; i++) {
		out->region[i].parent = w->h.region[i].parent;
		out->region[i].shape.len = w->h.region[i].shape.len;
	}
}

static int begin(const struct world *w, struct vv_head *h, struct vv_pool *pool, struct vv_lazy_runs **out)
{
	bare(w, h);
	return vv_lazy_runs_new(h, w->sources.p, w->sources.n, w->runs.p, w->runs.n, pool, out);
}

struct looking {
	const struct world *w;
	struct vv_lazy_runs *reading;
	bool sound; /* nothing is damaged: it must be seen */
};

/* Anywhere, also beyond the end. */
static void look(void *arg, size_t i)
{
	const struct looking *l = arg;
	uint64_t state = i + 1;
	size_t region = (size_t)gen_below(&state, REGIONS);
	const struct vv_runs *want = &l->w->h.region[region].runs;
	uint64_t len = l->w->h.region[region].shape.len, at = gen_below(&state, len), end = at + 1 + gen_below(&state, len / 50);
	struct vv_runs seen = { 0 };
	bool ok = vv_lazy_runs_find(l->reading, region, at, end, &seen);
	size_t k = vv_run_find(want, at), x = ok ? vv_run_find(&seen, at) : 0;

	CHECK(ok || !l->sound);
	for (; ok && l->sound && k < want->n && want->v[k].at < end; k++, x++)
		CHECK(x < seen.n && memcmp(&want->v[k], &seen.v[x], sizeof(seen.v[x])) == 0);
	CHECK(!ok || x == seen.n || seen.v[x].at >= end || !l->sound);
}

static void check_same(const struct vv_head *a, const struct vv_head *b)
{
	for (size_t i = 0; i < REGIONS; i++) {
		CHECK_EQ(a->region[i].runs.n, b->region[i].runs.n);
		CHECK(memcmp(a->region[i].runs.v, b->region[i].runs.v, a->region[i].runs.n * sizeof(struct vv_run)) == 0);
	}
}

static void test_looks(struct world *w)
{
	static const size_t looks[] = { 0, 1, LOOKS };

	for (size_t i = 0; i < 2 * sizeof(looks) / sizeof(*looks); i++) {
		struct vv_pool *pool = i % 2 ? w->pool : NULL;
		struct looking l = { .w = w, .sound = true };
		const uint64_t *layer = NULL;
		struct vv_head h;

		CHECK_EQ(begin(w, &h, pool, &l.reading), 0);
		CHECK_EQ(vv_lazy_runs_sources(l.reading, &layer), 4);
		for (int k = 0; k < 4; k++)
			CHECK(layer[k] >= vv_run_layer(1, 0) && layer[k] <= vv_run_layer(4, 0));
		vv_pool_each(w->pool, looks[i / 2], look, &l);
		CHECK_EQ(vv_lazy_runs_finish(l.reading, pool), 0);
		check_same(&w->h, &h);
		vv_pool_each(w->pool, 10, look, &l);
		vv_lazy_runs_free(l.reading);
		vv_head_fini(&h);
	}
}

/* Some byte is another one: said when it is begun or ended, however often. */
static void test_damaged(struct world *w)
{
	uint64_t state = 9;
	long late = 0;

	for (int i = 0; i < 100; i++) {
		size_t at = (size_t)gen_below(&state, w->runs.n);
		struct looking l = { .w = w };
		struct vv_head front, h;
		char said[300];
		int want, rc;

		w->runs.p[at] ^= (uint8_t)(1u << gen_below(&state, 8));
		bare(w, &front);
		want = vv_run_wire_get(&front, w->sources.p, w->sources.n, w->runs.p, w->runs.n, &(struct vv_parallel_for){ 0 });
		snprintf(said, sizeof(said), "%s", want ? vv_err_last() : "");
		rc = begin(w, &h, w->pool, &l.reading);
		for (int k = 0; l.reading && k < 2; k++) {
			if (k == 0)
				vv_pool_each(w->pool, i % 3 * LOOKS / 2, look, &l);
			rc = vv_lazy_runs_finish(l.reading, w->pool);
			CHECK_EQ(rc, want);
			late += rc != 0;
		}
		CHECK_EQ(rc, want);
		if (rc)
			CHECK_STR(vv_err_last(), said);
		else
			check_same(&front, &h);
		vv_lazy_runs_free(l.reading);
		vv_head_fini(&h);
		vv_head_fini(&front);
		vv_buf_fini(&w->sources);
		vv_buf_fini(&w->runs);
		CHECK_EQ(vv_run_wire_put(&w->h, &w->sources, &w->runs), 0);
	}
	CHECK(late > 0);
}

static void test_no_memory(struct world *w)
{
	int rc = VV_ENOMEM;

	for (long k = 1; rc; k++) {
		struct vv_lazy_runs *r = NULL;
		struct vv_head h;

		bare(w, &h);
		vv_mem_fail_at(k);
		rc = vv_lazy_runs_new(&h, w->sources.p, w->sources.n, w->runs.p, w->runs.n, w->pool, &r);
		if (rc == 0)
			rc = vv_lazy_runs_finish(r, w->pool);
		CHECK(rc == 0 ? k > 3 : rc == VV_ENOMEM);
		vv_lazy_runs_free(r);
		vv_head_fini(&h);
	}
	vv_mem_fail_at(0);
}

int main(void)
{
	for (uint64_t seed = 1; seed < 5; seed++) {
		struct world w;

		lay_down(&w, seed);
		test_looks(&w);
		if (seed == 1)
			test_damaged(&w);
		if (seed == 2)
			test_no_memory(&w);
		tear_down(&w);
	}
	return 0;
}
