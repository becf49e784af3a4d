// ctest: MPI 2,3
/* varve_open_mpi when a rank never calls it: the others are told within their time limit; and one that is only late is waited for. */
#include "support/must.h"
#include "support/place.h"
#include <varve/varve_mpi.h>

static int rank, size;
static char store[PLACE_MAX];

static void test_late(void)
{
	varve *v = NULL;

	must_begin("a late rank");
	if (rank == 0)
		must_nap(700);
	MUST(varve_open_mpi(MPI_COMM_WORLD, store, "job", "timeout=20", &v) == 0);
	MUST(varve_close(v) == 0);
}

/* Options that cannot be read are no reason to be missed: all ranks come, and all are told. */
static void test_bad_options(void)
{
	varve *v = NULL;

	must_begin("bad options");
	MUST(varve_open_mpi(MPI_COMM_WORLD, store, "job", rank ? "timeout=20" : "timeout=banana", &v) == VARVE_EINVAL);
	MUST(strstr(varve_last_error(), "banana"));
	MUST(varve_open_mpi(MPI_COMM_WORLD, store, "job", "timeout=0", &v) == VARVE_EINVAL);
	MUST(!v);
}

/* It does other things meanwhile, with MPI; that and the end of MPI work for all. */
static void test_never(void)
{
	double begin = MPI_Wtime();
	varve *v = NULL;

	must_begin("a rank that never comes");
	if (rank + 1 < size) {
		MUST(varve_open_mpi(MPI_COMM_WORLD, store, "job", "timeout=1", &v) == VARVE_EPEER);
		MUST(MPI_Wtime() - begin >= 1);
		MUST(MPI_Wtime() - begin < 45);
		MUST(!v);
		MUST(strstr(varve_last_error(), "varve_open_mpi"));
		MUST(strstr(varve_last_error(), "waited 1 s"));
		MUST(strstr(varve_last_error(), "`timeout`"));
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	int level;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (rank == 0)
		place_path(store, "s");
	MPI_Bcast(store, sizeof(store), MPI_CHAR, 0, MPI_COMM_WORLD);
	test_late();
	test_bad_options();
	test_never();
	if (rank == 0)
		place_remove(store);
	MPI_Finalize();
	return 0;
}
