/* async.pattern, async.buffer: what checkpoints cost a program that goes on writing while they are stored, as in figures 2 and
 * 4 of Nicolae and Cappello 2013 (AI-Ckpt). A region is written over and over, byte by byte, its pages in one fixed order; the store is slow. */
#include "base/clock.h"
#include "support.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ITERATIONS = 39, EVERY = 10, CHECKPOINTS = 3, LAST = EVERY * CHECKPOINTS };

static const double FLUSH = 1.4; /* iterations that storing the whole region takes: the paper's 256 MB at 55 MB/s */

/* The paper's runtime: faults by mprotect, page by page, copies only at first writes, everything dirty is stored. It commits
 * pages one by one; with blocks as large as ours by default a written page would be let go only with 255 others. */
#define AS_IN_THE_PAPER "tracker=mprotect eager=no granule=4096 dedup=no block=16KiB"

enum mode { SYNC, ADDRESS, PAPER, VARVE, MODES };

static const struct {
	const char *name, *options;
} modes[MODES] = {
	[SYNC] = { "sync", "mode=sync " AS_IN_THE_PAPER },
	[ADDRESS] = { "address", "mode=async order=address " AS_IN_THE_PAPER },
	[PAPER] = { "paper", "mode=async order=adaptive " AS_IN_THE_PAPER },
	[VARVE] = { "varve", "" },
};

/* ---- the program that is checkpointed --------------------------------------------------------------------------------- */

struct times {
	double wall;                      /* all of it */
	double iteration[ITERATIONS + 1]; /* from 1 */
	double call[CHECKPOINTS + 1];     /* of varve_checkpoint, from 1; [c] is after iteration EVERY * c */
};

struct work {
	struct bench *b;
	const char *bench;
	uint8_t *p;       /* the region */
	uint32_t *order;  /* its pages as they are accessed */
	size_t pages, n;  /* n bytes */
	bool half;        /* half of the pages are written with what they held */
	double wall;      /* seconds of a run without checkpoints */
	double iteration; /* of one of its iterations: T */
	double bandwidth; /* of the store, bytes/s */
	struct times none; /* the last run without checkpoints */
};

/* A chain of dependent steps for each byte. The paper's program took 12 ns for one: 256 MB an iteration, 1.4 of which are what 55 MB/s
 * take for them. These are 5 ns, 20 us a page: a page fault still weighs more than it did there, and a run is no longer than it must
 * be. */
static uint32_t churn(uint32_t x)
{
	enum { STEPS = 4 };

	for (int i = 0; i < STEPS; i++) {
		x ^= x << 13; /* xorshift32 */
		x ^= x >> 17;
		x ^= x << 5;
	}
	return x;
}

static void write_page(uint8_t *page, uint32_t x)
{
	volatile uint8_t *to = page;

	for (size_t i = 0; i < BENCH_PAGE; i++) {
		x = churn(x);
		to[i] = (uint8_t)x;
	}
}

/* What a page holds after an iteration follows from this. Different for all pages and iterations, and never 0; iteration 0
 * stands for the content that stays, in pages spread evenly. */
static uint32_t content(const struct work *w, uint32_t page, uint32_t iteration)
{
	bool stays = w->half && page * 2654435769u >> 31;

	return (uint32_t)((stays ? 0 : iteration) * w->pages + page + 1) * 2654435761u;
}

static void iterate(const struct work *w, uint32_t iteration)
{
	for (size_t i = 0; i < w->pages; i++)
		write_page(w->p + w->order[i] * (size_t)BENCH_PAGE, content(w, w->order[i], iteration));
}

/* v may be NULL. */
static void iterate_all(const struct work *w, varve *v, struct times *t)
{
	double start = vv_clock_s(), last = start, now;

	for (uint32_t i = 1; i <= ITERATIONS; i++) {
		iterate(w, i);
		now = vv_clock_s();
		t->iteration[i] = now - last;
		last = now;
		if (!v || i % EVERY != 0)
			continue;
		bench_check(varve_checkpoint(v), "varve_checkpoint");
		now = vv_clock_s();
		t->call[i / EVERY] = now - last;
		last = now;
	}
	t->wall = last - start;
}

