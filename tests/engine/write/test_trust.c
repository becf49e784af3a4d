// ctest: TIMEOUT 120 MODES
/* New epochs never depend on damage: blocks that rotted, caches that are older than the files, numbers that come again. */
#include "base/pool.h"
#include "engine/lineage/catalog.h"
#include "engine/upkeep/gc.h"
#include "engine/upkeep/verify.h"
#include "store/dir/dir.h"
#include "support/lazyfs.h"
#include "support/place.h"
#include "support/settle.h"
#include "vv_test.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <varve/varve.h>

enum { PAGE = 4096, PAGES = 8, SIZE = PAGES * PAGE };

static uint8_t region[SIZE], step[8];
static char store[PLACE_MAX];

static void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		abort();
	}
}

/* The content of a step: new pages every time, the same for the same step. */
static void content(uint8_t *p, unsigned n)
{
	uint64_t x = n * 0x9e3779b97f4a7c15ull + 1;

	for (size_t i = 0; i < SIZE; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		p[i] = (uint8_t)x;
	}
}

static varve *begin(const char *options)
{
	varve *v = NULL;

	ok(varve_open(store, "L", options, &v));
	ok(varve_protect(v, "step", step, sizeof(step)));
	ok(varve_protect(v, "r", region, sizeof(region)));
	return v;
}

/* A deterministic program: restarts, does `steps` steps with a checkpoint each. Returns the step it began at. */
static unsigned program(unsigned steps, const char *options)
{
	uint8_t want[SIZE];
	varve *v = begin(options);
	unsigned start;
	int rc = varve_restart(v, VARVE_LATEST);

	ok(rc);
	start = rc ? step[0] : 0;
	if (rc) {
		content(want, start);
		CHECK(memcmp(want, region, SIZE) == 0);
	}
	for (unsigned i = start + 1; i <= start + steps; i++) {
		step[0] = (uint8_t)i;
		content(region, i);
		ok(settle_checkpoint(v));
	}
	ok(varve_close(v));
	return start;
}

static void damage(uint64_t epoch)
{
	char path[PLACE_MAX];
	uint8_t *p;
	size_t n;

	snprintf(path, sizeof(path), "%.300s/L/00000000/%010" PRIu64 ".r0.layer", store, epoch);
	p = place_read(path, &n);
	CHECK(n > 6000);
	p[5000] ^= 1;
	place_write(path, p, n);
	free(p);
}

/* The newest epoch rots; the program goes back one, computes the same content again, and that must be safe. */
static void rot(const char *options)
{
	place_remove(store);
	CHECK_EQ(program(5, options), 0);
	damage(5);
	CHECK_EQ(program(3, options), 4); /* 5 again, 6, 7 */
	CHECK_EQ(program(1, options), 7);
	CHECK_EQ(program(4, options), 8);
	CHECK_EQ(program(1, options), 12);
}

/* A session that does not restart must not build on damage either, even where nothing changed. */
static void rot_without_restart(void)
{
	uint8_t want[SIZE];
	varve *v;

	place_remove(store);
	program(1, "codec=none");
	damage(1);
	v = begin("codec=none");
	content(region, 1);
	step[0] = 1;
	ok(settle_checkpoint(v));
	ok(varve_close(v));
	memset(region, 0, SIZE);
	v = begin(NULL);
	CHECK_EQ(varve_restart(v, 2), 1);
	content(want, 1);
	CHECK(memcmp(want, region, SIZE) == 0);
	ok(varve_close(v));
}

static void remove_epoch(uint64_t epoch)
{
	char path[PLACE_MAX];

	snprintf(path, sizeof(path), "%.300s/L/00000000/%010" PRIu64 ".commit", store, epoch);
	place_remove(path);
	snprintf(path, sizeof(path), "%.300s/L/00000000/%010" PRIu64 ".r0.layer", store, epoch);
	place_remove(path);
}

/* Files removed by hand under a cache that knows them; their numbers come again with other content; then the old content
 * comes back. */
