/* collective.*: many ranks, as in figures 2 to 5 of S0 and in figure 3 of S2. An MPI program: bench/run starts it with 1, 2, 4, 8
 * ranks. Methods are measured in turn, each in a session and a store of its own; a time is that of the slowest rank. */
#include "base/clock.h"
#include "engine/ranks.h"
#include "engine/session.h"
#include "support.h"
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <varve/varve_mpi.h>

enum { NAME_LEN = 64, OPTIONS_LEN = 256, PATH_LEN = 3200 };

/* The time of the collective stage depends on the number of chunks, not on their size: with small ones as many as in the paper,
 * 2^18 per rank, fit any machine. */
enum { STAGE_CHUNKS = 1 << 18, STAGE_CHUNK = 64 };

struct job {
	struct bench b;
	int rank, ranks;
	unsigned threads; /* per rank, so that a core has one */
	char disk[PATH_LEN], memory[PATH_LEN]; /* one directory for all ranks each; memory may be "" */
};

/* ---- all ranks together ------------------------------------------------------------------------------------------------- */

static double most(double x)
{
	MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return x;
}

static double sum(double x)
{
	MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	return x;
}

static void barrier(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Takes "--NAME VALUE" out of the arguments; NULL if it is not there. */
static const char *take_option(int *argc, char **argv, const char *name)
{
	for (int i = 1; i + 1 < *argc; i++)
		if (strcmp(argv[i], name) == 0) {
			const char *value = argv[i + 1];

			memmove(&argv[i], &argv[i + 2], (size_t)(*argc - i - 1) * sizeof(*argv));
			*argc -= 2;
			return value;
		}
	return NULL;
}

static void job_open(struct job *j, int argc, char **argv)
{
	const char *memory = take_option(&argc, argv, "--memory");
	unsigned cores = vv_pool_cores();

	*j = (struct job){ 0 };
	MPI_Comm_rank(MPI_COMM_WORLD, &j->rank);
	MPI_Comm_size(MPI_COMM_WORLD, &j->ranks);
	bench_open(&j->b, argc, argv);
	j->threads = cores / (unsigned)j->ranks ? cores / (unsigned)j->ranks : 1;
	snprintf(j->disk, sizeof(j->disk), "%s", j->b.dir);
	snprintf(j->memory, sizeof(j->memory), "%s", memory ? memory : "");
	MPI_Bcast(j->disk, sizeof(j->disk), MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void name_case(const struct job *j, char out[NAME_LEN], const char *what)
{
	snprintf(out, NAME_LEN, "%d rank%s, %s", j->ranks, j->ranks == 1 ? "" : "s", what);
}

static void line(const struct job *j, const char *bench, const char *what, const char *metric, double value, const char *unit)
{
	char name[NAME_LEN];

	name_case(j, name, what);
	if (j->rank == 0)
		bench_line(bench, name, metric, value, unit);
}

static void at_most(const struct job *j, const char *bench, const char *what, const char *metric, double value, double limit)
{
	char name[NAME_LEN];

	name_case(j, name, what);
	if (j->rank == 0)
		bench_at_most(bench, name, metric, value, "x", limit);
}

static double least(const double *v, int n)
{
	double x = v[0];

	for (int i = 1; i < n; i++)
		x = v[i] < x ? v[i] : x;
	return x;
}

/* ---- one session -------------------------------------------------------------------------------------------------------- */

struct session {
	varve *v;
	char store[PATH_LEN + 16];
};

/* What became of one or more checkpoints: sums over the checkpoints, then over the ranks, or of the rank that has most. */
struct outcome {
	double seconds;         /* of varve_checkpoint */
	double stage;           /* of it, the collective stage */
	double stored, stored_max;
	double looked;          /* at so many bytes: dirty, as far as could be told */
	double sent, sent_max;  /* among the ranks */
	double dup_ranks;
};

static void session_open(const struct job *j, const char *dir, const char *options, size_t chunk, struct session *s)
{
	char all[OPTIONS_LEN];

	snprintf(s->store, sizeof(s->store), "%s/ranks", dir);
	snprintf(all, sizeof(all), "mode=sync codec=none threads=%u chunk=%zu %s", j->threads, chunk, options);
	bench_check(varve_open_mpi(MPI_COMM_WORLD, s->store, "ranks", all, &s->v), all);
}

static void session_close(const struct job *j, struct session *s)
{
	bench_check(varve_close(s->v), "varve_close");
	barrier();
	if (j->rank == 0)
		bench_remove(s->store);
	barrier();
}

static uint64_t sent(const struct session *s)
{
	return s->v->group->comm->sent + s->v->group->side->sent;
}

/* Adds this rank's part. */
static void checkpoint(struct session *s, struct outcome *o)
{
	uint64_t before = sent(s);
	struct varve_stats st;
	double start;

	barrier();
	start = vv_clock_s();
	bench_check(varve_checkpoint(s->v), "varve_checkpoint");
	bench_check(varve_wait(s->v, varve_epoch(s->v)), "varve_wait");
	o->seconds += vv_clock_s() - start;
	o->sent += (double)(sent(s) - before);
	bench_check(varve_stats(s->v, &st), "varve_stats");
	o->stage += st.seconds_ranks;
	o->stored += (double)st.bytes_stored;
	o->looked += (double)st.bytes_dirty;
	o->dup_ranks += (double)st.bytes_dup_ranks;
}

static void gather(struct outcome *o)
{
	o->seconds = most(o->seconds);
	o->stage = most(o->stage);
	o->stored_max = most(o->stored);
	o->stored = sum(o->stored);
	o->sent_max = most(o->sent);
	o->sent = sum(o->sent);
	o->looked = sum(o->looked);
	o->dup_ranks = sum(o->dup_ranks);
}

/* ---- one checkpoint of memory of some kind ------------------------------------------------------------------------------ */

struct memory {
	uint8_t *p, *copy; /* copy: for what is restored */
	size_t n, chunk;
};

/* The first `shared` bytes are the same on all ranks; nothing else is anywhere twice. */
static void memory_open(struct job *j, size_t n, size_t chunk, size_t shared, struct memory *m)
{
	*m = (struct memory){ .p = bench_memory(n), .copy = bench_memory(n), .n = n, .chunk = chunk };
	bench_fill(&j->b, m->p, shared, 1);
	bench_fill(&j->b, m->p + shared, n - shared, 1000 + (uint64_t)j->rank);
}

static void memory_close(struct memory *m)
{
	munmap(m->p, m->n);
	munmap(m->copy, m->n);
}

static struct outcome one(struct job *j, const char *dir, const char *options, const struct memory *m, bool verify)
{
	struct outcome o = { 0 };
	struct session s;

	session_open(j, dir, options, m->chunk, &s);
	bench_check(varve_protect(s.v, "p", m->p, m->n), "varve_protect");
	if (j->rank == 0 && dir == j->disk)
		bench_settle(&j->b, 0);
	checkpoint(&s, &o);
	gather(&o);
	if (verify) {
		bench_check(varve_restart_region(s.v, VARVE_LATEST, "p", m->copy, m->n), "varve_restart_region");
		if (memcmp(m->copy, m->p, m->n) != 0)
			bench_die("rank %d: the epoch holds other bytes than memory (%s)", j->rank, options);
	}
	session_close(j, &s);
	return o;
}

struct method {
	const char *name, *options;
};

/* ---- collective.worst: figure 2 ------------------------------------------------------------------------------------------ */

static const struct method stages[] = {
	{ "topk 2^16", "collective=topk threshold=65536" },
	{ "topk 2^17", "collective=topk threshold=131072" },
	{ "topk 2^18", "collective=topk threshold=262144" },
	{ "exact", "collective=exact" },
};

enum { STAGES = sizeof(stages) / sizeof(stages[0]), TOPK = STAGES - 2, EXACT = STAGES - 1 };

/* No byte of it is stored or left out because of the disk: memory will do. */
static const char *stage_dir(const struct job *j)
{
	return j->memory[0] ? j->memory : j->disk;
}

static void worst(struct job *j)
{
	double took[STAGES][BENCH_ROUNDS_MAX];
	struct outcome o[STAGES];
	struct memory m;

	if (j->ranks == 1) /* there is no such stage */
		return;
	memory_open(j, (size_t)STAGE_CHUNKS * STAGE_CHUNK, STAGE_CHUNK, 0, &m);
	for (int i = 0; i < j->b.rounds; i++)
		for (int k = 0; k < STAGES; k++) {
			o[k] = one(j, stage_dir(j), stages[k].options, &m, i == 0);
			took[k][i] = o[k].stage;
		}
	for (int k = 0; k < STAGES; k++) {
		line(j, "collective.worst", stages[k].name, "stage", least(took[k], j->b.rounds) * 1e3, "ms");
		line(j, "collective.worst", stages[k].name, "sent_per_rank", o[k].sent / j->ranks / 1e6, "MB");
		line(j, "collective.worst", stages[k].name, "sent_by_one", o[k].sent_max / 1e6, "MB");
	}
	memory_close(&m);
}

/* ---- collective.best: figure 3 ------------------------------------------------------------------------------------------- */

static void best(struct job *j)
{
	static const struct method methods[] = {
		{ "local", "collective=none" },
		{ "topk 2^18", "collective=topk threshold=262144" },
		{ "exact", "collective=exact" },
	};
	enum { METHODS = sizeof(methods) / sizeof(methods[0]), LAST = METHODS - 1 };
	double took[METHODS][BENCH_ROUNDS_MAX], even;
	struct outcome o[METHODS];
	struct memory m;
	size_t n = bench_size(&j->b, 32ul << 20, 1ul << 30);

	memory_open(j, n, BENCH_PAGE, n, &m);
	for (int i = 0; i < j->b.rounds; i++)
		for (int k = 0; k < METHODS; k++) {
			o[k] = one(j, j->disk, methods[k].options, &m, i == 0);
			took[k][i] = o[k].seconds;
		}
	for (int k = 0; k < METHODS; k++) {
		line(j, "collective.best", methods[k].name, "time", bench_median(took[k], j->b.rounds) * 1e3, "ms");
		line(j, "collective.best", methods[k].name, "stored_per_rank", o[k].stored / j->ranks / 1e6, "MB");
	}
	for (int k = 1; k < METHODS; k++) {
		double total = o[k].stored * j->ranks / o[0].stored;

		even = o[k].stored_max * j->ranks / o[k].stored;
		if (k < LAST) {
			line(j, "collective.best", methods[k].name, "total_vs_local_by_ranks", total, "x");
			line(j, "collective.best", methods[k].name, "most_vs_average", even, "x");
			continue;
		}
		at_most(j, "collective.best", methods[k].name, "total_vs_local_by_ranks", total, 1.02);
		at_most(j, "collective.best", methods[k].name, "most_vs_average", even, 1.05);
	}
	memory_close(&m);
}

/* ---- collective.app: figures 4, 5 ------------------------------------------------------------------------------------------ */

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
	struct field f = field_new(j, bench_size(&j->b, 24ul << 20, 728ul << 20), 0);
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

/* ---- collective.app, S2's figure 3: the program goes on while a slow store takes its checkpoints ------------------------------ */

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
	struct field f = field_new(j, bench_size(&j->b, 6ul << 20, 64ul << 20), WORK);
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

/* ---- collective.cost: targets ----------------------------------------------------------------------------------------------- */

/* Half of the chunks are on all ranks. */
static void cost_stage(struct job *j)
{
	double took[2][BENCH_ROUNDS_MAX], share, times[2];
	size_t n = (size_t)STAGE_CHUNKS * STAGE_CHUNK;
	struct outcome o[2];
	struct memory m;

	memory_open(j, n, STAGE_CHUNK, n / 2, &m);
	for (int i = 0; i < j->b.rounds; i++)
		for (int k = 0; k < 2; k++) {
			o[k] = one(j, stage_dir(j), stages[TOPK + k].options, &m, i == 0);
			took[k][i] = o[k].stage;
		}
	for (int k = 0; k < 2; k++) {
		times[k] = least(took[k], j->b.rounds);
		line(j, "collective.cost", stages[TOPK + k].name, "stage_half_shared", times[k] * 1e3, "ms");
		line(j, "collective.cost", stages[TOPK + k].name, "sent_per_rank", o[k].sent / j->ranks / 1e6, "MB");
	}
	at_most(j, "collective.cost", "half shared", "stage_vs_topk_2^18", times[1] / times[0], 0.6);
	share = o[1].dup_ranks / ((double)(n / 2) * (j->ranks - 1));
	if (j->rank == 0) {
		char name[NAME_LEN];

		name_case(j, name, "half shared");
		bench_at_least("collective.cost", name, "duplicates_found", share, "x", 0.999);
	}
	memory_close(&m);
}

/* Whole checkpoints, against those where each rank is for itself. The ratio is the median of the rounds': the two of a round are
 * neighbours in time. */
static void cost_whole(struct job *j, const char *dir, const char *where, bool half)
{
	static const struct method methods[] = { { "local", "collective=none" }, { "exact", "collective=exact" } };
	double took[2][BENCH_ROUNDS_MAX], ratio[BENCH_ROUNDS_MAX], stage[BENCH_ROUNDS_MAX];
	char what[NAME_LEN / 2], metric[NAME_LEN];
	size_t n = bench_size(&j->b, 32ul << 20, 256ul << 20);
	struct memory m;

	if (!dir[0])
		return;
	memory_open(j, n, BENCH_PAGE, half ? n / 2 : 0, &m);
	for (int i = -1; i < j->b.rounds; i++) { /* one before, for the caches */
		for (int k = 0; k < 2; k++) {
			int which = (i + 1 + k) % 2; /* none is always first */
			struct outcome o = one(j, dir, methods[which].options, &m, i < 0);

			if (i >= 0)
				took[which][i] = o.seconds;
			if (i >= 0 && which)
				stage[i] = o.stage;
		}
		if (i >= 0)
			ratio[i] = took[1][i] / took[0][i];
	}
	snprintf(what, sizeof(what), "%s in %s", half ? "half shared" : "unique", where);
	for (int k = 0; k < 2; k++) {
		snprintf(metric, sizeof(metric), "time_%s", methods[k].name);
		line(j, "collective.cost", what, metric, bench_median(took[k], j->b.rounds) * 1e3, "ms");
	}
	line(j, "collective.cost", what, "stage_exact", bench_median(stage, j->b.rounds) * 1e3, "ms");
	at_most(j, "collective.cost", what, "time_vs_local", bench_median(ratio, j->b.rounds), half ? 1 : 1.15);
	memory_close(&m);
}

static void cost(struct job *j)
{
	if (j->ranks == 1)
		return;
	cost_stage(j);
	for (int half = 0; half < 2; half++) {
		cost_whole(j, j->disk, "files", half);
		cost_whole(j, j->memory, "memory", half);
	}
}

int main(int argc, char **argv)
{
	struct job j;
	int level;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
	job_open(&j, argc, argv);
	if (bench_wants(&j.b, "collective.worst"))
		worst(&j);
	if (bench_wants(&j.b, "collective.best"))
		best(&j);
	if (bench_wants(&j.b, "collective.app")) {
		app(&j);
		behind(&j);
	}
	if (bench_wants(&j.b, "collective.cost"))
		cost(&j);
	bench_close(&j.b);
	MPI_Finalize();
	return 0;
}
