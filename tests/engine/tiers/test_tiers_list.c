/* The shares of a list, asked of a lineage whose nearest store is damaged, or whose tier cannot be reached: the answer is of the epoch that
 * a restart takes. */
#include "support/must.h"
#include "support/place.h"
#include "support/threadcomm.h"
#include <stdio.h>
#include <stdlib.h>

enum { ITEM = 64, ITEMS = 100 };

struct job {
	size_t items;   /* of each rank, in the epoch to be written */
	uint64_t epoch; /* to be asked for */
	int want;       /* the answer; 1: the items of epoch 2 */
};

static char near_by[PLACE_MAX], far[PLACE_MAX], options[2 * PLACE_MAX];

static varve *open_job(const struct varve_comm *comm)
{
	varve *v = NULL;

	MUST(varve_open_comm(comm, near_by, "job", options, &v) == 0);
	return v;
}

static void live(const struct varve_comm *comm, void *arg)
{
	const struct job *j = arg;
	uint8_t *p = calloc(j->items, ITEM);
	varve *v = open_job(comm);

	MUST(varve_protect_list(v, "list", p, VARVE_BYTES, ITEM, j->items) == 0);
	MUST(varve_checkpoint(v) == 0);
	MUST(varve_close(v) == 0);
	free(p);
}

static void question(const struct varve_comm *comm, void *arg)
{
	const struct job *j = arg;
	uint64_t share = 0, total = 0;
	varve *v = open_job(comm);

	MUST(varve_list_share(v, j->epoch, "list", &share, &total) == j->want);
	MUST(j->want != 1 || (share == 2 * ITEMS && total == comm->size * share));
	MUST(varve_close(v) == 0);
}

static void ask(uint32_t ranks, uint64_t epoch, int want)
{
	threadcomm_run(ranks, question, &(struct job){ .epoch = epoch, .want = want });
}

static void damage_tables(void)
{
	char path[PLACE_MAX];
	uint8_t *p;
	size_t n;

	place_path(path, "near/job/00000000/0000000002.r0.layer");
	p = place_read(path, &n);
	p[n - 1] ^= 1;
	place_write(path, p, n);
	free(p);
}

static void trial(uint32_t ranks)
{
	char aside[PLACE_MAX];

	must_begin("%u ranks", ranks);
	place_remove(near_by);
	place_remove(far);
	threadcomm_run(ranks, live, &(struct job){ .items = ITEMS });
	threadcomm_run(ranks, live, &(struct job){ .items = 2 * ITEMS });
	ask(ranks, VARVE_LATEST, 1);
	MUST(rename(far, place_path(aside, "aside")) == 0);
	place_write(far, "x", 1); /* it may have a newer epoch */
	ask(ranks, VARVE_LATEST, VARVE_EIO);
	place_remove(far);
	MUST(rename(aside, far) == 0);
	damage_tables();
	ask(ranks, VARVE_LATEST, 1);
	ask(ranks, 2, 1);
}

int main(void)
{
	place_path(near_by, "near");
	place_path(far, "far");
	snprintf(options, sizeof(options), "log=error,tiers='%s'", far);
	trial(1);
	trial(3);
	return 0;
}
