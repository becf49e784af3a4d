/* restart.time: a restart whose bytes lie in 50 layers, against one from a single layer; from the page cache, and from the disk (cold). What changed between two layers are single pages
 * all over the memory, or stretches of 64 KiB, as of a program that works on one part after the other. And against the least that there is to do, where it is
 * single pages: the same bytes copied and hashed by the same threads, from memory in which they lie as in the layers. */
#include "base/clock.h"
#include "core/format/digest.h"
#include "support.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LAYERS = 50, STRIPE = 8 << 20, BLOCK = 1 << 20, STRETCH = 16 };

struct lineage {
	const char *name;
	int layers;
	size_t stretch; /* pages that change together */
	uint8_t *p; /* what the newest epoch holds */
	double took[BENCH_ROUNDS_MAX], cold[BENCH_ROUNDS_MAX], bare[BENCH_ROUNDS_MAX];
};

/* Pages of a layer after the first. */
static size_t share(size_t n)
{
	return n / BENCH_PAGE / LAYERS;
}

static uint64_t seed_of(int layer)
{
	return 1000 + (uint64_t)layer;
}

/* A first layer, then others with 2 % of the pages each. */
static void make(struct bench *b, const char *store, struct lineage *l, size_t n)
{
	varve *v = NULL;

	l->p = bench_memory(n);
	bench_check(varve_open(store, l->name, NULL, &v), "varve_open");
	bench_check(varve_protect(v, "p", l->p, n), "varve_protect");
	bench_fill(b, l->p, n, (uint64_t)l->layers);
	bench_check(varve_checkpoint(v), "varve_checkpoint");
	for (int i = 1; i < l->layers; i++) {
		bench_change_stretches(l->p, n, share(n), l->stretch, seed_of(i));
		bench_check(varve_checkpoint(v), "varve_checkpoint");
	}
	bench_check(varve_close(v), "varve_close");
}

static double restart(const char *store, const struct lineage *l, uint8_t *to, size_t n)
{
	double start, took;
	varve *v = NULL;

	memset(to, 1, n);
	bench_check(varve_open(store, l->name, NULL, &v), "varve_open");
	bench_check(varve_protect(v, "p", to, n), "varve_protect");
	start = vv_clock_s();
	bench_check(varve_restart(v, VARVE_LATEST), "varve_restart");
	took = vv_clock_s() - start;
	bench_check(varve_close(v), "varve_close");
	if (memcmp(to, l->p, n) != 0)
		bench_die("restart.time: %s: the restart gave other bytes", l->name);
	return took;
}

/* ---- the bare copy ------------------------------------------------------------------------------------------------------ */

struct bare {
	const uint8_t *first; /* the first layer */
	uint8_t *later;       /* all others, one behind the other */
	const uint8_t **from; /* page by page, from all of them */
	uint8_t *to;
	size_t n;
};

static void scatter(struct bare *s)
{
	size_t pages = s->n / BENCH_PAGE;
	uint32_t *list = calloc(share(s->n) + 1, sizeof(*list));

	s->later = bench_memory((LAYERS - 1) * share(s->n) * BENCH_PAGE);
	s->from = calloc(pages + 1, sizeof(*s->from)); /* one more is fetched ahead */
	if (!list || !s->from)
		bench_die("no memory for %zu pages' numbers", pages);
	for (size_t i = 0; i < pages; i++)
		s->from[i] = s->first + i * BENCH_PAGE;
	s->from[pages] = s->first;
	for (int layer = 1; layer < LAYERS; layer++) {
		bench_pick(list, pages, share(s->n), seed_of(layer));
		for (size_t k = 0; k < share(s->n); k++)
			s->from[list[k]] = s->later + ((size_t)(layer - 1) * share(s->n) + k) * BENCH_PAGE;
	}
	free(list);
}

static void copy_blocks(void *arg, size_t stripe)
{
	const struct bare *s = arg;

	for (size_t at = stripe * STRIPE; at < s->n && at < (stripe + 1) * STRIPE; at += BLOCK)
		vv_digest_check_copy(s->to + at, s->first + at, s->n - at < BLOCK ? s->n - at : BLOCK);
}

static void copy_pages(void *arg, size_t stripe)
{
	const struct bare *s = arg;
	static const struct vv_digest any;

	for (size_t i = stripe * (STRIPE / BENCH_PAGE); i < s->n / BENCH_PAGE && i < (stripe + 1) * (STRIPE / BENCH_PAGE); i++)
		vv_digest_fits_copy(s->to + i * BENCH_PAGE, s->from[i], BENCH_PAGE, s->from[i + 1], &any);
}

