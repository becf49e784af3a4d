/* The digests of numbered grains, as regions come, go, grow, shrink and change places, against arrays for each region; and whichever call of the runtime
 * fails, all is as it was before. Without a device. */
#include "base/err.h"
#include "gpu/numbers.h"
#include "host_runtime.h"
#include <stdlib.h>

enum { REGIONS = 9, GRAINS = 300, ROUNDS = 60, STEPS = 30, CHUNK = 64 };

/* What a region's grains were found to hold; region i has id i * 7 + 1. */
static struct past {
	struct vv_digest digest[GRAINS];
	struct vv_digest tile[GRAINS / VV_GRAIN_TILE + 1];
	uint32_t had;
} past[REGIONS];

static uint8_t memory[REGIONS * GRAINS];

static uint64_t id_of(size_t region)
{
	return region * 7 + 1;
}

static size_t region_of(uint64_t id)
{
	return (size_t)(id - 1) / 7;
}

static size_t tiles_of(uint32_t n)
{
	return (n + VV_GRAIN_TILE - 1) / VV_GRAIN_TILE;
}

/* Some of the regions, in any order. */
static size_t choose(struct vv_span span[REGIONS], const struct vv_span *was, size_t n_was, uint32_t *end)
{
	size_t order[REGIONS], n = upto(REGIONS);

	for (size_t i = 0; i < REGIONS; i++)
		order[i] = i;
	for (size_t i = REGIONS - 1; i > 0; i--) {
		size_t k = upto(i), t = order[i];

		order[i] = order[k];
		order[k] = t;
	}
	if (upto(2) == 0) { /* the same once more, elsewhere */
		memcpy(span, was, n_was * sizeof(*span));
		n = n_was;
	} else {
		for (size_t i = 0; i < n; i++)
			span[i] = (struct vv_span){.id = id_of(order[i]),
						   .len = upto(1) ? upto(GRAINS) * CHUNK : 96 * CHUNK};
	}
	for (size_t i = 0; i < n; i++)
		span[i].p = memory + upto(sizeof(memory) - 1);
	CHECK_EQ(vv_grain_number_spans(span, n, CHUNK, end), 0);
	return n;
}

/* Each region has its digests as far as they are known, and the sums of their tiles. */
static void check_same(const struct vv_numbers *g, const struct vv_span *span, size_t n, uint32_t end)
{
	CHECK(g->n == n && g->of.n_span == n && g->end == end);
	for (size_t i = 0; i < n; i++) {
		const struct vv_gpu_span *x = &g->region[i].span;
		const struct past *p = &past[region_of(span[i].id)];

		CHECK(g->region[i].id == span[i].id && x->first == span[i].first && x->n == span[i].n);
		CHECK_EQ(x->had, p->had < x->n ? p->had : x->n);
		if (!x->had)
			continue;
		CHECK(memcmp(g->of.digest + x->first, p->digest, x->had * sizeof(*p->digest)) == 0);
		CHECK(memcmp(g->of.tile + x->first / VV_GRAIN_TILE, p->tile, tiles_of(x->had) * sizeof(*p->tile)) == 0);
	}
	if (n)
		CHECK(host_size(g->of.digest) >= end * sizeof(*g->of.digest) && host_size(g->of.changed) >= end / 8 &&
		      host_size(g->of.zero) >= end / 8);
}

/* The past of a region that is not there any more is gone. */
static void forget_others(const struct vv_span *span, size_t n)
{
	uint32_t had[REGIONS] = {0};

	for (size_t i = 0; i < n; i++) {
		size_t r = region_of(span[i].id);

		had[r] = past[r].had < span[i].n ? past[r].had : span[i].n;
	}
	for (size_t i = 0; i < REGIONS; i++)
		past[i].had = had[i];
}

/* What the device is told. */
static int publish(struct vv_numbers *g)
{
	int rc = vv_numbers_publish(g, NULL);

	for (size_t i = 0; rc == 0 && i < g->n; i++) {
		const struct vv_gpu_span *x = &g->of.span[i], *y = &g->region[i].span;

		CHECK(x->p == y->p && x->first == y->first && x->n == y->n && x->had == y->had);
	}
	for (size_t i = 0; rc == 0 && i < (size_t)vv_numbers_slices(g) * VV_GPU_GROUPS; i++)
		CHECK_EQ(g->of.count[i], 0);
	return rc;
}

/* A pass: every grain has a digest afterwards. */
static void look(struct vv_numbers *g)
{
	for (size_t i = 0; i < g->n; i++) {
		const struct vv_gpu_span *x = &g->region[i].span;
		struct past *p = &past[region_of(g->region[i].id)];

		noise((uint8_t *)p, sizeof(p->digest) + sizeof(p->tile));
		p->had = x->n;
		if (!x->n)
			continue;
		memcpy(g->of.digest + x->first, p->digest, x->n * sizeof(*p->digest));
		memcpy(g->of.tile + x->first / VV_GRAIN_TILE, p->tile, tiles_of(x->n) * sizeof(*p->tile));
	}
	vv_numbers_seen(g);
}

static void step(struct vv_numbers *g, struct vv_span span[REGIONS], size_t *n, uint32_t *end)
{
	struct vv_span next[REGIONS];
	uint32_t next_end;
	size_t n_next = choose(next, span, *n, &next_end);
	int rc;

	host_fail(upto(1) ? 1 + (long)upto(20) : 0);
	rc = vv_numbers_fit(g, next, n_next, next_end, NULL);
	host_fail(0);
	if (rc) { /* as before */
		CHECK(rc == VV_ENOMEM || rc == VV_EIO);
		check_same(g, span, *n, *end);
		return;
	}
	memcpy(span, next, sizeof(next));
	*n = n_next;
	*end = next_end;
	forget_others(span, *n);
	check_same(g, span, *n, *end);
	for (size_t i = 0; i < *n; i++)
		CHECK(g->region[i].span.p == span[i].p);
}

static void test_random(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct vv_numbers g = {.of = {.chunk = CHUNK}};
		struct vv_span span[REGIONS];
		uint32_t end = 0;
		size_t n = 0;

		memset(past, 0, sizeof(past));
		for (int i = 0; i < STEPS; i++) {
			step(&g, span, &n, &end);
			if (!g.of.digest)
				continue;
			host_fail(upto(1) ? 1 + (long)upto(3) : 0);
			publish(&g);
			host_fail(0);
			if (upto(2))
				look(&g);
			if (upto(9) == 0) {
				vv_numbers_forget(&g);
				for (size_t k = 0; k < REGIONS; k++)
					past[k].had = 0;
			}
			check_same(&g, span, n, end);
		}
		CHECK(g.of.chunk == CHUNK);
		vv_numbers_fini(&g);
		vv_numbers_fini(&g);
		host_end();
	}
}

static void test_slices(void)
{
	static const uint32_t ends[] = {0, 1, VV_GRAIN_SLICE - 1, VV_GRAIN_SLICE, VV_GRAIN_SLICE + 1, UINT32_MAX};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		uint64_t n = vv_numbers_slices(&(struct vv_numbers){.end = ends[i]});

		CHECK(n * VV_GRAIN_SLICE >= ends[i] && (n == 0 || (n - 1) * VV_GRAIN_SLICE < ends[i]));
	}
}

int main(void)
{
	test_random();
	test_slices();
	return 0;
}
