/* Copies are stored in the order of memory, whatever the program was expected to write first: so a restart reads a layer from one end to the other. What has no copy is stored in the
 * order in which it is expected. And the bytes are right in any case. The buffer of the default size grows for an epoch whose changes then all have copies. */
#include "engine/lineage/run_table.h"
#include "support/gen.h"
#include "support/place.h"
#include "support/settle.h"
#include "vv_test.h"
#include <sys/mman.h>
#include <varve/varve.h>

enum { PAGE = 4096, PAGES = 2048, BYTES = PAGES * PAGE, EPOCHS = 4, STEP = 3 };

static void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		exit(1);
	}
}

/* Every third page, the last one first. */
static void change(uint8_t *p, uint64_t *state)
{
	for (size_t i = PAGES; i >= STEP; i -= STEP)
		gen_bytes(state, p + (i - 1) * PAGE, PAGE);
}

/* How often the next page of an epoch's own lies before the last one in its layer. */
static size_t turns(const char *store, uint64_t epoch, size_t *pages)
{
	struct vv_store_options opt = { 0 };
	struct vv_store *s = NULL;
	struct vv_lineage lin = { 0 };
	struct vv_run_table t = { 0 };
	uint64_t last = 0;
	size_t n = 0;

	ok(vv_store_open(store, &opt, &s));
	ok(vv_catalog_open(s, "L", false, &lin));
	ok(vv_run_table_load(&lin, epoch, 0, NULL, &t));
	*pages = 0;
	for (size_t i = 0; i < t.region[0].runs.n; i++) {
		const struct vv_run *r = &t.region[0].runs.v[i];

		if (r->layer != vv_run_layer(epoch, 0))
			continue;
		n += r->pos < last;
		last = r->pos;
		*pages += (size_t)(r->len / PAGE);
	}
	vv_run_table_fini(&t);
	vv_store_close(s);
	return n;
}

static void lay_down(const char *name, const char *options, bool all_copied)
{
	uint8_t *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *copy = malloc(BYTES);
	char store[PLACE_MAX];
	uint64_t state = 7;
	size_t pages, back;
	varve *v = NULL;

	CHECK(p != MAP_FAILED && copy);
	place_path(store, name);
	gen_bytes(&state, p, BYTES);
	ok(varve_open(store, "L", options, &v));
	ok(varve_protect(v, "p", p, BYTES));
	for (int e = 0; e < EPOCHS; e++) {
		ok(settle_checkpoint(v));
		if (e + 1 < EPOCHS)
			change(p, &state);
	}
	memcpy(copy, p, BYTES);
	ok(varve_close(v));
	back = turns(store, EPOCHS, &pages);
	CHECK_EQ(pages, PAGES / STEP);
	CHECK(all_copied ? back == 0 : back > 0);
	v = NULL;
	memset(p, 0, BYTES);
	ok(varve_open(store, "L", options, &v));
	ok(varve_protect(v, "p", p, BYTES));
	CHECK_EQ(varve_restart(v, VARVE_LATEST), 1);
	CHECK(memcmp(p, copy, BYTES) == 0);
	ok(varve_close(v));
	munmap(p, BYTES);
	free(copy);
	place_remove(store);
}

/* Are all bytes copied before the call returns, if so many MiB were written before it? Otherwise no more than usual are. */
static bool copies_all(varve *v, uint8_t *p, size_t mib, uint64_t *state)
{
	enum { AT = 7 << 16, USUAL = 16 << 20 };
	struct varve_stats st;

	gen_bytes(state, p + AT, mib << 20);
	ok(settle_checkpoint(v));
	ok(varve_stats(v, &st));
	CHECK(st.bytes_dirty >= (uint64_t)mib << 20);
	CHECK(st.bytes_copied == st.bytes_dirty || st.bytes_copied <= USUAL);
	return st.bytes_copied == st.bytes_dirty;
}

/* A buffer of the default size grows if all changes then fit, and only then. A buffer of a given size never does. */
static void grows(const char *name, const char *options, bool may)
{
	enum { MIB = 160, FEW = 2, SOME = 28, MANY = 80 };
	size_t n = (size_t)MIB << 20;
	uint8_t *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *copy = malloc(n);
	uint64_t state = 11;
	char store[PLACE_MAX];
	varve *v = NULL;

	CHECK(p != MAP_FAILED && copy);
	place_path(store, name);
	gen_bytes(&state, p, n);
	ok(varve_open(store, "L", options, &v));
	ok(varve_protect(v, "p", p, n));
	ok(settle_checkpoint(v));
	for (int turn = 0; turn < 2; turn++) {
		CHECK(copies_all(v, p, FEW, &state));
		CHECK(copies_all(v, p, SOME, &state) == may);
		CHECK(!copies_all(v, p, MANY, &state));
	}
	memcpy(copy, p, n);
	ok(varve_close(v));
	memset(p, 0, n);
	v = NULL;
	ok(varve_open(store, "L", options, &v));
	ok(varve_protect(v, "p", p, n));
	CHECK_EQ(varve_restart(v, VARVE_LATEST), 1);
	CHECK(memcmp(p, copy, n) == 0);
	ok(varve_close(v));
	munmap(p, n);
	free(copy);
	place_remove(store);
}

int main(void)
{
	grows("grows", "codec=none tracker=mprotect", true);
	grows("stays", "codec=none tracker=mprotect buffer=16MiB", false);
	lay_down("all", "codec=none tracker=mprotect buffer=100%", true);
	lay_down("some", "codec=none tracker=mprotect buffer=1MiB", false);
	lay_down("none", "codec=none tracker=mprotect buffer=0", false);
	lay_down("address", "codec=none tracker=mprotect buffer=0 order=address", true);
	return 0;
}
