// ctest: TIMEOUT 300 PROCESSORS 2
/* Jobs of MPI ranks of which one is killed at every stage of a checkpoint. Without arguments this is the driver: it starts itself under
 * mpirun, once to be killed and once to go on from what is left, for several numbers of ranks. The last epoch that counts restores,
 * bit for bit, and the job ends as if nothing had happened. */
#include "base/stage.h"
#include "support/must.h"
#include "support/place.h"
#include "vv_test.h"
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <varve/varve_mpi.h>

enum { PAGE = 4096, PAGES = 64, STEPS = 6, KILL_AT = 4 };

#define OK(call) MUST((call) >= 0)

static const char *const stages[] = { "agreed", "captured", "surveyed", "claimed", "judged",   "promised", "asked",
				      "placed", "stored",   "reported", "ruled",   "concluded" };

enum { STAGES = sizeof(stages) / sizeof(stages[0]) };

/* ---- the program ------------------------------------------------------------------------------------------------------------ */

static const char *kill_stage;
static uint64_t step; /* protected, too */

static void die(const char *name)
{
	if (step == KILL_AT && strcmp(name, kill_stage) == 0)
		kill(getpid(), SIGKILL);
}

/* Half of the pages are the same on all ranks, half are the rank's own; a third of them changes with every step. */
static void compute(uint64_t *p, int rank)
{
	for (size_t i = 0; i < PAGES; i++) {
		uint64_t seed = i % 2 ? 0 : (uint64_t)rank + 1;

		if (step == 0 || i % 3 == step % 3)
			for (size_t k = 0; k < PAGE / 8; k++)
				p[i * PAGE / 8 + k] = (p[i * PAGE / 8 + k] + i + k + seed * 1000003 + step) * 6364136223846793005ull;
	}
}

static int program(int argc, char **argv)
{
	uint64_t *p = calloc(PAGES, PAGE), sum = 0, all = 0;
	int rank, size, provided, rc;
	const char *threads = argv[2];
	varve *v = NULL;

	MPI_Init_thread(&argc, &argv, threads[0] == 'm' ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	must_begin("rank %d of %d, %s", rank, size, argv[4]);
	OK(varve_open_mpi(MPI_COMM_WORLD, argv[1], "job", argv[3], &v));
	OK(varve_protect(v, "step", &step, sizeof(step)));
	OK(varve_protect(v, "p", p, (size_t)PAGES * PAGE));
	rc = varve_restart(v, VARVE_LATEST);
	OK(rc);
	if (rank == 0)
		printf("from %llu\n", (unsigned long long)step);
	if (atoi(argv[5]) == rank) {
		kill_stage = argv[4];
		vv_stage_hook = die;
	}
	while (step < STEPS) {
		compute(p, rank);
		step++;
		OK(varve_checkpoint(v));
	}
	OK(varve_close(v));
	for (size_t i = 0; i < (size_t)PAGES * PAGE / 8; i++)
		sum = sum * 31 + p[i];
	MPI_Reduce(&sum, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("sum %llx\n", (unsigned long long)all);
	MPI_Finalize();
	free(p);
	return 0;
}

/* ---- the driver ------------------------------------------------------------------------------------------------------------- */

struct outcome {
	int status;
	int from; /* step */
	char sum[32];
};

static struct outcome job(const char *self, int ranks, const char *store, const char *threads, const char *options,
			  const char *stage, int victim)
{
	const char *mpirun = getenv("VARVE_MPIEXEC");
	struct outcome o = { .from = -1 };
	char command[2048], line[256];
	FILE *f;

	snprintf(command, sizeof(command), "'%s' -n %d '%s' '%s' %s '%s' %s %d 2>/dev/null", mpirun ? mpirun : "mpirun", ranks, self,
		 store, threads, options, stage, victim);
	f = popen(command, "r");
	MUST(f);
	while (fgets(line, sizeof(line), f)) {
		sscanf(line, "from %d", &o.from);
		sscanf(line, "sum %31s", o.sum);
	}
	o.status = pclose(f);
	return o;
}

static void sweep(const char *self, int ranks, const char *threads, const char *options)
{
	char store[PLACE_MAX];
	struct outcome whole;

	must_begin("%d ranks, %s, %s, not killed", ranks, threads, options);
	place_path(store, "s");
	whole = job(self, ranks, store, threads, options, "none", -1);
	MUST(whole.status == 0 && whole.from == 0 && whole.sum[0]);
	for (int k = 0; k < STAGES; k++) {
		struct outcome killed, next;

		must_begin("%d ranks, %s, %s, rank %d killed when %s", ranks, threads, options, k % ranks, stages[k]);
		place_remove(store);
		killed = job(self, ranks, store, threads, options, stages[k], k % ranks);
		MUST(killed.status != 0 && !killed.sum[0]);
		next = job(self, ranks, store, threads, options, "none", -1);
		MUST(next.status == 0);
		/* The step before the kill is stored, if its checkpoint has come to an end; at the latest stages this one is. */
		MUST(next.from == KILL_AT || next.from == KILL_AT - 1);
		MUST(k < 10 ? next.from == KILL_AT - 1 : next.from >= KILL_AT - 1);
		MUST(strcmp(next.sum, whole.sum) == 0);
	}
	place_remove(store);
}

int main(int argc, char **argv)
{
	if (argc == 6)
		return program(argc, argv);
	if (system("mpirun --version >/dev/null 2>&1") != 0 && !getenv("VARVE_MPIEXEC"))
		SKIP("mpirun is not on the path");
	sweep(argv[0], 2, "funneled", "mode=async");
	sweep(argv[0], 3, "multiple", "mode=async");
	sweep(argv[0], 4, "funneled", "mode=sync");
	sweep(argv[0], 7, "multiple", "mode=async collective=none");
	return 0;
}
