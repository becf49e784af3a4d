// ctest: MPI 2,3,4,7
// The plug of an MPI program with MPI_THREAD_MULTIPLE: one thread of each rank goes through all operations while another speaks MPI.
#include "comm/mpi.h"
#include "support/commsuite.h"
#include "support/must.h"
#include <pthread.h>
#include <stdatomic.h>

static atomic_int done;

static void *behind(void *arg)
{
	struct vv_comm *c = arg;

	commsuite_run(c, 1, 300, 20000);
	commsuite_run(c, 2, 15, (size_t)2 << 20);
	done = 1;
	return NULL;
}

int main(int argc, char **argv)
{
	int size, level, all = 0;
	struct varve_comm plug;
	struct vv_comm *c;
	pthread_t thread;

	CHECK_EQ(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level), MPI_SUCCESS);
	if (level != MPI_THREAD_MULTIPLE) {
		MPI_Finalize();
		SKIP("this MPI has no MPI_THREAD_MULTIPLE");
	}
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	must_begin("suite beside the program's own MPI");
	CHECK_EQ(vv_mpi_plug(MPI_COMM_WORLD, 60, &plug), 0);
	CHECK(plug.any_thread);
	CHECK_EQ(plug.size, size);
	CHECK_EQ(vv_comm_open(&plug, plug.ctx, 60, &c), 0);
	CHECK_EQ(pthread_create(&thread, NULL, behind, c), 0);
	while (all < size) {
		int mine = done;

		MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		must_nap(1);
	}
	CHECK_EQ(pthread_join(thread, NULL), 0);
	vv_comm_close(c);
	MPI_Finalize();
	return 0;
}
