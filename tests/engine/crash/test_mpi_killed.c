// ctest: TIMEOUT 300 PROCESSORS 2 COST 20
/* A job of MPI ranks that is killed again and again: each time one rank dies, at another stage of a checkpoint, and the job is started
 * anew from what is left. Without arguments this is the driver, which starts itself under mpirun, with several numbers of ranks. What
 * a job finds is what it had computed, bit for bit, and no epoch that counted is lost. */
#include "base/test_point.h"
#include "support/must.h"
#include "support/place.h"
#include "vv_test.h"
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <varve/varve_mpi.h>

enum { PAGE = 4096, PAGES = 64 };

#define OK(call) MUST((call) >= 0)

static const char *const stages[] = { "agreed", "captured", "surveyed", "claimed", "judged", "promised",  "asked",
				      "placed", "stored",   "reported", "sealed",  "ruled",  "concluded" };

enum { STAGES = sizeof(stages) / sizeof(stages[0]) };

/* ---- the program ------------------------------------------------------------------------------------------------------------ */

static const char *kill_stage;
static uint64_t step, kill_at; /* the step is protected, too */

static void die(const char *name)
{
	if (step >= kill_at && strcmp(name, kill_stage) == 0)
		kill(getpid(), SIGKILL);
}

/* Half of the pages are the same on all ranks, half are the rank's own; a third of them changes with every step. */
static void compute(uint64_t *p, int rank, uint64_t at)
{
	for (size_t i = 0; i < PAGES; i++) {
		uint64_t seed = i % 2 ? 0 : (uint64_t)rank + 1;

		if (at == 0 || i % 3 == at % 3)
			for (size_t k = 0; k < PAGE / 8; k++)
				p[i * PAGE / 8 + k] = (p[i * PAGE / 8 + k] + i + k + seed * 1000003 + at) * 6364136223846793005ull;
	}
}

static int program(int argc, char **argv)
{
	uint64_t *p = calloc(PAGES, PAGE), *want = calloc(PAGES, PAGE);
	int rank, size, provided, rc;
	const char *threads = argv[2];
	char store[PLACE_MAX + 16];
	varve *v = NULL;

	MPI_Init_thread(&argc, &argv, threads[0] == 'm' ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	must_begin("rank %d of %d, %s", rank, size, argv[4]);
	snprintf(store, sizeof(store), strchr(argv[2], '+') ? "%s/r%d" : "%s", argv[1], rank); /* its own, or that of all */
	OK(varve_open_mpi(MPI_COMM_WORLD, store, "job", argv[3], &v));
	OK(varve_protect(v, "step", &step, sizeof(step)));
	OK(varve_protect(v, "p", p, (size_t)PAGES * PAGE));
	rc = varve_restart(v, VARVE_LATEST);
	OK(rc);
	for (uint64_t i = 0; i < step; i++)
		compute(want, rank, i);
	MUST(memcmp(p, want, (size_t)PAGES * PAGE) == 0);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("from %llu\n", (unsigned long long)step);
	fflush(stdout);
	if (atoi(argv[5]) == rank) {
		kill_stage = argv[4];
		kill_at = step + 2;
		vv_test_point_hook = die;
	}
	for (int more = 0; more < 4; more++) {
		compute(p, rank, step);
		step++;
		OK(varve_checkpoint(v));
	}
	OK(varve_close(v));
	if (rank == 0)
		printf("end\n");
	MPI_Finalize();
	free(p);
	free(want);
	return 0;
}

/* ---- the driver ------------------------------------------------------------------------------------------------------------- */

/* From which step it went on; -1 if it did not get so far. */
static int job(const char *self, int ranks, const char *store, const char *threads, const char *options, const char *stage,
	       int victim, bool *ended)
{
	char command[2048], line[256];
	int from = -1;
	FILE *f;

	snprintf(command, sizeof(command), "'%s' -n %d '%s' '%s' %s '%s' %s %d 2>/dev/null", getenv("VARVE_MPIEXEC"), ranks, self, store,
		 threads, options, stage, victim);
	f = popen(command, "r");
	MUST(f);
	*ended = false;
	while (fgets(line, sizeof(line), f)) {
		sscanf(line, "from %d", &from);
		*ended |= strcmp(line, "end\n") == 0;
	}
	MUST((pclose(f) == 0) == *ended);
	return from;
}

static void sweep(const char *self, int ranks, const char *threads, const char *options, int sure)
{
	char store[PLACE_MAX];
	int last = 0, from;
	bool ended;

	place_path(store, "s");
	for (int k = 0; k < STAGES; k++) {
		must_begin("%d ranks, %s, %s, rank %d killed when %s", ranks, threads, options, k % ranks, stages[k]);
		if (strcmp(stages[k], "sealed") == 0 && !strstr(options, "aggregate"))
			continue;
		from = job(self, ranks, store, threads, options, stages[k], k % ranks, &ended);
		MUST(!ended && from >= last);
		last = from + sure; /* at least that many of the steps before the kill were stored by then */
	}
	must_begin("%d ranks, %s, %s, the end", ranks, threads, options);
	from = job(self, ranks, store, threads, options, "none", -1, &ended);
	MUST(ended && from >= last);
	place_remove(store);
}

int main(int argc, char **argv)
{
	if (argc == 6)
		return program(argc, argv);
	if (!getenv("VARVE_MPIEXEC"))
		SKIP("VARVE_MPIEXEC does not say how MPI programs are started");
	MUST(setenv("OMPI_MCA_odls_base_sigkill_timeout", "0", 1) == 0); /* mpirun need not give the others a second */
	sweep(argv[0], 2, "funneled", "mode=async", 0);
	sweep(argv[0], 3, "multiple+own", "mode=async", 0);
	sweep(argv[0], 4, "funneled", "mode=sync aggregate=3", 1);
	sweep(argv[0], 7, "multiple", "mode=async", 0);
	return 0;
}
