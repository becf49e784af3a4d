/* collective.*: many ranks, as in figures 2 and 3 of Nicolae 2013. An MPI program: bench/run starts it with 2 and 8
 * ranks. Methods are measured in turn, each in a session and a store of its own; a time is that of the slowest rank. */
#include "ranks.h"
#include <mpi.h>
#include <stdlib.h>
#include <sys/mman.h>

/* The time of the collective stage depends on the number of chunks, not on their size: with small ones as many as in the paper,
 * 2^18 per rank, fit any machine. */
enum { STAGE_CHUNKS = 1 << 18, STAGE_CHUNK = 64 };

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
	if (bench_wants(&j.b, "collective.cost"))
		cost(&j);
	bench_close(&j.b);
	MPI_Finalize();
	return 0;
}
