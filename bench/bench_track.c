/* track.cost: what it costs a program that its writes are tracked, for each tracker and share of pages written per epoch. The
 * program writes a cache line into each of some pages, in one of two states by the epoch's parity: once both are stored nothing
 * is new, and what is measured is finding the writes. The store is in memory, so that what a disk takes to make an epoch durable,
 * which is the same for all, neither hides nor blurs the differences. */
#include "base/clock.h"
#include "codec/codec.h"
#include "support.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BEGIN = 10, PER_ROUND = 8, MOST = BEGIN + PER_ROUND * BENCH_ROUNDS_MAX, LINE = 64 };

enum tracker { DIGEST, MPROTECT, SIGBUS_WP, WPASYNC, AUTO, NONE, TRACKERS };

static const char *const tracker_names[TRACKERS] = { "digest", "mprotect", "sigbus", "wpasync", "auto", "none" };

struct writer {
	uint8_t *p;
	size_t n;
	const uint32_t *list; /* the pages that are written, in the order in which they are */
	size_t pages;
	uint64_t epoch;
};

struct rival {
	struct writer w;
	varve *v; /* NULL: without varve, or it is not to be had here */
	bool there;
	double epoch[MOST]; /* seconds */
};

/* A line that no other page has, of this state. */
static void write_line(struct writer *w, uint32_t page, uint64_t state)
{
	uint64_t *line = (uint64_t *)(void *)(w->p + page * (size_t)BENCH_PAGE);

	for (size_t k = 0; k < LINE / sizeof(*line); k++)
		line[k] = (uint64_t)page << 2 | state;
}

static void write_epoch(struct writer *w)
{
	uint64_t parity = w->epoch++ & 1;

	for (size_t i = 0; i < w->pages; i++)
		write_line(w, w->list[i], parity);
}

static double run_epoch(struct rival *r)
{
	double start = vv_clock_s();

	write_epoch(&r->w);
	if (r->v) {
		bench_check(varve_checkpoint(r->v), "varve_checkpoint");
		bench_check(varve_wait(r->v, varve_epoch(r->v)), "varve_wait");
	}
	return vv_clock_s() - start;
}

/* Pages of noise that are alike but for their lines: coded, their states take little memory. */
static void fill(struct bench *b, struct writer *w)
{
	bench_fill(b, w->p, BENCH_PAGE, 1);
	for (size_t i = 1; i < w->n / BENCH_PAGE; i++)
		memcpy(w->p + i * BENCH_PAGE, w->p, BENCH_PAGE);
	for (size_t i = 0; i < w->n / BENCH_PAGE; i++)
		write_line(w, (uint32_t)i, 2);
}

static void enter(struct bench *b, struct rival *r, enum tracker tracker, double percent)
{
	char store[64], options[80];
	int rc = 0;

	fill(b, &r->w);
	snprintf(store, sizeof(store), "mem:track-%g-%s", percent, tracker_names[tracker]);
	snprintf(options, sizeof(options), "history=15%% codec=%s tracker=%s", vv_codec_named("zstd", 4) ? "zstd" : "none", tracker_names[tracker]);
	if (tracker != NONE)
		rc = varve_open(store, "track", options, &r->v);
	r->there = rc == 0;
	if (rc == VARVE_ENOTSUP) {
		fprintf(stderr, "bench: track.cost: no %s here: %s\n", tracker_names[tracker], varve_last_error());
		return;
	}
	bench_check(rc, "varve_open");
	if (r->v) {
		bench_check(varve_protect(r->v, "p", r->w.p, r->w.n), "varve_protect");
		bench_check(varve_checkpoint(r->v), "varve_checkpoint");
		bench_check(varve_wait(r->v, varve_epoch(r->v)), "varve_wait");
	}
}

