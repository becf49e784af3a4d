// ctest: COST 2
/* Whole files that are wrong: swapped, missing, empty, folders in their place, rubbish beside them, and index caches that
 * do not fit. No restart gives wrong bytes, the newest whole epoch is found, and the next checkpoint can be relied on. */
#include "base/mem.h"
#include "base/pool.h"
#include "engine/lineage/catalog.h"
#include "engine/upkeep/verify.h"
#include "store/dir/dir.h"
#include "support/coded.h"
#include "support/gen.h"
#include "support/lazyfs.h"
#include "support/place.h"
#include "support/settle.h"
#include "vv_test.h"
#include <unistd.h>
#include <varve/varve.h>

enum { SIZE = 3072, EPOCHS = 3, CACHED = 64 };

static const char options[] = "chunk=64 block=4096 " CODED " threads=1 log=error";
static char store[PLACE_MAX];
static uint8_t data[SIZE];

static void state_of(uint8_t *p, unsigned epoch)
{
	uint64_t same = 5, fresh = 1000 + epoch;

	memset(p, 0, SIZE);
	gen_bytes(&same, p, SIZE / 3);
	gen_bytes(&fresh, p + SIZE / 3, SIZE / 3);
}

static bool is_state(unsigned epoch)
{
	uint8_t want[SIZE];

	state_of(want, epoch);
	return memcmp(data, want, SIZE) == 0;
}

static varve *open_lineage(const char *lineage)
{
	varve *v = NULL;

	CHECK_EQ(varve_open(store, lineage, options, &v), 0);
	CHECK_EQ(varve_protect(v, "data", data, SIZE), 0);
	return v;
}

static void lay_down(const char *lineage, unsigned epochs)
{
	varve *v = open_lineage(lineage);

	for (unsigned e = 1; e <= epochs; e++) {
		state_of(data, e);
		CHECK_EQ(settle_checkpoint(v), 0);
		CHECK_EQ(varve_epoch(v), e);
	}
	varve_close(v);
}

static const char *file_of(char out[PLACE_MAX], const char *lineage, unsigned epoch, const char *end)
{
	snprintf(out, PLACE_MAX, "%.300s/%s/%08u/%010u%s", store, lineage, epoch / 100, epoch, end);
	return out;
}

static void copy(const char *from, const char *to)
{
	size_t n;
	uint8_t *p = place_read(from, &n);

	place_write(to, p, n);
	free(p);
}

static void heard(void *arg, const char *problem)
{
	if (strstr(problem, arg))
		return;
	fprintf(stderr, "a problem that does not name '%s': %s\n", (char *)arg, problem);
	exit(1);
}

/* How many problems verify finds, each of which names `object`. */
static size_t verify(const char *lineage, char *object)
{
	struct vv_store_options opt = { 0 };
	struct vv_verify_report report = { 0 };
	struct vv_store *s = NULL;
	struct vv_pool *pool = NULL;
	struct vv_lineage lin;

	CHECK_EQ(vv_store_open(store, &opt, &s), 0);
	CHECK_EQ(vv_catalog_open(s, lineage, false, &lin), 0);
	CHECK_EQ(vv_pool_new(0, &pool), 0);
	CHECK_EQ(vv_verify_run(&lin, pool, 0, false, heard, object, NULL, &report), 0);
	vv_pool_free(pool);
	vv_store_close(s);
	return report.problems;
}

/* Every epoch gives its bytes or an error; the latest is the one expected; and life goes on. */
static void check_lineage(uint64_t latest, unsigned next)
{
	varve *v = open_lineage("a");
	uint64_t epoch;

	for (unsigned e = 1; e <= EPOCHS; e++) {
		int rc = varve_restart(v, e);

		CHECK(rc == 1 ? is_state(e) : rc == VARVE_EDAMAGED || rc == VARVE_ENOENT);
	}
	varve_close(v);
	v = open_lineage("a"); /* without a restart: it continues whatever is there */
	state_of(data, next);
	CHECK_EQ(settle_checkpoint(v), 0);
	epoch = varve_epoch(v);
	CHECK(epoch > EPOCHS);
	memset(data, 0xa5, SIZE);
	CHECK_EQ(varve_restart(v, epoch), 1);
	CHECK(is_state(next));
	CHECK_EQ(varve_restart(v, latest), 1);
	CHECK(is_state((unsigned)latest));
	varve_close(v);
}

