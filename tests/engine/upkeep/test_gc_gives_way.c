/* gc of a session gives way to a checkpoint: then a large layer is not rewritten, whenever the checkpoint comes. Nothing is lost by that, and a later gc rewrites it. Small
 * layers are rewritten all the same. */
#include "engine/lineage/catalog.h"
#include "engine/upkeep/gc.h"
#include "support/gen.h"
#include "support/place.h"
#include "support/settle.h"
#include "vv_test.h"
#include <sys/mman.h>
#include <sys/stat.h>
#include <varve/varve.h>

enum { PAGE = 4096, NEVER = -1 };

static void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		exit(1);
	}
}

/* Gives way from the n-th question on. */
static bool asked(void *arg)
{
	int *left = arg;

	if (*left == NEVER)
		return false;
	if (*left == 0)
		return true;
	--*left;
	return false;
}

/* One gc, which gives way after so many questions; the layers that it rewrote. */
static size_t reclaim(const char *store, int after, struct vv_gc_report *out)
{
	struct vv_progress progress = { .gives_way = asked, .arg = &after };
	struct vv_store_options opt = { 0 };
	struct vv_store *s = NULL;
	struct vv_lineage lin = { 0 };

	ok(vv_store_open(store, &opt, &s));
	ok(vv_catalog_open(s, "L", true, &lin));
	ok(vv_gc_run(&lin, 0, VV_GC_CHEAP, &progress, out));
	vv_store_close(s);
	return out->rewritten;
}

static void check(const char *store, uint8_t *p, const uint8_t *copy, size_t n)
{
	varve *v = NULL;

	memset(p, 0, n);
	ok(varve_open(store, "L", "codec=none", &v));
	ok(varve_protect(v, "p", p, n));
	CHECK_EQ(varve_restart(v, VARVE_LATEST), 1);
	CHECK(memcmp(p, copy, n) == 0);
	ok(varve_close(v));
}

/* Of the first layer, two fifths are needed by the second epoch. */
static void make(const char *store, uint8_t *p, uint8_t *copy, size_t n)
{
	uint64_t state = 5;
	varve *v = NULL;

	gen_bytes(&state, p, n);
	ok(varve_open(store, "L", "codec=none keep=1 gc=off", &v));
	ok(varve_protect(v, "p", p, n));
	ok(settle_checkpoint(v));
	for (size_t at = 0; at < n; at += 5 * PAGE)
		gen_bytes(&state, p + at, n - at < 3 * PAGE ? n - at : 3 * PAGE);
	ok(settle_checkpoint(v));
	settle_idle(v);
	memcpy(copy, p, n);
	ok(varve_close(v));
}

/* When the folder of the first epochs was changed last. */
static struct timespec changed(const char *store)
{
	char path[PLACE_MAX + 20];
	struct stat st;

	snprintf(path, sizeof(path), "%s/L/00000000", store);
	CHECK(stat(path, &st) == 0);
	return st.st_mtim;
}

static bool is_same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Asked at once, it begins no new layer. */
static void run(size_t n, bool large)
{
	static const int after[] = { 0, 1, 2, 17, 40 };
	uint8_t *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *copy = malloc(n);
	struct vv_gc_report r = { 0 };
	char store[PLACE_MAX];

	CHECK(p != MAP_FAILED && copy);
	place_path(store, "gives-way");
	make(store, p, copy, n);
	for (size_t i = 0; large && i < sizeof(after) / sizeof(after[0]); i++) {
		struct timespec before = changed(store);

		CHECK_EQ(reclaim(store, after[i], &r), 0);
		CHECK(after[i] || is_same_time(before, changed(store)));
		CHECK_EQ(r.bytes_after, r.bytes_before);
		CHECK(r.bytes_needed < r.bytes_before);
		CHECK_EQ(r.unfinished.n, 0);
		check(store, p, copy, n);
	}
	CHECK_EQ(reclaim(store, large ? NEVER : 0, &r), 1);
	CHECK(r.bytes_after < r.bytes_before);
	check(store, p, copy, n);
	munmap(p, n);
	free(copy);
	place_remove(store);
}

int main(void)
{
	run((size_t)48 << 20, true);
	run((size_t)4 << 20, false);
	return 0;
}