/* A fast tracker that has missed a write is worth nothing. */
static void leave(struct rival *r)
{
	uint8_t *copy = r->v ? bench_memory(r->w.n) : NULL;

	if (r->v) {
		bench_check(varve_restart_region(r->v, VARVE_LATEST, "p", copy, r->w.n), "varve_restart_region");
		if (memcmp(copy, r->w.p, r->w.n) != 0)
			bench_die("track.cost: the newest epoch holds other bytes than memory");
		munmap(copy, r->w.n);
	}
	varve_close(r->v);
	munmap(r->w.p, r->w.n);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Seconds of an epoch once all is as it will be. The lower quartile: what else goes on on a machine only adds. */
static double settled(const struct rival *r, int epochs)
{
	double sorted[MOST];
	int n = epochs - BEGIN;

	memcpy(sorted, r->epoch + BEGIN, (size_t)n * sizeof(*sorted));
	qsort(sorted, (size_t)n, sizeof(*sorted), ascending);
	return sorted[n / 4];
}

/* Seconds of all epochs from the first on: what is new is stored, trackers are tried, tiles get their size. */
static double whole(const struct rival *r, int epochs)
{
	double sum = 0;

	for (int i = 0; i < epochs; i++)
		sum += r->epoch[i];
	return sum;
}

static double best(const struct rival *r, int epochs, double (*of)(const struct rival *r, int epochs))
{
	double least = 0;

	for (int t = 0; t < AUTO; t++)
		if (r[t].there && (!least || of(&r[t], epochs) < least))
			least = of(&r[t], epochs);
	return least;
}

static void report(const struct rival *r, double percent, int epochs)
{
	double none = settled(&r[NONE], epochs);
	char kase[64];

	for (int t = 0; t < TRACKERS; t++) {
		if (!r[t].there)
			continue;
		snprintf(kase, sizeof(kase), "%g%% %s", percent, tracker_names[t]);
		(t == NONE ? bench_baseline : bench_line)("track.cost", kase, "time", settled(&r[t], epochs) * 1e3, "ms/epoch");
		if (t == NONE)
			continue;
		bench_line("track.cost", kase, "time_vs_none", settled(&r[t], epochs) / none, "x");
		bench_line("track.cost", kase, "whole_run", whole(&r[t], epochs) / epochs * 1e3, "ms/epoch");
	}
	snprintf(kase, sizeof(kase), "%g%% auto", percent);
	bench_line("track.cost", kase, "whole_run_vs_best", whole(&r[AUTO], epochs) / best(r, epochs, whole), "x");
	bench_at_most("track.cost", kase, "time_vs_best", settled(&r[AUTO], epochs) / best(r, epochs, settled), "x", 1.10);
}

/* The trackers take turns at single epochs, so that all see the same machine; in another order every time, for what one does behind an epoch that is durable comes to lie in
 * the next one's. */
static void take_turns(struct rival *r, int epoch)
{
	uint32_t turn[TRACKERS];

	for (uint32_t t = 0; t < TRACKERS; t++)
		turn[t] = t;
	bench_shuffle(turn, TRACKERS, 100 + (uint64_t)epoch);
	for (int i = 0; i < TRACKERS; i++)
		if (r[turn[i]].there)
			r[turn[i]].epoch[epoch] = run_epoch(&r[turn[i]]);
}

static void cost(struct bench *b, size_t n, uint32_t *list, double percent)
{
	static struct rival r[TRACKERS];
	size_t pages = (size_t)((double)(n / BENCH_PAGE) * percent / 100);
	int epochs = BEGIN + PER_ROUND * b->rounds;
	uint8_t *p[TRACKERS];

	bench_pick(list, n / BENCH_PAGE, pages, 1);
	bench_shuffle(list, pages, 2);
	bench_memory_alike(p, TRACKERS, n); /* each its own, for mappings stay split */
	for (enum tracker t = 0; t < TRACKERS; t++) {
		r[t] = (struct rival){ .w = { .p = p[t], .n = n, .list = list, .pages = pages } };
		enter(b, &r[t], t, percent);
	}
	for (int i = 0; i < epochs; i++)
		take_turns(r, i);
	for (enum tracker t = 0; t < TRACKERS; t++)
		leave(&r[t]);
	report(r, percent, epochs);
}

int main(int argc, char **argv)
{
	static const double shares[] = { 1, 10, 20, 40, 100 };
	struct bench b;
	uint32_t *list;
	size_t n;

	bench_open(&b, argc, argv);
	n = bench_size(&b, 64ul << 20, 1ul << 30);
	list = calloc(n / BENCH_PAGE, sizeof(*list));
	if (!list)
		bench_die("no memory for the list of pages");
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
		cost(&b, n, list, shares[i]);
	free(list);
	return bench_close(&b);
}