/* The newest whole epoch, as a restart finds it. */
static void check_latest(uint64_t latest)
{
	varve *v = open_lineage("a");

	CHECK_EQ(varve_restart(v, VARVE_LATEST), 1);
	CHECK_EQ(varve_epoch(v), latest);
	CHECK(is_state((unsigned)latest));
	varve_close(v);
}

/* What a case does to the store, which has the lineages a and b; path is epoch 3's layer or commit record in a. */
typedef void (*deed)(const char *path);

static void remove_it(const char *path)
{
	place_remove(path);
}

static void empty_it(const char *path)
{
	place_write(path, "", 0);
}

static void put_folder(const char *path)
{
	place_remove(path);
	place_make_dir(path);
}

static void swap_epoch(const char *path)
{
	char from[PLACE_MAX];

	copy(file_of(from, "a", 2, strstr(path, ".r0.layer") ? ".r0.layer" : ".commit"), path);
}

static void swap_lineage(const char *path)
{
	char from[PLACE_MAX];

	copy(file_of(from, "b", 3, strstr(path, ".r0.layer") ? ".r0.layer" : ".commit"), path);
}

/* The layer of an epoch 3 that was laid down twice, with the commit record of the first. */
static void swap_content(const char *path)
{
	char record[PLACE_MAX];
	size_t n;
	uint8_t *p = place_read(file_of(record, "a", 3, ".commit"), &n);
	varve *v;

	place_remove(record);
	place_remove(path);
	v = open_lineage("a");
	state_of(data, 9);
	CHECK_EQ(settle_checkpoint(v), 0);
	CHECK_EQ(varve_epoch(v), 3);
	varve_close(v);
	place_write(record, p, n);
	free(p);
}

static void run_case(const char *end, deed what, size_t problems, uint64_t latest)
{
	char path[PLACE_MAX];

	place_remove(store);
	lay_down("a", EPOCHS);
	lay_down("b", EPOCHS);
	what(file_of(path, "a", 3, end));
	CHECK_EQ(verify("a", strrchr(path, '/') + 1) > 0, problems > 0);
	check_latest(latest);
	check_lineage(latest, 3); /* what the damaged epoch held must not be taken from it */
	CHECK_EQ(verify("b", NULL), 0);
}

static void whole_files(void)
{
	run_case(".r0.layer", remove_it, 1, 2);
	run_case(".r0.layer", empty_it, 1, 2);
	run_case(".r0.layer", put_folder, 1, 2);
	run_case(".r0.layer", swap_epoch, 1, 2);
	run_case(".r0.layer", swap_lineage, 1, 2);
	run_case(".r0.layer", swap_content, 1, 2);
	run_case(".commit", remove_it, 0, 2); /* then there is no such epoch */
	run_case(".commit", empty_it, 1, 2);
	run_case(".commit", put_folder, 0, 2);
	run_case(".commit", swap_epoch, 1, 2);
	run_case(".commit", swap_lineage, 1, 2);
}