/* The last checkpoint must hold the state at its call, though everything was overwritten while it was being stored. */
static void verify(const struct work *w, varve *v)
{
	uint8_t *copy = bench_memory(w->n), page[BENCH_PAGE];

	bench_check(varve_restart_region(v, VARVE_LATEST, "p", copy, w->n), "varve_restart_region");
	for (size_t i = 0; i < w->pages; i++) {
		write_page(page, content(w, (uint32_t)i, LAST));
		if (memcmp(page, copy + i * BENCH_PAGE, BENCH_PAGE) != 0)
			bench_die("page %zu of the last epoch is not what it was at the call", i);
	}
	munmap(copy, w->n);
}

/* Memory that no run before has left its traces in (protections, split mappings). */
static void fresh(struct work *w)
{
	if (w->p)
		munmap(w->p, w->n);
	w->p = bench_memory(w->n);
	iterate(w, 0);
}

/* ---- a run with checkpoints -------------------------------------------------------------------------------------------- */

enum access { WAIT, COW, AVOIDED, AFTER, ACCESSES };

static const char *const access_names[ACCESSES] = { "wait", "cow", "avoided", "after" };

struct result {
	struct times times;
	double overhead;         /* seconds per checkpoint, when those without checkpoints are known */
	double pages[ACCESSES];  /* per checkpoint */
};

/* "wait":{"pages":12,...} */
static double pages_of(const char *line, const char *name)
{
	char key[32];
	const char *at;

	snprintf(key, sizeof(key), "\"%s\":{\"pages\":", name);
	at = strstr(line, key);
	if (!at)
		bench_die("no %s in the statistics: %s", name, line);
	return strtod(at + strlen(key), NULL);
}

/* The mean over the checkpoints, but for the first one, which was before the measurement. */
static void read_accesses(const char *path, struct result *r)
{
	FILE *f = fopen(path, "r");
	char line[4096];
	int n = 0;

	if (!f)
		bench_die("no statistics in '%s'", path);
	for (; fgets(line, sizeof(line), f); n++)
		for (int a = 0; n > 0 && a < ACCESSES; a++)
			r->pages[a] += pages_of(line, access_names[a]) / CHECKPOINTS;
	fclose(f);
	if (n != CHECKPOINTS + 1)
		bench_die("%d epochs in the statistics, not %d", n, CHECKPOINTS + 1);
}

static struct result run(struct work *w, enum mode mode, size_t buffer)
{
	char options[3600], stats[3200];
	struct bench_session s;
	struct result r = { 0 };

	snprintf(stats, sizeof(stats), "%s/stats", w->b->dir);
	snprintf(options, sizeof(options), "codec=none %s buffer=%zu bandwidth=%.0f stats=%s", modes[mode].options, buffer,
		 w->bandwidth, stats);
	fresh(w);
	if (bench_session_open(w->b, "async", options, w->p, w->n, &s))
		bench_die("%s", varve_last_error());
	bench_session_checkpoint(&s); /* so that all that are measured are increments */
	iterate_all(w, s.v, &r.times);
	bench_check(varve_wait(s.v, varve_epoch(s.v)), "varve_wait");
	verify(w, s.v);
	bench_session_close(&s);
	read_accesses(stats, &r);
	bench_remove(stats);
	return r;
}

/* What a checkpoint adds to the run: the call, and what the nine iterations after it take longer. There are three checkpoints
 * alike; for each place in the nine the median of the three counts. In the sum of all 39, another program's half second
 * on the same machine would weigh as much as a checkpoint. */
static double overhead(const struct work *w, const struct times *t)
{
	double sum = 0, three[CHECKPOINTS];

	for (int k = 0; k < EVERY; k++) {
		for (int c = 1; c <= CHECKPOINTS; c++)
			three[c - 1] = k ? t->iteration[EVERY * c + k] : t->call[c];
		sum += bench_median(three, CHECKPOINTS) - (k ? w->iteration : 0);
	}
	return sum;
}

static double overhead_wall(const struct work *w, const struct times *t)
{
	return (t->wall - w->wall) / CHECKPOINTS;
}

