/* collective.app: a stencil on many ranks, as in figures 4 and 5 of Nicolae 2013, and with a slow store as in figure 3 of S2. An MPI program: bench/run
 * starts it with 2 and 8 ranks, or those of --ranks. Methods are measured in turn, each in a session and a store of its own. */
#include "ranks.h"
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <sys/mman.h>

/* ---- Nicolae 2013's figures 4, 5 ------------------------------------------------------------------------------------------ */

/* Heat that spreads over ground that is the same under every rank, while all of it is warmed by the sun: each rank has the rows
 * of one piece, and the pieces form a ring. One of them has a fire. Away from it pages change all the time, on all ranks in the
 * same way, and inside of a rank half of them alike: what the paper saw around its hurricane. */
enum { STEPS = 60, EVERY = 25 };

struct field {
	const struct job *j;
	size_t nx, ny;
	double *now, *next; /* ny rows and one more on each side */
	double *ground;     /* never written again */
	int work;           /* how much else is computed for each cell */
};

static size_t rows_bytes(const struct field *f)
{
	return (f->ny + 2) * f->nx * sizeof(double);
}

/* So many bytes in all. */
static struct field field_new(const struct job *j, size_t bytes, int work)
{
	struct field f = { .j = j, .nx = 1024, .ny = bytes / 3 / sizeof(double) / 1024 - 2, .work = work };

	f.now = bench_memory(rows_bytes(&f));
	f.next = bench_memory(rows_bytes(&f));
	f.ground = bench_memory(rows_bytes(&f));
	return f;
}

static void field_free(struct field *f)
{
	munmap(f->now, rows_bytes(f));
	munmap(f->next, rows_bytes(f));
	munmap(f->ground, rows_bytes(f));
}

static void field_start(struct field *f)
{
	const struct job *j = f->j;

	for (size_t y = 0; y < f->ny + 2; y++)
		for (size_t x = 0; x < f->nx; x++) {
			size_t row = (y + f->ny - 1) % f->ny; /* the rows of the neighbours are as ours */
			double hill = row < f->ny / 2 ? 0.1 * sin((double)(row * f->nx + x)) : 0;

			f->ground[y * f->nx + x] = 0.2 + hill;
			f->now[y * f->nx + x] = 1 + hill;
			f->next[y * f->nx + x] = 0;
		}
	if (j->rank == j->ranks / 2)
		for (size_t y = f->ny / 2; y < f->ny / 2 + f->ny / 16 + 1; y++)
			for (size_t x = 0; x < f->nx; x++)
				f->now[y * f->nx + x] = 100 + sin((double)(x * y));
}