/* Names that are nobody's are left alone. */
static void rubbish(void)
{
	static const char *const names[] = { "a/notes.txt",          "a/00000000/0000000003.commit.bak",
					     "a/00000000/3.commit",  "a/00000000/0000000004.rx.layer",
					     "a/00000000/core",      "a/00000000/.tmp-0000000009.commit-1-2",
					     "a/0000000x",           "stray",
					     "a/00000000/0000000002.r0.layer~" };
	char path[PLACE_MAX];

	place_remove(store);
	lay_down("a", EPOCHS);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%.300s/%s", store, names[i]);
		place_write(path, "rubbish", 7);
	}
	snprintf(path, sizeof(path), "%.300s/a/99999999", store);
	place_make_dir(path);
	CHECK_EQ(verify("a", NULL), 0);
	check_latest(3);
	check_lineage(3, 4);
	snprintf(path, sizeof(path), "%.300s/%s", store, names[0]);
	CHECK(access(path, F_OK) == 0);
}

/* ---- index caches ----------------------------------------------------------------------------------------------------- */

static const char *cache_of(char out[PLACE_MAX], const char *lineage)
{
	snprintf(out, PLACE_MAX, "%.300s/%s/index.r0", store, lineage);
	return out;
}

/* Content of an old epoch comes back: `fresh` bytes of it are not in the lineage. Then all is as before. */
static void check_dedup(unsigned epoch, uint64_t fresh)
{
	struct varve_stats st;
	varve *v = open_lineage("a");
	char path[PLACE_MAX];
	unsigned new;

	state_of(data, epoch);
	CHECK_EQ(settle_checkpoint(v), 0);
	CHECK_EQ(varve_stats(v, &st), 0);
	CHECK_EQ(st.bytes_new, fresh);
	new = (unsigned)varve_epoch(v);
	CHECK(new > CACHED);
	memset(data, 0xa5, SIZE);
	CHECK_EQ(varve_restart(v, new), 1);
	CHECK(is_state(epoch));
	varve_close(v);
	place_remove(file_of(path, "a", new, ".commit"));
	place_remove(file_of(path, "a", new, ".r0.layer"));
}

static void check_cache(const uint8_t *p, size_t n)
{
	char path[PLACE_MAX];

	place_write(cache_of(path, "a"), p, n);
	check_dedup(7, 0);
}

static void damaged_caches(const uint8_t *cache, size_t n)
{
	uint8_t *bad = malloc(n);
	uint64_t state = 1;

	CHECK(bad);
	memcpy(bad, cache, n);
	check_cache(cache, n);
	for (size_t at = 0; at < n; at += at < 60 ? 1 : 1 + (size_t)gen_below(&state, n / 150)) {
		bad[at] ^= 0xff;
		check_cache(bad, n);
		bad[at] ^= 0xff;
	}
	for (size_t len = 0; len < n; len += len < 60 ? 7 : 1 + (size_t)gen_below(&state, n / 50))
		check_cache(cache, len);
	free(bad);
}

/* The cache says that there is content in a layer which somebody took away: it must not be referred to. */
static void cache_of_the_gone(const uint8_t *cache, size_t n)
{
	char path[PLACE_MAX], layer[PLACE_MAX];
	size_t len;
	uint8_t *p = place_read(file_of(layer, "a", 7, ".r0.layer"), &len);

	place_remove(file_of(path, "a", 7, ".commit"));
	place_remove(layer);
	place_write(cache_of(path, "a"), cache, n);
	check_dedup(7, SIZE / 3);
	place_write(layer, p, len);
	free(p);
}

static void caches(void)
{
	char path[PLACE_MAX];
	uint8_t *own, *foreign;
	size_t n, m;

	place_remove(store);
	lay_down("a", CACHED);
	lay_down("b", CACHED);
	own = place_read(cache_of(path, "a"), &n);
	foreign = place_read(cache_of(path, "b"), &m);
	damaged_caches(own, n);
	check_cache(foreign, m);
	put_folder(cache_of(path, "a"));
	check_dedup(7, 0);
	place_remove(path);
	check_dedup(7, 0);
	cache_of_the_gone(own, n);
	free(own);
	free(foreign);
}

int main(void)
{
	place_path(store, "store");
	vv_dir_set_fs(lazyfs());
	whole_files();
	rubbish();
	caches();
	return 0;
}