static void work_init(struct work *w, struct bench *b, const char *bench, size_t n)
{
	*w = (struct work){ .b = b, .bench = bench, .n = n, .pages = n / BENCH_PAGE };
	w->order = malloc(w->pages * sizeof(*w->order));
	if (!w->order)
		bench_die("no memory for %zu pages' numbers", w->pages);
	for (size_t i = 0; i < w->pages; i++)
		w->order[i] = (uint32_t)i;
}

static void work_fini(struct work *w)
{
	munmap(w->p, w->n);
	free(w->order);
}

/* The baseline: the run without checkpoints is measured before the others, which tells how fast the store shall be, and again
 * after them. */
static void baseline(struct work *w, bool again)
{
	double sorted[ITERATIONS], iteration;

	fresh(w);
	w->none = (struct times){ 0 };
	iterate_all(w, NULL, &w->none);
	memcpy(sorted, w->none.iteration + 1, sizeof(sorted));
	iteration = bench_median(sorted, ITERATIONS);
	w->wall = again ? (w->wall + w->none.wall) / 2 : w->none.wall;
	w->iteration = again ? (w->iteration + iteration) / 2 : iteration;
	if (!again)
		w->bandwidth = (double)w->n / (FLUSH * w->iteration);
}

/* ---- async.pattern ----------------------------------------------------------------------------------------------------- */

enum pattern { ASCENDING, RANDOM, DESCENDING, PATTERNS };

static const char *const pattern_names[PATTERNS] = { "ascending", "random", "descending" };

static void arrange(struct work *w, enum pattern pattern)
{
	for (size_t i = 0; i < w->pages; i++)
		w->order[i] = (uint32_t)(pattern == DESCENDING ? w->pages - 1 - i : i);
	if (pattern == RANDOM)
		bench_shuffle(w->order, w->pages, 1);
}

static void report(const struct work *w, const char *kase, const struct result *r)
{
	bench_line(w->bench, kase, "overhead", r->overhead, "s");
	bench_line(w->bench, kase, "overhead_by_wall_time", overhead_wall(w, &r->times), "s");
	for (int a = 0; a < ACCESSES; a++)
		bench_line(w->bench, kase, access_names[a], r->pages[a], "pages");
}

/* No runtime can do with less: the new bytes must be stored before they are written again, but for what the buffer holds and
 * what is stored while the first iteration goes on. */
static double bound(const struct work *w, size_t buffer)
{
	double bytes = w->half ? (double)w->n / 2 : (double)w->n;

	return (bytes - (double)buffer) / w->bandwidth - w->iteration;
}

static void judge_varve(const struct work *w, const char *kase, double seconds, double least)
{
	bench_line(w->bench, kase, "bound_vs_iteration", least / w->iteration, "x");
	if (least <= 0) { /* all of it can be hidden */
		bench_at_most(w->bench, kase, "overhead_vs_iteration", seconds / w->iteration, "x", 0.05);
		return;
	}
	bench_line(w->bench, kase, "overhead_vs_iteration", seconds / w->iteration, "x");
	bench_at_most(w->bench, kase, "overhead_vs_bound", seconds / least, "x", 1.25);
}

static void judge_paper(const struct work *w, const char *kase, enum pattern pattern, const struct result *r)
{
	const struct result *paper = &r[PAPER], *address = &r[ADDRESS];

	bench_at_least(w->bench, kase, "less_than_sync", 1 - paper->overhead / r[SYNC].overhead, "x", 0.70);
	if (pattern == ASCENDING) {
		bench_line(w->bench, kase, "less_than_address", 1 - paper->overhead / address->overhead, "x");
		return;
	}
	bench_at_least(w->bench, kase, "less_than_address", 1 - paper->overhead / address->overhead, "x",
		       pattern == RANDOM ? 0.33 : 0.50);
	bench_at_most(w->bench, kase, "waits_vs_address", paper->pages[WAIT] / address->pages[WAIT], "x", 0.6);
}

