// ctest: MPI 2,4 TIMEOUT 120
/* Messages into protected memory while its epoch is being stored: MPI writes there on whatever thread makes its progress, the one that
 * stores the epoch among them, and with whatever it uses to get at another process's memory. Nobody waits for himself, and what was
 * there at the call is what is stored. */
#include "support/must.h"
#include "support/place.h"
#include "vv_test.h"
#include <stdlib.h>
#include <string.h>
#include <varve/varve_mpi.h>

enum { LEN = 6 << 20, STEPS = 6 };

#define OK(call) MUST((call) >= 0)

/* What a rank has after so many steps: its neighbour's of the step before, and something new. */
static void expect(uint64_t *own, uint64_t *got, int rank, int size, uint64_t step)
{
	for (size_t i = 0; i < LEN / 8; i++) {
		own[i] = (i / 512 + (uint64_t)rank * 7919 + step) * 0x9E3779B97F4A7C15ull + i;
		got[i] = step ? (i / 512 + (uint64_t)((rank + 1) % size) * 7919 + step - 1) * 0x9E3779B97F4A7C15ull + i : 0;
	}
}

static void run(int rank, int size, const char *store, const char *options)
{
	uint64_t *own = calloc(1, LEN), *got = calloc(1, LEN), *want[2] = { calloc(1, LEN), calloc(1, LEN) };
	varve *v = NULL;
	int rc;

	must_begin("%d ranks, %s", size, options);
	rc = varve_open_mpi(MPI_COMM_WORLD, store, "job", options, &v);
	if (rc == VARVE_ENOTSUP)
		return; /* this kernel has no such tracker */
	OK(rc);
	OK(varve_protect(v, "own", own, LEN));
	OK(varve_protect(v, "got", got, LEN));
	for (uint64_t step = 0; step < STEPS; step++) {
		expect(own, want[1], rank, size, step);
		OK(varve_checkpoint(v));
		MPI_Sendrecv(own, LEN, MPI_BYTE, (rank + size - 1) % size, 1, got, LEN, MPI_BYTE, (rank + 1) % size, 1,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	for (uint64_t step = 0; step < STEPS; step++) {
		MUST(varve_restart(v, step + 1) == 1);
		expect(want[0], want[1], rank, size, step);
		MUST(memcmp(own, want[0], LEN) == 0);
		MUST(memcmp(got, want[1], LEN) == 0);
	}
	OK(varve_close(v));
	free(own);
	free(got);
	free(want[0]);
	free(want[1]);
}

/* All ranks store in one place, which one of them makes. */
int main(int argc, char **argv)
{
	static const char *const trackers[] = { "auto", "mprotect", "sigbus", "digest" };
	char store[PLACE_MAX] = "", options[128];
	int rank, size, level;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (size_t k = 0; k < sizeof(trackers) / sizeof(trackers[0]); k++) {
		if (rank == 0)
			place_path(store, trackers[k]);
		MPI_Bcast(store, sizeof(store), MPI_CHAR, 0, MPI_COMM_WORLD);
		snprintf(options, sizeof(options), "tracker=%s buffer=256KiB timeout=40 codec=none", trackers[k]);
		run(rank, size, store, options);
		MPI_Barrier(MPI_COMM_WORLD);
		if (rank == 0)
			place_remove(store);
	}
	MPI_Finalize();
	return 0;
}
