/* store.write, store.read: how near to the plain disk and the plain memory a whole checkpoint and a whole restart are. */
#include "base/clock.h"
#include "core/format/name.h"
#include "support.h"
#include <stdio.h>
#include <string.h>

static double checkpoint_new(struct bench *b, const char *store, int round, uint8_t *p)
{
	char lineage[32];
	double start, took;
	varve *v = NULL;

	snprintf(lineage, sizeof(lineage), "round%d", round);
	bench_check(varve_open(store, lineage, "mode=sync", &v), "varve_open");
	bench_check(varve_protect(v, "p", p, b->size), "varve_protect");
	start = vv_clock_s();
	bench_check(varve_checkpoint(v), "varve_checkpoint");
	took = vv_clock_s() - start;
	varve_close(v);
	return took;
}

static void store_write(struct bench *b)
{
	double plain[BENCH_ROUNDS_MAX], direct[BENCH_ROUNDS_MAX], ours[BENCH_ROUNDS_MAX], a, d, o, gb = (double)b->size / 1e9;
	uint8_t *p = bench_memory(b->size);
	char store[3200];

	snprintf(store, sizeof(store), "%s/write", b->dir);
	bench_fill(b, p, b->size, 1);
	for (int i = 0; i < b->rounds; i++) {
		bench_settle(b, b->size);
		plain[i] = bench_write(b, p, b->size);
		direct[i] = bench_direct_write(b, p, b->size);
		bench_settle(b, b->size);
		ours[i] = checkpoint_new(b, store, i, p);
		bench_remove(store);
	}
	a = bench_median(plain, b->rounds);
	d = bench_median(direct, b->rounds);
	o = bench_median(ours, b->rounds);
	bench_baseline("store.write", "plain", "rate", gb / a, "GB/s");
	bench_baseline("store.write", "direct", "rate", gb / d, "GB/s");
	bench_line("store.write", "varve", "rate", gb / o, "GB/s");
	bench_line("store.write", "unique pages", "rate_vs_plain", a / o, "x");
	bench_at_least("store.write", "unique pages", "rate_vs_direct", d / o, "x", 0.80);
}

static double restart(struct bench *b, const char *store, uint8_t *to)
{
	double start, took;
	varve *v = NULL;

	bench_check(varve_open(store, "round0", "mode=sync", &v), "varve_open");
	bench_check(varve_protect(v, "p", to, b->size), "varve_protect");
	start = vv_clock_s();
	bench_check(varve_restart(v, VARVE_LATEST), "varve_restart");
	took = vv_clock_s() - start;
	varve_close(v);
	return took;
}

struct read_set {
	char store[3200], layer[3200 + VV_NAME_MAX];
	uint8_t *p, *to;
};

static void same_again(struct bench *b, struct read_set *s)
{
	if (memcmp(s->p, s->to, b->size) != 0)
		bench_die("the restart gave other bytes");
	memset(s->to, 1, b->size);
}

static void read_warm(struct bench *b, struct read_set *s)
{
	double copy[BENCH_ROUNDS_MAX], filled[BENCH_ROUNDS_MAX], ours[BENCH_ROUNDS_MAX], c, f, o, gb = (double)b->size / 1e9;

	bench_read(b, s->layer, s->to, b->size);
	for (int i = 0; i < b->rounds; i++) {
		copy[i] = bench_copy_mapped(b, s->layer, s->to, b->size, false);
		memset(s->to, 1, b->size);
		ours[i] = restart(b, s->store, s->to);
		same_again(b, s);
		filled[i] = bench_copy_mapped(b, s->layer, s->to, b->size, true);
	}
	c = bench_median(copy, b->rounds);
	f = bench_median(filled, b->rounds);
	o = bench_median(ours, b->rounds);
	bench_baseline("store.read", "warm plain", "rate", gb / c, "GB/s");
	bench_line("store.read", "warm varve", "rate", gb / o, "GB/s");
	bench_at_least("store.read", "warm", "rate_vs_memcpy", c / o, "x", 0.60);
	bench_line("store.read", "warm", "rate_vs_memcpy_of_populated_map", f / o, "x");
}

static void read_cold(struct bench *b, struct read_set *s)
{
	double plain[BENCH_ROUNDS_MAX], direct[BENCH_ROUNDS_MAX], ours[BENCH_ROUNDS_MAX], p, d, o, gb = (double)b->size / 1e9;

	bench_direct_write(b, s->p, b->size);
	for (int i = 0; i < b->rounds; i++) {
		direct[i] = bench_direct_read(b, s->to, b->size);
		bench_drop(s->layer);
		plain[i] = bench_read(b, s->layer, s->to, b->size);
		bench_drop(s->layer);
		ours[i] = restart(b, s->store, s->to);
		same_again(b, s);
	}
	p = bench_median(plain, b->rounds);
	d = bench_median(direct, b->rounds);
	o = bench_median(ours, b->rounds);
	bench_baseline("store.read", "cold plain", "rate", gb / p, "GB/s");
	bench_baseline("store.read", "cold direct", "rate", gb / d, "GB/s");
	bench_line("store.read", "cold varve", "rate", gb / o, "GB/s");
	bench_line("store.read", "cold", "time_vs_plain", o / p, "x");
	bench_at_most("store.read", "cold", "time_vs_direct", o / d, "x", 1.2);
}

static void store_read(struct bench *b)
{
	char name[VV_NAME_MAX];
	struct read_set s = { .p = bench_memory(b->size), .to = bench_memory(b->size) };

	snprintf(s.store, sizeof(s.store), "%s/read", b->dir);
	bench_fill(b, s.p, b->size, 2);
	checkpoint_new(b, s.store, 0, s.p);
	vv_name_layer(name, "round0", 1, 0);
	snprintf(s.layer, sizeof(s.layer), "%s/%s", s.store, name);
	bench_settle(b, 0);
	read_warm(b, &s);
	read_cold(b, &s);
	bench_remove(s.store);
}

int main(int argc, char **argv)
{
	struct bench b;

	bench_open(&b, argc, argv);
	if (bench_wants(&b, "store.write"))
		store_write(&b);
	if (bench_wants(&b, "store.read"))
		store_read(&b);
	return bench_close(&b);
}
