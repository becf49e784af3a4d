// ctest: TIMEOUT 120 PROCESSORS 2
/* verify while a writer drops epochs and takes layers away: a store that is whole has no problem, damage is found. */
#include "base/err.h"
#include "base/pool.h"
#include "engine/lineage/catalog.h"
#include "engine/upkeep/verify.h"
#include "support/place.h"
#include "vv_test.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <varve/varve.h>

enum { PAGE = 4096, PAGES = 64, RUNS = 100 };

static char url[PLACE_MAX];
static uint8_t now[PAGES * PAGE];
static const char *options;
static atomic_bool stop;
static atomic_uint written;

static void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		exit(1);
	}
}

/* At least 100 epochs: enough for an index cache too. */
static void *write_epochs(void *arg)
{
	uint64_t seed = 88172645463325252ull;
	varve *v = NULL;

	(void)arg;
	ok(varve_open(url, "live", options, &v));
	ok(varve_protect(v, "p", now, sizeof(now)));
	while (!stop || written < 100) {
		for (int k = 0; k < PAGES / 8; k++) {
			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			memset(now + seed % PAGES * PAGE, (int)(seed >> 20), 1 + (seed >> 30) % PAGE);
		}
		ok(varve_checkpoint(v));
		written++;
	}
	ok(varve_close(v));
	return NULL;
}

static void print(void *arg, const char *problem)
{
	(void)arg;
	fprintf(stderr, "verify: %s\n", problem);
}

static void find(void *arg, const char *problem)
{
	*(bool *)arg |= strstr(problem, "0000000050.r0.layer") && strstr(problem, "block");
}

static pthread_t start(const char *with)
{
	pthread_t t;

	options = with;
	stop = false;
	written = 0;
	CHECK_EQ(pthread_create(&t, NULL, write_epochs, NULL), 0);
	while (written < 3)
		sched_yield();
	return t;
}

static void finish(pthread_t t)
{
	stop = true;
	CHECK_EQ(pthread_join(t, NULL), 0);
}

static void whole(const struct vv_lineage *lin, struct vv_pool *pool)
{
	pthread_t t = start("keep=2");
	struct vv_verify_report report;
	unsigned first = written;
	uint64_t epoch = 0;
	int rc;

	for (int i = 0; i < RUNS || written < first + 100; i++) {
		ok(vv_verify_run(lin, pool, 0, false, print, NULL, NULL, &report));
		CHECK_EQ(report.problems, 0);
		ok(vv_catalog_newest(lin, UINT64_MAX, &epoch));
		rc = vv_verify_run(lin, pool, epoch, false, print, NULL, NULL, &report);
		CHECK(rc == 0 || rc == VV_ENOENT);
		CHECK(rc || report.problems == 0);
	}
	finish(t);
}

/* Epoch 50 stays, and is damaged. */
static void damaged(const struct vv_lineage *lin, struct vv_pool *pool)
{
	struct vv_verify_report report;
	char path[2 * PLACE_MAX];
	pthread_t t = start("keep=2 keep-every=50 codec=none log=error");
	uint8_t *p;
	size_t n = 0;

	finish(t);
	snprintf(path, sizeof(path), "%s/live/00000000/0000000050.r0.layer", url);
	p = place_read(path, &n);
	p[100] ^= 1;
	place_write(path, p, n);
	free(p);
	t = start("keep=2 keep-every=50 codec=none log=error");
	for (int i = 0; i < RUNS / 5; i++) {
		bool found = false;

		ok(vv_verify_run(lin, pool, 0, false, find, &found, NULL, &report));
		CHECK(found && report.problems > 0);
	}
	finish(t);
}

static void run(const char *name, void (*test)(const struct vv_lineage *lin, struct vv_pool *pool))
{
	struct vv_store_options opt = { .create = true };
	struct vv_store *s = NULL;
	struct vv_pool *pool = NULL;
	struct vv_lineage lin;

	place_path(url, name);
	ok(vv_store_open(url, &opt, &s));
	ok(vv_pool_new(1, &pool));
	ok(vv_catalog_open(s, "live", true, &lin));
	test(&lin, pool);
	vv_pool_free(pool);
	vv_store_close(s);
}

int main(void)
{
	run("whole", whole);
	run("damaged", damaged);
	return 0;
}
