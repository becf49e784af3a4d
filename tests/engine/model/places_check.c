/* For scripts: places_check DIR RANKS EPOCHS OPTIONS lays down a lineage `job` by so many ranks, each with a store DIR/pR of its own. */
#include "support/threadcomm.h"
#include "vv_test.h"
#include <stdlib.h>
#include <string.h>
#include <varve/varve_comm.h>

enum { LEN = 100 << 10, SHARED = 60 << 10 };

struct job {
	const char *dir, *options;
	int epochs;
};

static void fill(uint8_t *p, size_t n, uint64_t s)
{
	for (size_t i = 0; i + 8 <= n; i += 8) {
		s = s * 6364136223846793005ull + 1442695040888963407ull;
		memcpy(p + i, &s, 8);
	}
}

/* The first part is the same on all ranks, the rest is each one's own. */
static void write_epochs(const struct varve_comm *comm, void *arg)
{
	const struct job *j = arg;
	char store[600];
	varve *v = NULL;
	uint8_t *p;

	snprintf(store, sizeof(store), "%s/p%u", j->dir, comm->rank);
	CHECK_EQ(varve_open_comm(comm, store, "job", j->options, &v), 0);
	p = varve_alloc(v, "p", LEN);
	CHECK(p);
	for (int e = 1; e <= j->epochs; e++) {
		fill(p, SHARED, (uint64_t)e * 7919);
		fill(p + SHARED, LEN - SHARED, (uint64_t)e * 1000 + comm->rank);
		CHECK_EQ(varve_checkpoint(v), 0);
	}
	CHECK_EQ(varve_close(v), 0);
}

int main(int argc, char **argv)
{
	struct job j;

	CHECK_EQ(argc, 5);
	j = (struct job){ argv[1], argv[4], atoi(argv[3]) };
	threadcomm_run((uint32_t)atoi(argv[2]), write_epochs, &j);
	return 0;
}
