/* elastic.restart: a 3-D array that n ranks have stored in blocks is restarted by m ranks in other blocks, against a restart by 8 of 8.
 * Warm: from the page cache. Cold: what the disk has to read for it. Needs 8 ranks; fewer of them are the first ones. */
#include "ranks.h"
#include <mpi.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { MOST = 8, DIMS = 3 };

struct blocks { /* of one rank among n */
	size_t global[DIMS], start[DIMS], count[DIMS];
	double *p;
	size_t n;
};

static void cut(size_t side, int ranks, int rank, struct blocks *b)
{
	int grid[DIMS] = { 0 }, at = rank;

	MPI_Dims_create(ranks, DIMS, grid);
	b->n = 1;
	for (int d = DIMS - 1; d >= 0; d--) {
		size_t parts = (size_t)grid[d], i = (size_t)at % parts;

		at /= grid[d];
		b->global[d] = side;
		b->start[d] = side * i / parts;
		b->count[d] = side * (i + 1) / parts - b->start[d];
		b->n *= b->count[d];
	}
	b->p = bench_memory(b->n * sizeof(double));
}

/* An element's value follows from its place. */
static double value(const struct blocks *b, size_t k)
{
	size_t at = 0, place[DIMS];

	for (int d = DIMS - 1; d >= 0; d--) {
		place[d] = b->start[d] + k % b->count[d];
		k /= b->count[d];
	}
	for (int d = 0; d < DIMS; d++)
		at = at * b->global[d] + place[d];
	return (double)(at * 2654435761u % 1000003) + (double)at;
}

static varve *open_by(const struct job *j, MPI_Comm some, const char *lineage, const struct blocks *b)
{
	char store[PATH_LEN + 16], options[OPTIONS_LEN];
	varve *v = NULL;

	snprintf(store, sizeof(store), "%s/elastic", j->disk);
	snprintf(options, sizeof(options), "mode=sync codec=none threads=%u", j->threads);
	bench_check(varve_open_mpi(some, store, lineage, options, &v), "varve_open_mpi");
	bench_check(varve_protect_slab(v, "T", b->p, VARVE_F64, DIMS, b->global, b->start, b->count, NULL), "varve_protect_slab");
	return v;
}

/* Bytes that the disk has read for this process. */
static double disk_reads(void)
{
	FILE *f = fopen("/proc/self/io", "r");
	unsigned long long bytes = 0;
	char text[128];

	while (f && fgets(text, sizeof(text), f))
		if (sscanf(text, "read_bytes: %llu", &bytes) == 1)
			break;
	if (f)
		fclose(f);
	return (double)bytes;
}

static void drop_layers(const struct job *j, int n)
{
	char path[PATH_LEN + 128];

	for (int r = 0; r < n; r++) {
		snprintf(path, sizeof(path), "%s/elastic/by%d/00000000/0000000001.r%d.layer", j->disk, n, r);
		bench_drop(path);
	}
}

static MPI_Comm first_ranks(const struct job *j, int n)
{
	MPI_Comm out;

	MPI_Comm_split(MPI_COMM_WORLD, j->rank < n ? 0 : MPI_UNDEFINED, j->rank, &out);
	return out;
}

static void store_by(const struct job *j, int n, size_t side)
{
	MPI_Comm some = first_ranks(j, n);
	struct blocks b;
	char lineage[16];
	varve *v;

	snprintf(lineage, sizeof(lineage), "by%d", n);
	if (some != MPI_COMM_NULL) {
		cut(side, n, j->rank, &b);
		for (size_t k = 0; k < b.n; k++)
			b.p[k] = value(&b, k);
		v = open_by(j, some, lineage, &b);
		bench_check(varve_checkpoint(v), "varve_checkpoint");
		bench_check(varve_close(v), "varve_close");
		munmap(b.p, b.n * sizeof(double));
		MPI_Comm_free(&some);
	}
	barrier();
}

/* Seconds of the slowest rank; *reads: bytes from the disk. */
static double restart(const struct job *j, int n, int m, size_t side, bool cold, double *reads)
{
	MPI_Comm some = first_ranks(j, m);
	double start, took = 0, before = 0;
	struct blocks b;
	char lineage[16];
	varve *v;

	snprintf(lineage, sizeof(lineage), "by%d", n);
	*reads = 0;
	if (cold && j->rank == 0)
		drop_layers(j, n);
	barrier();
	if (some != MPI_COMM_NULL) {
		cut(side, m, j->rank, &b);
		memset(b.p, 1, b.n * sizeof(double));
		v = open_by(j, some, lineage, &b);
		MPI_Barrier(some);
		before = disk_reads();
		start = vv_clock_s();
		bench_check(varve_restart(v, VARVE_LATEST), "varve_restart");
		took = vv_clock_s() - start;
		*reads = disk_reads() - before;
		for (size_t k = 0; k < b.n; k += 97)
			if (b.p[k] != value(&b, k))
				bench_die("elastic.restart: %d -> %d: another value on rank %d", n, m, j->rank);
		bench_check(varve_close(v), "varve_close");
		munmap(b.p, b.n * sizeof(double));
		MPI_Comm_free(&some);
	}
	*reads = sum(*reads);
	return most(took);
}

static void at_most(const struct job *j, const char *what, const char *metric, double x, const char *unit, double limit)
{
	if (j->rank == 0)
		bench_at_most("elastic.restart", what, metric, x, unit, limit);
}

static void elastic(const struct job *j)
{
	static const int pair[][2] = { { 8, 8 }, { 8, 6 }, { 8, 3 }, { 3, 8 } };
	enum { PAIRS = sizeof(pair) / sizeof(pair[0]) };
	size_t bytes = bench_size(&j->b, 256ul << 20, 1ul << 30), side = 8;
	double took[PAIRS][BENCH_ROUNDS_MAX], reads;
	char what[NAME_LEN];

	while ((side + 8) * (side + 8) * (side + 8) * sizeof(double) <= bytes)
		side += 8;
	store_by(j, 8, side);
	store_by(j, 3, side);
	if (j->rank == 0)
		bench_load(j->disk);
	for (int i = -1; i < j->b.rounds; i++) /* one before, for the caches */
		for (int k = 0; k < PAIRS; k++) {
			double t = restart(j, pair[k][0], pair[k][1], side, false, &reads);

			if (i >= 0)
				took[k][i] = t;
		}
	for (int k = 0; k < PAIRS; k++) {
		double base[BENCH_ROUNDS_MAX];

		snprintf(what, sizeof(what), "%d -> %d ranks", pair[k][0], pair[k][1]);
		for (int i = 0; i < j->b.rounds; i++)
			base[i] = took[k][i] / took[0][i];
		if (k)
			at_most(j, what, "time_vs_8_to_8", bench_median(base, j->b.rounds), "x", 1.3);
		restart(j, pair[k][0], pair[k][1], side, true, &reads);
		at_most(j, what, "bytes_read_vs_needed", reads / (double)(side * side * side * sizeof(double)), "x", 1.1);
	}
	for (int k = 0; k < PAIRS; k++) {
		snprintf(what, sizeof(what), "%d -> %d ranks", pair[k][0], pair[k][1]);
		if (j->rank == 0)
			bench_line("elastic.restart", what, "time", bench_median(took[k], j->b.rounds) * 1e3, "ms");
	}
}

int main(int argc, char **argv)
{
	struct job j;
	int level;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	job_open(&j, argc, argv);
	if (bench_wants(&j.b, "elastic.restart") && j.ranks == MOST)
		elastic(&j);
	bench_close(&j.b);
	MPI_Finalize();
	return 0;
}
