// ctest: MPI 2,3,4,7
// The plug of an MPI program whose main thread alone speaks MPI: all operations, also in many pieces, and all mistakes.
#include "base/err.h"
#include "comm/mpi.h"
#include "support/commsuite.h"
#include "support/must.h"
#include <varve/varve_mpi.h>

static struct vv_comm *open_world(double patience)
{
	struct varve_comm plug;
	struct vv_comm *c = NULL;

	CHECK_EQ(vv_mpi_plug(MPI_COMM_WORLD, 60, &plug), 0);
	CHECK(!plug.any_thread);
	CHECK_EQ(vv_comm_open(&plug, plug.ctx, patience, &c), 0);
	return c;
}

static void refuse(MPI_Comm comm, const char *word)
{
	varve *v = NULL;

	CHECK_EQ(varve_open_mpi(comm, "mem:refused", "a", NULL, &v), VARVE_EINVAL);
	CHECK(!v);
	CHECK(strstr(varve_last_error(), word));
}

static void test_intercomm(int rank, int size)
{
	MPI_Comm half, inter;

	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? 0 : 1, 1, &inter);
	refuse(inter, "intercommunicator");
	MPI_Comm_free(&inter);
	MPI_Comm_free(&half);
	CHECK(size > 1);
}

/* A piece of 7 bytes cuts 64-bit words of a reduction, which must be kept whole. */
static void test_pieces(void)
{
	static const size_t piece[] = { 7, 64, 4096, 100000 };
	size_t usual = vv_mpi_piece;

	for (size_t i = 0; i < sizeof(piece) / sizeof(piece[0]); i++) {
		struct vv_comm *c = open_world(60);

		must_begin("pieces of %zu", piece[i]);
		vv_mpi_piece = piece[i];
		commsuite_run(c, 100 + i, 60, piece[i] < 64 ? 900 : 3 * piece[i]);
		vv_comm_close(c);
	}
	vv_mpi_piece = usual;
}

/* A rank that sends less than announced is found out, and so is one that sends more; the others are told. */
static void test_lengths(uint32_t me, size_t sent, size_t expected)
{
	struct vv_comm *c = open_world(60);
	uint8_t *p = calloc(1, 65536);

	must_begin("%zu bytes instead of %zu", sent, expected);
	CHECK(p);
	if (me == 0) {
		CHECK_EQ(vv_comm_sendrecv(c, NULL, 0, VARVE_NOBODY, p, expected, 1), VV_EPEER);
		CHECK(strstr(vv_err_last(), "sendrecv"));
	} else {
		CHECK_EQ(vv_comm_sendrecv(c, p, sent, me == 1 ? 0 : VARVE_NOBODY, NULL, 0, VARVE_NOBODY), VV_EPEER);
		CHECK(strstr(vv_err_last(), "has given up"));
	}
	vv_comm_close(c);
	MPI_Barrier(MPI_COMM_WORLD);
	free(p);
}

/* The others have their answer, which names it, whoever of them gives up first; and MPI ends as it should. */
static void test_absent(uint32_t me, uint32_t size, uint32_t odd)
{
	struct vv_comm *c = open_world(me ? 30 : 0.3);
	char word[32];
	uint64_t v = 1;

	must_begin("rank %u comes late", odd);
	snprintf(word, sizeof(word), " for rank %u", odd);
	if (odd == 0 && me == 1)
		c->timeout_s = 0.3;
	if (me != odd) {
		CHECK_EQ(vv_comm_allreduce(c, &v, 1, VARVE_SUM), VV_EPEER);
		CHECK(strstr(vv_err_last(), word));
		CHECK(strstr(vv_err_last(), c->timeout_s < 1 ? "`timeout`" : "has given up"));
		CHECK(strstr(vv_err_last(), "allreduce"));
		CHECK_EQ(vv_comm_allreduce(c, &v, 1, VARVE_SUM), VV_EPEER);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (me == odd) { /* MPI_Finalize wants no operation under way: this one ends, or learns that nobody waits for it */
		int rc = vv_comm_allreduce(c, &v, 1, VARVE_SUM);

		CHECK(rc == 0 ? v == size : rc == VV_EPEER && strstr(vv_err_last(), "has given up"));
	}
	vv_comm_close(c);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Two sessions beside each other, and the program's own messages with the same tags. */
static void test_beside(int rank, int size)
{
	struct vv_comm *a = open_world(60), *b = open_world(60);
	int next = (rank + 1) % size, before = (rank + size - 1) % size, got = -1;
	MPI_Request request;

	must_begin("two sessions");
	MPI_Irecv(&got, 1, MPI_INT, before, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
	commsuite_run(a, 1, 20, 10000);
	commsuite_run(b, 2, 20, 10000);
	MPI_Send(&rank, 1, MPI_INT, next, 1, MPI_COMM_WORLD);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	CHECK_EQ(got, before);
	vv_comm_close(b);
	commsuite_run(a, 3, 20, 10000);
	vv_comm_close(a);
}

int main(int argc, char **argv)
{
	int rank, size, level;
	struct vv_comm *c;

	refuse(MPI_COMM_WORLD, "not initialised");
	CHECK_EQ(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level), MPI_SUCCESS);
	if (level == MPI_THREAD_MULTIPLE)
		SKIP("this MPI gives more threads than were asked for");
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	refuse(MPI_COMM_NULL, "MPI_COMM_NULL");
	test_intercomm(rank, size);

	c = open_world(60);
	must_begin("suite, small");
	commsuite_run(c, 1, 300, 5000);
	must_begin("suite, large");
	commsuite_run(c, 2, 25, (size_t)3 << 20);
	vv_comm_close(c);

	test_pieces();
	test_lengths((uint32_t)rank, 100, 200);
#ifndef MPICH_VERSION /* there it ends the program, whatever handler the communicator has */
	test_lengths((uint32_t)rank, 200, 100);
#endif
	test_lengths((uint32_t)rank, 100, 65536);
	test_beside(rank, size);
	test_absent((uint32_t)rank, (uint32_t)size, (uint32_t)size - 1);
	test_absent((uint32_t)rank, (uint32_t)size, 0);
	c = open_world(60);
	MPI_Finalize();
	refuse(MPI_COMM_WORLD, "MPI_Finalize");
	CHECK_EQ(vv_comm_bcast(c, &rank, sizeof(rank), 0), VV_EPEER);
	CHECK(strstr(vv_err_last(), "MPI_Finalize was called before varve_close"));
	vv_comm_close(c);
	return 0;
}
