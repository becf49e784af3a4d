// ctest: TIMEOUT 120 MODES
/* keep, keep-every, and the gc that a session runs by itself: the store stays small, what is kept stays whole. */
#include "base/pool.h"
#include "engine/lineage/catalog.h"
#include "engine/upkeep/gc.h"
#include "engine/upkeep/verify.h"
#include "vv_test.h"
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <varve/varve.h>

enum { PAGE = 4096, PAGES = 256, EPOCHS = 60, KEEP = 3, EVERY = 10 };

static uint8_t now[PAGES * PAGE], saved[EPOCHS + 1][PAGES * PAGE];
static uint64_t seed = 1234567;

static uint64_t rng(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

static void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		exit(1);
	}
}

static bool kept(uint64_t e)
{
	return e > EPOCHS - KEEP || e % EVERY == 0;
}

static void tell(void *arg, const char *problem)
{
	(void)arg;
	fprintf(stderr, "verify: %s\n", problem);
}

static void check_store(const char *url, uint64_t *bytes)
{
	struct vv_store_options opt = { 0 };
	struct vv_verify_report report;
	struct vv_gc_report plan;
	struct vv_listing l;
	struct vv_lineage lin;
	struct vv_store *s = NULL;
	struct vv_pool *pool = NULL;
	size_t n = 0;

	ok(vv_store_open(url, &opt, &s));
	ok(vv_pool_new(0, &pool));
	ok(vv_catalog_open(s, "r", false, &lin));
	ok(vv_catalog_list(&lin, 0, &l));
	for (uint64_t e = 1; e <= EPOCHS; e++)
		n += kept(e);
	CHECK_EQ(l.n_epochs, n);
	for (size_t i = 0; i < l.n_epochs; i++)
		CHECK(kept(l.epoch[i]));
	ok(vv_verify_run(&lin, pool, 0, false, tell, NULL, NULL, &report));
	CHECK_EQ(report.problems, 0);
	ok(vv_gc_run(&lin, 0, VV_GC_DRY_RUN, NULL, &plan));
	*bytes = plan.bytes_before;
	ok(vv_gc_run(&lin, 0, VV_GC_THOROUGH, NULL, &plan));
	CHECK((double)plan.bytes_after <= 1.3 * (double)plan.bytes_needed);
	vv_catalog_listing_fini(&l);
	vv_pool_free(pool);
	vv_store_close(s);
}

static void check_epochs(const char *url)
{
	static uint8_t got[PAGES * PAGE];
	varve *v = NULL;

	ok(varve_open(url, "r", NULL, &v));
	for (uint64_t e = 1; e <= EPOCHS; e++) {
		int rc = varve_restart_region(v, e, "p", got, sizeof(got));

		CHECK_EQ(rc, kept(e) ? 0 : VARVE_ENOENT);
		CHECK(rc || memcmp(got, saved[e], sizeof(got)) == 0);
	}
	ok(varve_close(v));
}

static void run(const char *url, const char *options)
{
	varve *v = NULL, *hold = NULL;
	uint64_t bytes = 0;

	ok(varve_open(url, "hold", NULL, &hold)); /* keeps a memory store alive */
	ok(varve_open(url, "r", options, &v));
	ok(varve_protect(v, "p", now, sizeof(now)));
	for (int e = 1; e <= EPOCHS; e++) {
		for (int k = 0; k < PAGES / 8; k++)
			memset(now + rng() % PAGES * PAGE, (int)rng(), 1 + rng() % PAGE);
		ok(varve_checkpoint(v)); /* the next pages are written, and old epochs dropped, while it is stored */
		CHECK_EQ(varve_epoch(v), e);
		memcpy(saved[e], now, sizeof(now));
		if (e == EPOCHS / 2) { /* the rest by another session */
			ok(varve_close(v));
			ok(varve_open(url, "r", options, &v));
			ok(varve_protect(v, "p", now, sizeof(now)));
		}
	}
	ok(varve_close(v));
	check_store(url, &bytes);
	CHECK(bytes < 12 * sizeof(now)); /* nine epochs are live; sixty were written */
	check_epochs(url);
	ok(varve_close(hold));
}

int main(void)
{
	run("mem:plain", "keep=3 keep-every=10");
	memset(now, 0, sizeof(now));
	run("mem:coded", "keep=3 keep-every=10 codec=none chunk=512 block=16KiB threads=2");
	return 0;
}
