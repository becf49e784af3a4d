/* codec=auto among ranks: equal kinds of data are coded alike by all, however differently fast each of them wrote before. */
#include "support/gen.h"
#include "support/must.h"
#include "support/place.h"
#include "support/threadcomm.h"
#include "vv_test.h"
#include "vv_config.h"
#include <stdbool.h>
#include <stdlib.h>
#include <varve/varve_comm.h>

enum { RANKS = 4, BYTES = 3 << 20, EPOCHS = 5 };

#define OK(call) MUST((call) >= 0)

struct job {
	const char *name, *slow, *others; /* options of rank 0, and of the rest */
	bool coded[EPOCHS][RANKS];
};

static void write_epochs(const struct varve_comm *comm, void *arg)
{
	struct job *j = arg;
	char store[PLACE_MAX], options[128];
	uint64_t state = comm->rank + 1;
	struct varve_stats st;
	varve *v = NULL;
	uint8_t *p;

	place_path(store, j->name);
	snprintf(options, sizeof(options), "mode=sync codec=auto collective=none %s", comm->rank ? j->others : j->slow);
	OK(varve_open_comm(comm, store, "job", options, &v));
	p = varve_alloc(v, "p", BYTES);
	MUST(p);
	for (int e = 0; e < EPOCHS; e++) {
		gen_text(&state, p, BYTES);
		OK(varve_checkpoint(v));
		OK(varve_wait(v, varve_epoch(v)));
		OK(varve_stats(v, &st));
		j->coded[e][comm->rank] = st.bytes_stored < st.bytes_new / 4 * 3;
	}
	OK(varve_close(v));
}

/* From the epoch on in which they have heard of each other. */
static void check_alike(struct job *j, int from, bool coded)
{
	char store[PLACE_MAX];

	must_begin("%s", j->name);
	threadcomm_run(RANKS, write_epochs, j);
	for (int e = from; e < EPOCHS; e++)
		for (int r = 0; r < RANKS; r++)
			MUST(j->coded[e][r] == coded);
	place_path(store, j->name);
	place_remove(store);
}

int main(void)
{
	struct job slow = {.name = "slow", .slow = "bandwidth=4MiB", .others = "bandwidth=8MiB"};
	struct job uneven = {.name = "uneven", .slow = "bandwidth=2MiB", .others = ""};

	if (!VV_HAVE_ZSTD && !VV_HAVE_LZ4)
		return 77;
	check_alike(&slow, 0, true); /* limits are known before anything was written */
	check_alike(&uneven, 1, true);
	return 0;
}
