/* steady.compute: a program that computes on all cores, as a stencil does, and takes a checkpoint every two seconds. What checkpoints add to its run time: with varve, and
 * the way of VELOC's asynchronous mode, in which the call copies everything and a thread writes the copy through the page cache. */
#include "base/clock.h"
#include "support.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	INTERVALS = 2,  /* checkpoints of a run */
	SWEEPS = 8,     /* over the numbers of a page, in each iteration */
	STRETCH = 64,   /* pages that a thread takes at a time */
	NUMBERS = BENCH_PAGE / sizeof(double),
};

static const double EVERY = 2; /* seconds */

struct compute {
	struct bench *b;
	double *p;
	size_t pages, every; /* one page in so many is written */
	size_t phase;        /* which of them */
	size_t iterations;   /* between two checkpoints */
};

/* Diffusion along a line, in two copies of the page; an even number of sweeps ends in x. */
static void relax(double *x)
{
	double y[NUMBERS];

	memcpy(y, x, sizeof(y));
	for (int k = 0; k < SWEEPS; k++) {
		const double *from = k % 2 ? y : x;
		double *to = k % 2 ? x : y;

		for (size_t i = 1; i + 1 < NUMBERS; i++)
			to[i] = from[i] + 0.2 * (from[i - 1] - 2 * from[i] + from[i + 1]) + 1e-9;
	}
}

static void step(void *arg, size_t at)
{
	const struct compute *c = arg;

	for (size_t i = at * STRETCH; i < c->pages && i < (at + 1) * STRETCH; i++) {
		double x[NUMBERS], *page = c->p + i * NUMBERS;

		memcpy(x, page, sizeof(x));
		relax(x);
		if (i % c->every == c->phase || isnan(x[NUMBERS / 2]))
			memcpy(page, x, sizeof(x));
	}
}

/* Computes until the next checkpoint. */
static void compute(struct compute *c)
{
	c->phase = (c->phase + 37) % c->every;
	for (size_t k = 0; k < c->iterations; k++)
		vv_pool_each(c->b->pool, (c->pages + STRETCH - 1) / STRETCH, step, c);
}

static void calibrate(struct compute *c)
{
	double least = 0;

	c->iterations = 1;
	for (int k = 0; k < 5; k++) {
		double start = vv_clock_s(), took;

		compute(c);
		took = vv_clock_s() - start;
		least = k == 0 || took < least ? took : least;
	}
	c->iterations = least < EVERY ? (size_t)(EVERY / least) : 1;
}

/* ---- the way of VELOC ------------------------------------------------------------------------------------------------- */

struct copying {
	struct compute *c;
	uint8_t *copy;
	size_t n;
	unsigned epoch;
	bool writing;
	pthread_t thread;
};

static void path_of(const struct copying *w, unsigned epoch, char path[3200])
{
	snprintf(path, 3200, "%s/copy-%u", w->c->b->dir, epoch);
}

static void *write_copy(void *arg)
{
	const struct copying *w = arg;
	char path[3200];
	int fd;

	path_of(w, w->epoch, path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		bench_die("%s: %s", path, strerror(errno));
	for (size_t at = 0; at < w->n; at += BENCH_STEP) {
		size_t len = w->n - at < BENCH_STEP ? w->n - at : BENCH_STEP;

		if (pwrite(fd, w->copy + at, len, (off_t)at) != (ssize_t)len)
			bench_die("%s: %s", path, strerror(errno));
	}
	if (fsync(fd) < 0 || close(fd) < 0)
		bench_die("%s: %s", path, strerror(errno));
	if (w->epoch >= 2) {
		path_of(w, w->epoch - 2, path);
		unlink(path);
	}
	return NULL;
}

static void await_copy(struct copying *w)
{
	if (w->writing)
		pthread_join(w->thread, NULL);
	w->writing = false;
}

static void copy_all(struct copying *w)
{
	await_copy(w);
	memcpy(w->copy, w->c->p, w->n);
	w->epoch++;
	w->writing = pthread_create(&w->thread, NULL, write_copy, w) == 0;
	if (!w->writing)
		bench_die("no thread for the copy");
}

/* ---- runs ------------------------------------------------------------------------------------------------------------- */

static double run_plain(struct compute *c)
{
	double start = vv_clock_s();

	for (int k = 0; k < INTERVALS + 1; k++)
		compute(c);
	return vv_clock_s() - start;
}

static double run_copying(struct compute *c, struct copying *w)
{
	double start = vv_clock_s();

	for (int k = 0; k < INTERVALS; k++) {
		compute(c);
		copy_all(w);
	}
	compute(c);
	start = vv_clock_s() - start;
	await_copy(w);
	return start;
}

static double run_varve(struct compute *c, struct bench_session *s)
{
	double start = vv_clock_s();

	for (int k = 0; k < INTERVALS; k++) {
		compute(c);
		bench_check(varve_checkpoint(s->v), "varve_checkpoint");
	}
	compute(c);
	start = vv_clock_s() - start;
	bench_check(varve_wait(s->v, VARVE_LATEST), "varve_wait");
	return start;
}

static void tell(const char *kase, double plain, double copied, double ours, double most)
{
	double floor = plain / 1000; /* less is not told from nothing */

	copied = copied - plain > floor ? copied - plain : floor;
	ours = ours - plain > floor ? ours - plain : floor;
	bench_baseline("steady.compute", kase, "run", plain * 1e3, "ms");
	bench_baseline("steady.compute", kase, "added_by_copying", copied * 1e3, "ms");
	bench_line("steady.compute", kase, "added", ours * 1e3, "ms");
	bench_at_most("steady.compute", kase, "added_vs_copying", ours / copied, "x", most);
}

/* The first checkpoint, of everything, does not count. */
static void measure(struct bench *b, const char *kase, size_t every, double most)
{
	size_t n = b->size / BENCH_PAGE * BENCH_PAGE;
	struct compute c = { .b = b, .p = bench_memory(n), .pages = n / BENCH_PAGE, .every = every };
	struct copying w = { .c = &c, .copy = bench_memory(n), .n = n };
	double took[3][BENCH_ROUNDS_MAX];
	struct bench_session s;

	for (size_t i = 0; i < n / sizeof(double); i++)
		c.p[i] = sin((double)i * 1e-3);
	calibrate(&c);
	bench_check(bench_session_open(b, "compute", "keep=2", (uint8_t *)c.p, n, &s), "varve_open");
	bench_session_checkpoint(&s);
	copy_all(&w);
	for (int k = 0; k < b->rounds; k++) {
		took[2][k] = run_varve(&c, &s);
		took[0][k] = run_plain(&c);
		took[1][k] = run_copying(&c, &w);
	}
	tell(kase, bench_median(took[0], b->rounds), bench_median(took[1], b->rounds), bench_median(took[2], b->rounds), most);
	bench_session_close(&s);
	for (unsigned k = 0; k < 2; k++) {
		char path[3200];

		path_of(&w, w.epoch - k, path);
		bench_remove(path);
	}
	munmap(w.copy, n);
	munmap(c.p, n);
}

int main(int argc, char **argv)
{
	struct bench b;

	bench_open(&b, argc, argv);
	if (bench_wants(&b, "steady.compute")) {
		measure(&b, "100%", 1, 0.5);
		measure(&b, "1%", 100, 0.1);
	}
	return bench_close(&b);
}