static void one_pattern(struct work *w, enum pattern which)
{
	enum mode first = w->half ? PAPER : SYNC; /* content makes no difference to those without dedup */
	size_t buffer = w->n / 16;
	struct result r[MODES] = { 0 };
	char kase[64];

	arrange(w, which);
	baseline(w, false);
	for (enum mode m = first; m < MODES; m++)
		r[m] = run(w, m, buffer);
	baseline(w, true);
	snprintf(kase, sizeof(kase), "%s %s none", pattern_names[which], w->half ? "half" : "new");
	bench_baseline(w->bench, kase, "iteration", w->iteration, "s");
	bench_baseline(w->bench, kase, "bandwidth", w->bandwidth / 1e6, "MB/s");
	bench_baseline(w->bench, kase, "overhead_vs_iteration", overhead(w, &w->none) / w->iteration, "x"); /* the noise */
	for (enum mode m = first; m < MODES; m++) {
		r[m].overhead = overhead(w, &r[m].times);
		snprintf(kase, sizeof(kase), "%s %s %s", pattern_names[which], w->half ? "half" : "new", modes[m].name);
		report(w, kase, &r[m]);
		if (m != VARVE)
			bench_line(w->bench, kase, "overhead_vs_iteration", r[m].overhead / w->iteration, "x");
		if (m == PAPER && !w->half)
			judge_paper(w, kase, which, r);
	}
	judge_varve(w, kase, r[VARVE].overhead, bound(w, buffer));
	if (w->half)
		bench_at_most(w->bench, kase, "overhead_vs_paper", r[VARVE].overhead / r[PAPER].overhead, "x", 0.5);
	else
		bench_line(w->bench, kase, "overhead_vs_paper", r[VARVE].overhead / r[PAPER].overhead, "x");
}

static void async_pattern(struct bench *b)
{
	struct work w;

	work_init(&w, b, "async.pattern", bench_size(b, 16ul << 20, 256ul << 20));
	for (int half = 0; half < 2; half++)
		for (enum pattern p = 0; p < PATTERNS; p++) {
			if (half && p != RANDOM && !b->full)
				continue; /* what stays the same does not depend on the order */
			w.half = half;
			one_pattern(&w, p);
		}
	work_fini(&w);
}

/* ---- async.buffer ------------------------------------------------------------------------------------------------------ */

static void async_buffer(struct bench *b)
{
	static const unsigned parts[] = { 0, 32, 8, 1, 64, 16, 4, 2 }; /* of the region; 0 = none */
	enum { MOST = sizeof(parts) / sizeof(parts[0]) };
	int sizes = b->full ? MOST : 4;
	struct result r[MOST][MODES] = { 0 }, sync;
	struct work w;
	char kase[64];

	work_init(&w, b, "async.buffer", bench_size(b, 6ul << 20, 256ul << 20));
	arrange(&w, RANDOM);
	baseline(&w, false);
	sync = run(&w, SYNC, 0);
	for (int i = 0; i < sizes; i++)
		for (enum mode m = ADDRESS; m < MODES; m++)
			r[i][m] = run(&w, m, parts[i] ? w.n / parts[i] : 0);
	baseline(&w, true);
	sync.overhead = overhead(&w, &sync.times);
	bench_line(w.bench, "sync", "overhead", sync.overhead, "s");
	bench_line(w.bench, "sync", "overhead_vs_iteration", sync.overhead / w.iteration, "x");
	for (int i = 0; i < sizes; i++)
		for (enum mode m = ADDRESS; m < MODES; m++) {
			r[i][m].overhead = overhead(&w, &r[i][m].times);
			snprintf(kase, sizeof(kase), "%s%u %s", parts[i] > 1 ? "1/" : "", parts[i], modes[m].name);
			bench_line(w.bench, kase, "less_than_sync", 100 * (1 - r[i][m].overhead / sync.overhead), "%");
		}
	work_fini(&w);
}

int main(int argc, char **argv)
{
	struct bench b;

	bench_open(&b, argc, argv);
	if (bench_wants(&b, "async.pattern"))
		async_pattern(&b);
	if (bench_wants(&b, "async.buffer"))
		async_buffer(&b);
	return bench_close(&b);
}