static void stale_cache(void)
{
	uint8_t want[SIZE];
	varve *v;

	place_remove(store);
	program(70, NULL); /* the cache covers 64 */
	for (uint64_t e = 60; e <= 70; e++)
		remove_epoch(e);
	v = begin(NULL);
	for (unsigned i = 0; i < 12; i++) { /* 60..71, with content of its own */
		content(region, 100 + i);
		ok(settle_checkpoint(v));
	}
	ok(varve_close(v));
	v = begin(NULL);
	CHECK_EQ(varve_restart(v, VARVE_LATEST), 1);
	for (unsigned i = 60; i <= 70; i++) {
		content(region, i);
		ok(settle_checkpoint(v));
		memset(region, 0, SIZE);
		CHECK_EQ(varve_restart(v, varve_epoch(v)), 1);
		content(want, i);
		CHECK(memcmp(want, region, SIZE) == 0);
	}
	ok(varve_close(v));
}

static void with_lineage(void (*act)(const struct vv_lineage *lin))
{
	struct vv_store_options opt = { 0 };
	struct vv_lineage lin;
	struct vv_store *s = NULL;

	ok(vv_store_open(store, &opt, &s));
	ok(vv_catalog_open(s, "L", false, &lin));
	act(&lin);
	vv_store_close(s);
}

static void drop_newest(const struct vv_lineage *lin)
{
	struct vv_gc_report report;
	uint64_t e = 0;

	ok(vv_catalog_newest(lin, UINT64_MAX, &e));
	ok(vv_catalog_drop_epoch(lin, e, NULL));
	ok(vv_gc_run(lin, 0, VV_GC_THOROUGH, NULL, &report));
}

static void verify(const struct vv_lineage *lin)
{
	struct vv_verify_report report;
	struct vv_pool *pool = NULL;

	ok(vv_pool_new(0, &pool));
	ok(vv_verify_run(lin, pool, 0, false, NULL, NULL, NULL, &report));
	CHECK_EQ(report.problems, 0);
	vv_pool_free(pool);
}

/* A number is never used twice, not even that of the newest epoch, dropped and taken apart. */
static void numbers(void)
{
	varve *v;

	place_remove(store);
	program(5, NULL);
	for (uint64_t next = 6; next < 9; next++) {
		with_lineage(drop_newest);
		with_lineage(verify);
		v = begin(NULL);
		ok(settle_checkpoint(v));
		CHECK_EQ(varve_epoch(v), next);
		ok(varve_close(v));
	}
}

static uint64_t total;

static void measure(const struct vv_lineage *lin)
{
	struct vv_gc_report report;

	ok(vv_gc_run(lin, 0, VV_GC_DRY_RUN, NULL, &report));
	total = report.bytes_before;
}

/* Many short sessions with keep: the store must not grow with their number. */
static void short_sessions(void)
{
	place_remove(store);
	for (unsigned i = 0; i < 40; i++)
		program(2, "keep=2 codec=none");
	with_lineage(measure);
	CHECK(total < 6 * SIZE);
	with_lineage(verify);
}

static void types(void)
{
	static float f[16];
	size_t n = 16;
	varve *v = NULL;

	place_remove(store);
	ok(varve_open(store, "L", NULL, &v));
	ok(varve_protect_array(v, "f", f, VARVE_F32, 1, &n));
	ok(settle_checkpoint(v));
	ok(varve_protect_array(v, "f", f, VARVE_I32, 1, &n));
	CHECK_EQ(varve_restart(v, VARVE_LATEST), VARVE_EMISMATCH);
	CHECK(strstr(varve_last_error(), "i32") && strstr(varve_last_error(), "f32"));
	ok(varve_protect(v, "f", f, sizeof(f)));
	CHECK_EQ(varve_restart(v, VARVE_LATEST), 1);
	ok(varve_close(v));
}

int main(void)
{
	place_path(store, "store");
	vv_dir_set_fs(lazyfs());
	rot("codec=none");
	rot("codec=none keep=3");
	rot("codec=none keep=2 chunk=512 block=4096");
	rot("codec=none history=0");
	rot_without_restart();
	stale_cache();
	numbers();
	short_sessions();
	types();
	return 0;
}