static double copy(struct bench *b, struct bare *s, void (*step)(void *arg, size_t stripe))
{
	double start = vv_clock_s();

	vv_pool_each(b->pool, (s->n + STRIPE - 1) / STRIPE, step, s);
	return vv_clock_s() - start;
}

static double restart_cold(struct bench *b, const char *store, const struct lineage *l, uint8_t *to, size_t n)
{
	char path[3300];

	for (int i = 1; i <= l->layers; i++) {
		snprintf(path, sizeof(path), "%s/%s/00000000/%010d.r0.layer", store, l->name, i);
		bench_drop(path);
	}
	bench_settle(b, n);
	return restart(store, l, to, n);
}

/* ---- all of it ---------------------------------------------------------------------------------------------------------- */

static void report(struct bench *b, struct lineage *one, struct lineage *fifty, struct lineage *parts)
{
	double o = bench_median(one->took, b->rounds), f = bench_median(fifty->took, b->rounds), p = bench_median(parts->took, b->rounds);
	double bare_o = bench_median(one->bare, b->rounds), bare_f = bench_median(fifty->bare, b->rounds);

	bench_line("restart.time", "1 layer", "time", o * 1e3, "ms");
	bench_baseline("restart.time", "1 layer", "bare_copy", bare_o * 1e3, "ms");
	bench_line("restart.time", "1 layer", "time_vs_bare_copy", o / bare_o, "x");
	bench_line("restart.time", "50 layers", "time", f * 1e3, "ms");
	bench_baseline("restart.time", "50 layers", "bare_copy", bare_f * 1e3, "ms");
	bench_line("restart.time", "50 layers", "time_vs_bare_copy", f / bare_f, "x");
	bench_baseline("restart.time", "50 layers", "bare_copy_vs_1_layer", bare_f / bare_o, "x");
	bench_at_most("restart.time", "50 layers", "time_vs_1_layer", f / o, "x", 1.3);
	bench_line("restart.time", "50 layers, stretches", "time", p * 1e3, "ms");
	bench_at_most("restart.time", "50 layers, stretches", "time_vs_1_layer", p / o, "x", 1.3);
	o = bench_median(one->cold, b->rounds);
	f = bench_median(fifty->cold, b->rounds);
	p = bench_median(parts->cold, b->rounds);
	bench_line("restart.time", "1 layer, cold", "time", o * 1e3, "ms");
	bench_line("restart.time", "50 layers, cold", "time", f * 1e3, "ms");
	bench_line("restart.time", "50 layers, cold", "time_vs_1_layer", f / o, "x");
	bench_line("restart.time", "50 layers, stretches, cold", "time", p * 1e3, "ms");
	bench_line("restart.time", "50 layers, stretches, cold", "time_vs_1_layer", p / o, "x");
}

int main(int argc, char **argv)
{
	struct lineage one = { .name = "one", .layers = 1 }, fifty = { .name = "fifty", .layers = LAYERS, .stretch = 1 };
	struct lineage parts = { .name = "parts", .layers = LAYERS, .stretch = STRETCH };
	struct bare bare = { 0 };
	char store[3200];
	struct bench b;
	uint8_t *to;
	size_t n;

	bench_open(&b, argc, argv);
	n = bench_size(&b, 1ul << 30, 1ul << 30);
	to = bench_memory(n);
	snprintf(store, sizeof(store), "%s/restart", b.dir);
	make(&b, store, &one, n);
	make(&b, store, &fifty, n);
	make(&b, store, &parts, n);
	bare = (struct bare){ .first = one.p, .to = to, .n = n };
	scatter(&bare);
	bench_settle(&b, 0);
	bench_load(store);
	restart(store, &one, to, n); /* the first one of each counts for nothing */
	restart(store, &fifty, to, n);
	restart(store, &parts, to, n);
	for (int i = 0; i < b.rounds; i++) {
		one.took[i] = restart(store, &one, to, n);
		one.bare[i] = copy(&b, &bare, copy_blocks);
		fifty.took[i] = restart(store, &fifty, to, n);
		fifty.bare[i] = copy(&b, &bare, copy_pages);
		parts.took[i] = restart(store, &parts, to, n);
	}
	for (int i = 0; i < b.rounds; i++) {
		one.cold[i] = restart_cold(&b, store, &one, to, n);
		fifty.cold[i] = restart_cold(&b, store, &fifty, to, n);
		parts.cold[i] = restart_cold(&b, store, &parts, to, n);
	}
	report(&b, &one, &fifty, &parts);
	munmap(to, n);
	munmap(one.p, n);
	munmap(fifty.p, n);
	munmap(parts.p, n);
	munmap(bare.later, (LAYERS - 1) * share(n) * BENCH_PAGE);
	free(bare.from);
	bench_remove(store);
	return bench_close(&b);
}