static void field_exchange(struct field *f)
{
	const struct job *j = f->j;
	int up = (j->rank + 1) % j->ranks, down = (j->rank + j->ranks - 1) % j->ranks, n = (int)f->nx;
	double *first = f->now + f->nx, *last = f->now + f->ny * f->nx;

	MPI_Sendrecv(last, n, MPI_DOUBLE, up, 0, f->now, n, MPI_DOUBLE, down, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Sendrecv(first, n, MPI_DOUBLE, down, 1, last + f->nx, n, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void field_row(struct field *f, size_t y, double sun)
{
	const double *c = f->now + y * f->nx, *n = c - f->nx, *s = c + f->nx, *g = f->ground + y * f->nx;
	double *to = f->next + y * f->nx;

	for (size_t x = 0; x < f->nx; x++) {
		double west = c[x ? x - 1 : f->nx - 1], east = c[x + 1 < f->nx ? x + 1 : 0];

		to[x] = c[x] + g[x] * (n[x] + s[x] + west + east - 4 * c[x]) + sun;
	}
	for (size_t x = 0; f->work && x < f->nx; x++)
		for (int k = 0; k < f->work; k++)
			to[x] += 1e-6 * (c[x] - to[x]) * to[x];
}

static void field_step(struct field *f, int step)
{
	double *swap = f->now;

	field_exchange(f);
	for (size_t y = 1; y <= f->ny; y++)
		field_row(f, y, 1e-3 * step);
	f->now = f->next;
	f->next = swap;
}

static void field_open(struct field *f, const char *options, struct session *s)
{
	session_open(f->j, f->j->disk, options, BENCH_PAGE, s);
	bench_check(varve_protect(s->v, "a", f->now, rows_bytes(f)), "varve_protect");
	bench_check(varve_protect(s->v, "b", f->next, rows_bytes(f)), "varve_protect");
	bench_check(varve_protect(s->v, "ground", f->ground, rows_bytes(f)), "varve_protect");
}

/* Returns the seconds of the run; options NULL: without checkpoints. */
static double field_run(struct field *f, const char *options, struct outcome *o)
{
	double *a = f->now, *b = f->next, start;
	struct session s = { 0 };

	*o = (struct outcome){ 0 };
	field_start(f);
	if (options) {
		field_open(f, options, &s);
		checkpoint(&s, o); /* not in the time: the paper's runs begin with all pages known */
		*o = (struct outcome){ 0 };
	}
	barrier();
	start = vv_clock_s();
	for (int i = 1; i <= STEPS; i++) {
		field_step(f, i);
		if (options && i % EVERY == 0)
			checkpoint(&s, o);
	}
	barrier();
	start = vv_clock_s() - start;
	gather(o);
	if (options)
		session_close(f->j, &s);
	f->now = a;
	f->next = b;
	return most(start);
}

static void app(struct job *j)
{
	static const struct method methods[] = {
		{ "none", NULL },
		{ "full", "dedup=no tracker=digest collective=none" },
		{ "dirty", "dedup=no collective=none" },
		{ "local", "collective=none" },
		{ "topk 2^17", "collective=topk threshold=131072" },
		{ "exact", "collective=exact" },
	};
	enum { METHODS = sizeof(methods) / sizeof(methods[0]) };
	double took[METHODS][BENCH_ROUNDS_MAX], none;
	struct field f = field_new(j, bench_size(&j->b, 16ul << 20, 728ul << 20), 0);
	struct outcome o[METHODS];
	int rounds = (j->b.rounds + 1) / 2; /* they are long */

	for (int i = 0; i < rounds; i++)
		for (int k = 0; k < METHODS; k++)
			took[k][i] = field_run(&f, methods[k].options, &o[k]);
	none = bench_median(took[0], rounds);
	line(j, "collective.app", "none", "run", none, "s");
	for (int k = 1; k < METHODS; k++) {
		line(j, "collective.app", methods[k].name, "looked_at_per_rank", o[k].looked / j->ranks / 1e6, "MB");
		line(j, "collective.app", methods[k].name, "stored_per_rank", o[k].stored / j->ranks / 1e6, "MB");
		line(j, "collective.app", methods[k].name, "stored_by_one", o[k].stored_max / 1e6, "MB");
		line(j, "collective.app", methods[k].name, "increase_of_run", bench_median(took[k], rounds) - none, "s");
	}
	field_free(&f);
}

/* ---- Nicolae and Cappello 2013's figure 3: the program goes on while a slow store takes its checkpoints ------------------------------ */

/* A step computes 2 to 3 ns per byte, so that it is not small against page faults, and storing what it and the one before have
 * written takes 1.4 times as long as both: as in bench_async.c, where it is said why. */
enum { WORK = 12, CHECKPOINTS = STEPS / EVERY, AFTER = 9 };

static const double FLUSH = 1.4;

#define AS_IN_THE_PAPER "collective=none tracker=mprotect eager=no granule=4096 dedup=no block=16KiB"

struct times {
	double step[STEPS + 1];   /* from 1 */
	double call[CHECKPOINTS]; /* of varve_checkpoint, after EVERY steps each */
	double stored;            /* from a call until the epoch was, in the mean */
};

/* Looks in every step whether the epoch is stored. options NULL: without checkpoints. */
static void behind_run(struct field *f, const char *options, struct times *t)
{
	double *a = f->now, *b = f->next, last, now, called = 0;
	struct outcome ignore = { 0 };
	struct session s;
	int is_stored = 1;

	*t = (struct times){ 0 };
	field_start(f);
	if (options) {
		field_open(f, options, &s);
		checkpoint(&s, &ignore); /* so that all that are measured are increments */
	}
	barrier();
	last = vv_clock_s();
	for (int i = 1; i <= STEPS; i++) {
		field_step(f, i);
		if (!is_stored) {
			is_stored = bench_check(varve_test(s.v, varve_epoch(s.v)), "varve_test");
			t->stored += is_stored ? (vv_clock_s() - called) / CHECKPOINTS : 0;
		}
		now = vv_clock_s();
		t->step[i] = now - last;
		last = now;
		if (!options || i % EVERY != 0)
			continue;
		called = now;
		bench_check(varve_checkpoint(s.v), "varve_checkpoint");
		is_stored = 0;
		last = vv_clock_s();
		t->call[i / EVERY - 1] = last - called;
	}
	if (!is_stored) {
		bench_check(varve_wait(s.v, varve_epoch(s.v)), "varve_wait");
		t->stored += (vv_clock_s() - called) / CHECKPOINTS;
	}
	barrier();
	if (options)
		session_close(f->j, &s);
	f->now = a;
	f->next = b;
}

/* What a checkpoint adds: the call, and what the steps after it take longer, for each place the median of all checkpoints. */
static double overhead(const struct times *t, int rounds, double step)
{
	double sum = 0, v[CHECKPOINTS * BENCH_ROUNDS_MAX];

	for (int k = 0; k <= AFTER; k++) {
		for (int i = 0; i < rounds * CHECKPOINTS; i++) {
			int c = i % CHECKPOINTS;

			v[i] = k ? t[i / CHECKPOINTS].step[EVERY * (c + 1) + k] - step : t[i / CHECKPOINTS].call[c];
		}
		sum += bench_median(v, rounds * CHECKPOINTS);
	}
	return most(sum);
}

static void behind(struct job *j)
{
	enum { NONE, SYNC, METHODS = 5 };
	static const struct method methods[METHODS] = {
		[NONE] = { "slow store, none", NULL },
		[SYNC] = { "slow store, sync", "mode=sync " AS_IN_THE_PAPER },
		{ "slow store, address", "mode=async order=address " AS_IN_THE_PAPER },
		{ "slow store, paper", "mode=async order=adaptive " AS_IN_THE_PAPER },
		{ "slow store, varve", "mode=async" },
	};
	struct field f = field_new(j, bench_size(&j->b, 4ul << 20, 64ul << 20), WORK);
	struct times t[METHODS][BENCH_ROUNDS_MAX];
	double all[STEPS * BENCH_ROUNDS_MAX], step = 0, stored[BENCH_ROUNDS_MAX], more[METHODS];
	size_t dirty = 2 * rows_bytes(&f);
	int rounds = (j->b.rounds + 1) / 2;
	char options[OPTIONS_LEN];

	for (int i = 0; i < rounds; i++) {
		behind_run(&f, NULL, &t[NONE][i]);
		memcpy(all + i * STEPS, t[NONE][i].step + 1, STEPS * sizeof(*all));
		step = most(bench_median(all, (i + 1) * STEPS)); /* all ranks want the same bandwidth */
		for (int k = SYNC; k < METHODS; k++) {
			snprintf(options, sizeof(options), "%s buffer=%zu bandwidth=%.0f", methods[k].options, dirty / 16,
				 (double)dirty / (FLUSH * 2 * step));
			behind_run(&f, options, &t[k][i]);
		}
	}
	line(j, "collective.app", methods[NONE].name, "step", step, "s");
	for (int k = NONE; k < METHODS; k++) {
		for (int i = 0; i < rounds; i++)
			stored[i] = most(t[k][i].stored);
		more[k] = overhead(t[k], rounds, step);
		line(j, "collective.app", methods[k].name, "overhead", more[k], "s"); /* of none: the noise */
		if (k == NONE)
			continue;
		line(j, "collective.app", methods[k].name, "overhead_vs_sync", more[k] / more[SYNC], "x");
		line(j, "collective.app", methods[k].name, "stored_after", bench_median(stored, rounds), "s");
	}
	field_free(&f);
}

int main(int argc, char **argv)
{
	struct job j;
	int level;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
	job_open(&j, argc, argv);
	app(&j);
	behind(&j);
	bench_close(&j.b);
	MPI_Finalize();
	return 0;
}
