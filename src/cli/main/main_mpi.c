/* varve-mpi: the same command, started by mpirun. It has all verbs; some of them share the work. */
#include "cli/main/main.h"
#include "comm/mpi.h"
#include <stdio.h>
#include <time.h>

static int plug(double patience, struct varve_comm *out)
{
	return vv_mpi_plug(MPI_COMM_WORLD, patience, out);
}

static int lowest(int number)
{
	int least = number;

	MPI_Allreduce(&number, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	return least;
}

static void sum(uint64_t *v, size_t n)
{
	MPI_Allreduce(MPI_IN_PLACE, v, (int)n, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
}

static void share(void *p, size_t n, uint32_t from)
{
	for (size_t at = 0, piece; at < n; at += piece) {
		piece = n - at < (1u << 30) ? n - at : 1u << 30;
		MPI_Bcast((char *)p + at, (int)piece, MPI_BYTE, (int)from, MPI_COMM_WORLD);
	}
}

/* MPI waits by polling, which is too expensive for hours. */
static void rest(void)
{
	static const struct timespec pause = { .tv_nsec = 20000000 };
	MPI_Request all;
	int there = 0;

	if (MPI_Ibarrier(MPI_COMM_WORLD, &all) != MPI_SUCCESS)
		return;
	while (MPI_Test(&all, &there, MPI_STATUS_IGNORE) == MPI_SUCCESS && !there)
		nanosleep(&pause, NULL);
}

int main(int argc, char **argv)
{
	struct vv_command_ranks world = { .plug = plug, .lowest = lowest, .sum = sum, .share = share, .rest = rest };
	int level, rank, size, status;

	if (MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level) != MPI_SUCCESS) {
		fprintf(stderr, "varve: MPI could not be started\n");
		return 2;
	}
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	world.rank = (uint32_t)rank;
	world.size = (uint32_t)size;
	status = vv_main_run(argc, argv, &world);
	MPI_Finalize();
	return status;
}
