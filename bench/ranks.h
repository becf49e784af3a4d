/* What benchmarks of many ranks share: the ranks together, and a session of theirs. Each such program includes it once. */
#ifndef BENCH_RANKS_H
#define BENCH_RANKS_H

#include "base/clock.h"
#include "engine/ranks/group.h"
#include "engine/context.h"
#include "support.h"
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <varve/varve_mpi.h>

enum { NAME_LEN = 64, OPTIONS_LEN = 256, PATH_LEN = 3200 };

struct job {
	struct bench b;
	int rank, ranks;
	unsigned threads; /* per rank, so that a core has one */
	char disk[PATH_LEN], memory[PATH_LEN]; /* one directory for all ranks each; memory may be "" */
};

/* ---- all ranks together ------------------------------------------------------------------------------------------------- */

static inline double most(double x)
{
	MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return x;
}

static inline double sum(double x)
{
	MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	return x;
}

static inline void barrier(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Takes "--NAME VALUE" out of the arguments; NULL if it is not there. */
static inline const char *take_option(int *argc, char **argv, const char *name)
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

static inline void job_open(struct job *j, int argc, char **argv)
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

static inline void name_case(const struct job *j, char out[NAME_LEN], const char *what)
{
	snprintf(out, NAME_LEN, "%d rank%s, %s", j->ranks, j->ranks == 1 ? "" : "s", what);
}

static inline void line(const struct job *j, const char *bench, const char *what, const char *metric, double value, const char *unit)
{
	char name[NAME_LEN];

	name_case(j, name, what);
	if (j->rank == 0)
		bench_line(bench, name, metric, value, unit);
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

static inline void session_open(const struct job *j, const char *dir, const char *options, size_t chunk, struct session *s)
{
	char all[OPTIONS_LEN];

	snprintf(s->store, sizeof(s->store), "%s/ranks", dir);
	snprintf(all, sizeof(all), "mode=sync codec=none threads=%u chunk=%zu %s", j->threads, chunk, options);
	bench_check(varve_open_mpi(MPI_COMM_WORLD, s->store, "ranks", all, &s->v), all);
}

static inline void session_close(const struct job *j, struct session *s)
{
	bench_check(varve_close(s->v), "varve_close");
	barrier();
	if (j->rank == 0)
		bench_remove(s->store);
	barrier();
}

static inline uint64_t sent(const struct session *s)
{
	return s->v->ctx.group->comm->sent + s->v->ctx.group->side->sent;
}

/* Adds this rank's part. */
static inline void checkpoint(struct session *s, struct outcome *o)
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

static inline void gather(struct outcome *o)
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

struct method {
	const char *name, *options;
};

#endif
