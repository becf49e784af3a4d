/* restart.time: a restart whose bytes lie in 50 layers, against one from a single layer; from the page cache. */
#include "base/clock.h"
#include "support.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

struct lineage {
	const char *name;
	uint8_t *p; /* what the newest epoch holds */
	double took[BENCH_ROUNDS_MAX];
};

/* A first layer, then others with 2 % of the pages each. */
static void make(struct bench *b, const char *store, struct lineage *l, size_t n, int layers)
{
	varve *v = NULL;

	bench_check(varve_open(store, l->name, NULL, &v), "varve_open");
	bench_check(varve_protect(v, "p", l->p, n), "varve_protect");
	bench_fill(b, l->p, n, (uint64_t)layers);
	bench_check(varve_checkpoint(v), "varve_checkpoint");
	for (int i = 1; i < layers; i++) {
		bench_change(l->p, n, n / BENCH_PAGE / 50, 1000 + (uint64_t)i);
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

int main(int argc, char **argv)
{
	struct lineage one = { .name = "one" }, fifty = { .name = "fifty" };
	char store[3200];
	struct bench b;
	double o, f;
	uint8_t *to;
	size_t n;

	bench_open(&b, argc, argv);
	n = bench_size(&b, 1ul << 30, 1ul << 30);
	to = bench_memory(n);
	one.p = bench_memory(n);
	fifty.p = bench_memory(n);
	snprintf(store, sizeof(store), "%s/restart", b.dir);
	make(&b, store, &one, n, 1);
	make(&b, store, &fifty, n, 50);
	bench_settle(&b, 0);
	restart(store, &one, to, n); /* the first one of each finds parts of the files on the disk */
	restart(store, &fifty, to, n);
	for (int i = 0; i < b.rounds; i++) {
		one.took[i] = restart(store, &one, to, n);
		fifty.took[i] = restart(store, &fifty, to, n);
	}
	o = bench_median(one.took, b.rounds);
	f = bench_median(fifty.took, b.rounds);
	bench_line("restart.time", "1 layer", "time", o * 1e3, "ms");
	bench_line("restart.time", "50 layers", "time", f * 1e3, "ms");
	bench_at_most("restart.time", "50 layers", "time_vs_1_layer", f / o, "x", 1.3);
	munmap(to, n);
	munmap(one.p, n);
	munmap(fifty.p, n);
	bench_remove(store);
	return bench_close(&b);
}
