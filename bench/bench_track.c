/* track.cost: what it costs a program that its writes are tracked, for each tracker and share of pages written per epoch. The
 * program writes a cache line into each of some pages, in one of two states by the epoch's parity: once both are stored nothing
 * is new, and what is measured is finding the writes. */
#include "base/clock.h"
#include "support.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { EPOCHS = 8, WARM_UP = 3, LINE = 64, PASSES = 2 };

enum tracker { DIGEST, MPROTECT, SIGBUS_WP, WPASYNC, AUTO, TRACKERS };

static const char *const tracker_names[TRACKERS] = { "digest", "mprotect", "sigbus", "wpasync", "auto" };

struct writer {
	uint8_t *p;
	size_t n;
	uint32_t *list; /* the pages that are written, in the order in which they are */
	size_t pages;
	uint64_t epoch;
};

static void write_epoch(struct writer *w)
{
	uint64_t parity = w->epoch++ & 1;

	for (size_t i = 0; i < w->pages; i++) {
		uint64_t *line = (uint64_t *)(void *)(w->p + w->list[i] * (size_t)BENCH_PAGE);

		for (size_t k = 0; k < LINE / sizeof(*line); k++)
			line[k] = (uint64_t)w->list[i] << 1 | parity;
	}
}

/* Seconds; v may be NULL. */
static double run_epochs(struct writer *w, varve *v, int epochs)
{
	double start = vv_clock_s();

	for (int i = 0; i < epochs; i++) {
		write_epoch(w);
		if (v)
			bench_check(varve_checkpoint(v), "varve_checkpoint");
	}
	if (v)
		bench_check(varve_wait(v, varve_epoch(v)), "varve_wait");
	return vv_clock_s() - start;
}

/* Rounds with one tracker and without any, in a region and a session that no other tracker has seen: mappings stay split. */
static bool measure(struct bench *b, struct writer *w, enum tracker tracker, int rounds, double *ours, double *none)
{
	struct bench_session s;
	char options[64];
	uint8_t *copy;
	int rc;

	w->p = bench_memory(w->n);
	bench_fill(b, w->p, w->n, 1);
	for (int i = 0; i < rounds; i++)
		none[i] = run_epochs(w, NULL, EPOCHS);
	snprintf(options, sizeof(options), "tracker=%s", tracker_names[tracker]);
	rc = bench_session_open(b, "track", options, w->p, w->n, &s);
	if (rc == 0) {
		bench_session_checkpoint(&s);
		run_epochs(w, s.v, WARM_UP);
		for (int i = 0; i < rounds; i++)
			ours[i] = run_epochs(w, s.v, EPOCHS);
		copy = bench_memory(w->n);
		bench_session_verify(&s, copy);
		munmap(copy, w->n);
		bench_session_close(&s);
	}
	munmap(w->p, w->n);
	return rc == 0;
}

/* The least of some; what else goes on on a machine only adds, and here ten percent are to be seen. */
static double least(const double *v, int n)
{
	double l = v[0];

	for (int i = 1; i < n; i++)
		l = v[i] < l ? v[i] : l;
	return l;
}

/* The trackers in turn, twice, because a machine changes its mind within minutes; seconds of EPOCHS epochs, or 0. */
static void measure_all(struct bench *b, struct writer *w, double seconds[TRACKERS], double *none)
{
	double ours[TRACKERS][PASSES * BENCH_ROUNDS_MAX], bare[TRACKERS * PASSES * BENCH_ROUNDS_MAX];
	int n[TRACKERS] = { 0 }, bares = 0, rounds = (b->rounds + PASSES - 1) / PASSES;

	for (int pass = 0; pass < PASSES; pass++)
		for (enum tracker t = 0; t < TRACKERS; t++) {
			if (measure(b, w, t, rounds, ours[t] + n[t], bare + bares))
				n[t] += rounds;
			else if (pass == 0)
				fprintf(stderr, "bench: track.cost: no %s here: %s\n", tracker_names[t], varve_last_error());
			bares += rounds;
		}
	for (int t = 0; t < TRACKERS; t++)
		seconds[t] = n[t] ? least(ours[t], n[t]) : 0;
	*none = least(bare, bares);
}

static void cost(struct bench *b, struct writer *w, double percent)
{
	double seconds[TRACKERS], none, best = 0;
	char kase[64];

	w->pages = (size_t)((double)(w->n / BENCH_PAGE) * percent / 100);
	bench_pick(w->list, w->n / BENCH_PAGE, w->pages, 1);
	bench_shuffle(w->list, w->pages, 2);
	measure_all(b, w, seconds, &none);
	snprintf(kase, sizeof(kase), "%g%% none", percent);
	bench_line("track.cost", kase, "time", none / EPOCHS * 1e3, "ms/epoch");
	for (int t = 0; t < TRACKERS; t++) {
		if (!seconds[t])
			continue;
		snprintf(kase, sizeof(kase), "%g%% %s", percent, tracker_names[t]);
		bench_line("track.cost", kase, "time", seconds[t] / EPOCHS * 1e3, "ms/epoch");
		bench_line("track.cost", kase, "time_vs_none", seconds[t] / none, "x");
		if (t != AUTO && (!best || seconds[t] < best))
			best = seconds[t];
	}
	bench_at_most("track.cost", kase, "time_vs_best", seconds[AUTO] / best, "x", 1.10);
}

int main(int argc, char **argv)
{
	struct writer w = { 0 };
	struct bench b;

	bench_open(&b, argc, argv);
	w.n = bench_size(&b, 64ul << 20, 1ul << 30);
	w.list = calloc(w.n / BENCH_PAGE, sizeof(*w.list));
	if (!w.list)
		bench_die("no memory for the list of pages");
	cost(&b, &w, 1);
	cost(&b, &w, 10);
	cost(&b, &w, 100);
	free(w.list);
	return bench_close(&b);
}
