// ctest: TIMEOUT 120 COST 3 MODES
/* Tiers of several ranks with a common store: what the first rank copies, all ranks restart from. The nearest store is lost, damaged for
 * one rank, or stale; a tier cannot be reached. Ranks with stores of their own: test_tiers_local.c. */
#include "engine/lineage/catalog.h"
#include "support/must.h"
#include "support/place.h"
#include "support/threadcomm.h"
#include <inttypes.h>
#include <stdbool.h>
#include <sys/stat.h>

enum { BYTES = 40 * 4096 };

static char near_by[PLACE_MAX], far[PLACE_MAX], farther[PLACE_MAX], options[4 * PLACE_MAX];

static struct {
	int want;   /* the epoch that a restart finds, or an error */
	int opens;  /* 0, or the error of the opening */
	int epochs; /* to write */
} job;

/* Much is equal on all ranks, so that they refer to each other's content. */
static void fill(uint8_t *p, uint32_t rank, uint64_t epoch)
{
	for (size_t i = 0; i < BYTES; i++) {
		size_t page = i / 4096;

		p[i] = (uint8_t)(i + page * 7 + (page % 3 == 0 ? epoch * 11 : 0) + (page % 5 == 1 ? rank * 13 + epoch : 0));
	}
}

static void live(const struct varve_comm *comm, void *arg)
{
	uint8_t right[BYTES], *p;
	varve *v = NULL;
	int rc;

	(void)arg;
	rc = varve_open_comm(comm, near_by, "job", options, &v);
	MUST(rc == job.opens);
	if (rc)
		return;
	p = varve_alloc(v, "p", BYTES);
	rc = varve_restart(v, VARVE_LATEST);
	MUST(rc == (job.want > 0 ? 1 : job.want));
	if (rc == 1) {
		fill(right, comm->rank, (uint64_t)job.want);
		MUST(varve_epoch(v) == (uint64_t)job.want && memcmp(p, right, BYTES) == 0);
	}
	for (int i = 0; i < job.epochs; i++) {
		fill(p, comm->rank, varve_epoch(v) + 1);
		MUST(varve_checkpoint(v) == 0);
		MUST(varve_wait(v, varve_epoch(v)) >= 0);
	}
	MUST(varve_close(v) == 0);
}

static void run(int want, int epochs)
{
	must_begin("want %d, %d epochs", want, epochs);
	job.want = want;
	job.epochs = epochs;
	threadcomm_run(3, live, NULL);
}

static bool has(const char *store, int epoch)
{
	char path[PLACE_MAX + 64];

	snprintf(path, sizeof(path), "%s/job/00000000/%010d.commit", store, epoch);
	return access(path, F_OK) == 0;
}

static void damage(const char *store, int epoch, int rank)
{
	char path[PLACE_MAX + 64];
	uint8_t *bytes;
	size_t n;

	snprintf(path, sizeof(path), "%s/job/00000000/%010d.r%d.layer", store, epoch, rank);
	bytes = place_read(path, &n);
	for (size_t i = 64; i + 64 < n; i += 64)
		bytes[i] ^= 1;
	place_write(path, bytes, n);
	free(bytes);
}

int main(void)
{
	place_path(near_by, "near");
	place_path(far, "far");
	place_path(farther, "farther");
	snprintf(options, sizeof(options), "log=error,tiers='%s every=2 keep=2 last=no; %s every=3 last=no'", far, farther);
	run(0, 7);
	MUST(has(far, 6) && has(farther, 6) && !has(far, 7));
	MUST(!has(far, 2) || !has(far, 4)); /* epoch 6 may have taken the place of epoch 4 */
	run(7, 1);
	place_remove(near_by);
	run(8, 2); /* from the first tier; goes on with 9 and 10 */
	MUST(has(near_by, 8) && has(far, 10) && has(farther, 9));
	/* one rank's layer is damaged: all read the tier */
	damage(near_by, 10, 1);
	run(10, 2);
	MUST(has(far, 12));
	run(12, 0);
	/* so is that of the first tier: an older epoch, which the second tier has */
	place_remove(near_by);
	damage(far, 12, 0);
	run(12, 1); /* the second tier has it, too */
	place_remove(near_by);
	place_write(near_by, "x", 1);
	job.opens = VARVE_EINVAL; /* the store itself is no folder */
	run(0, 0);
	place_remove(near_by);
	place_remove(farther);
	place_write(farther, "x", 1);
	job.opens = VARVE_EIO; /* lost, and a tier that may have epochs is not there */
	run(0, 0);
	place_remove(farther);
	job.opens = 0;
	run(10, 1);
	place_remove(farther);
	place_write(farther, "x", 1);
	run(VARVE_EIO, 0);
	return 0;
}
