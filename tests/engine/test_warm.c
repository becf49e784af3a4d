// ctest: TIMEOUT 120
/* Restarts from the page cache, in the order of the destination: regions of several stripes, pieces that lie across their borders,
 * more layers than are open at once; and files that are damaged, or cut short while they are mapped. */
#include "base/err.h"
#include "base/pool.h"
#include "core/name.h"
#include "engine/table.h"
#include "engine/warm.h"
#include "support/coded.h"
#include "support/gen.h"
#include "support/place.h"
#include "support/settle.h"
#include "vv_test.h"
#include <unistd.h>
#include <varve/varve.h>

static void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		exit(1);
	}
}

struct world {
	char store[PLACE_MAX];
	uint8_t *p; /* what the newest epoch holds */
	size_t n;
	uint64_t epochs;
	struct vv_store *s;
	struct vv_lineage lineage;
	struct vv_table table;
	struct vv_pool *pool;
};

/* A first epoch, then others with some chunks changed each; a small region before the large one, so that its pieces begin
 * anywhere in a stripe. */
static void lay_down(struct world *w, const char *name, const char *options, size_t n, uint64_t epochs, size_t changed)
{
	struct vv_store_options opt = { 0 };
	uint64_t state = n + epochs;
	uint8_t small[1001];
	varve *v = NULL;

	*w = (struct world){ .n = n, .epochs = epochs };
	place_path(w->store, name);
	CHECK((w->p = malloc(n)));
	gen_bytes(&state, w->p, n);
	memset(w->p + n / 3, 0, n / 10);
	gen_bytes(&state, small, sizeof(small));
	ok(varve_open(w->store, "L", options, &v));
	ok(varve_protect(v, "small", small, sizeof(small)));
	ok(varve_protect(v, "p", w->p, n));
	for (uint64_t e = 1; e <= epochs; e++) {
		for (size_t i = 0; e > 1 && i < changed; i++) {
			size_t at = (size_t)gen_below(&state, n / 4096) * 4096;

			gen_bytes(&state, w->p + at, n - at < 4096 ? n - at : 4096);
		}
		ok(settle_checkpoint(v));
	}
	ok(varve_close(v));
	ok(vv_store_open(w->store, &opt, &w->s));
	ok(vv_catalog_open(w->s, "L", false, &w->lineage));
	ok(vv_table_load(&w->lineage, epochs, 0, &w->table));
	ok(vv_pool_new(2, &w->pool));
}

static void tear_down(struct world *w)
{
	vv_pool_free(w->pool);
	vv_table_fini(&w->table);
	vv_store_close(w->s);
	place_remove(w->store);
	free(w->p);
}

static const struct vv_runs *runs(const struct world *w)
{
	return &w->table.region[vv_table_find(&w->table, "p")].runs;
}

/* at..at+len, with a margin that must stay as it is. */
static int read_part(struct world *w, size_t at, size_t len)
{
	enum { GUARD = 64 };
	uint8_t *to = malloc(len + 2 * GUARD);
	struct vv_want want = { runs(w), at, len, to + GUARD, NULL };
	int rc;

	CHECK(to);
	memset(to, 0xa5, len + 2 * GUARD);
	rc = vv_restore_read(&w->lineage, w->pool, &want, 1);
	CHECK(rc < 0 || memcmp(to + GUARD, w->p + at, len) == 0);
	for (size_t i = 0; i < GUARD; i++)
		CHECK(to[i] == 0xa5 && to[GUARD + len + i] == 0xa5);
	free(to);
	return rc;
}

static void whole_and_parts(const char *name, const char *options, size_t n, uint64_t epochs, size_t changed)
{
	struct world w;
	uint64_t state = 1;

	lay_down(&w, name, options, n, epochs, changed);
	ok(read_part(&w, 0, n));
	for (int i = 0; i < 12; i++) {
		size_t at = (size_t)gen_below(&state, n), len = (size_t)gen_below(&state, n - at + 1);

		ok(read_part(&w, at, i % 2 ? len : len % 5000));
	}
	tear_down(&w);
}

static void path_of(const struct world *w, uint64_t layer, char out[2 * PLACE_MAX])
{
	char object[VV_NAME_MAX];

	vv_name_layer(object, "L", vv_run_epoch(layer), vv_run_rank(layer));
	snprintf(out, 2 * PLACE_MAX, "%s/%s", w->store, object);
}

/* A flipped byte in a page that is used is found, and named; in one that is not, nobody minds. */
static void damage(void)
{
	struct world w;
	char path[2 * PLACE_MAX];
	struct vv_layerio *f = NULL;
	size_t n;
	uint8_t *bytes;

	lay_down(&w, "damage", "codec=none", (9 << 20) + 77, 6, 400);
	for (size_t i = 0, done = 0; i < runs(&w)->n && done < 8; i += runs(&w)->n / 9 + 1) {
		const struct vv_run *r = &runs(&w)->v[i];
		struct vv_payload_cursor c = { 0 };
		uint64_t at;

		if (!r->layer)
			continue;
		ok(vv_layerio_open(&w.lineage, r->layer, VV_LAYERIO_BLOCKS, &f));
		CHECK(vv_payload_locate(&f->blocks, r->pos, &c));
		at = f->blocks.v[c.block].off + c.before + (r->pos - f->blocks.extent.v[c.extent].pos);
		vv_layerio_close(f);
		path_of(&w, r->layer, path);
		bytes = place_read(path, &n);
		bytes[at] ^= 16;
		place_write(path, bytes, n);
		CHECK_EQ(read_part(&w, 0, w.n), VV_EDAMAGED);
		CHECK(strstr(varve_last_error(), "check differs"));
		bytes[at] ^= 16;
		place_write(path, bytes, n);
		free(bytes);
		ok(read_part(&w, 0, w.n));
		done++;
	}
	tear_down(&w);
}

/* Cut short behind our back: what cannot be read from the mapping is left, and reading it says why. */
static void cut_short(void)
{
	struct vv_warm *warm = calloc(1, sizeof(*warm));
	struct vv_stretches left = { 0 };
	uint64_t got;
	struct world w;
	char path[2 * PLACE_MAX];
	uint8_t *to;

	lay_down(&w, "cut", "codec=none", 5 << 20, 1, 0);
	CHECK(warm && (to = malloc(w.n)));
	warm->n = 1;
	ok(vv_warm_open(warm, 0, &w.lineage, vv_run_layer(1, 0), 1000));
	vv_warm_number(warm);
	CHECK_EQ(vv_warm_find(warm, vv_run_layer(1, 0)), 0);
	CHECK_EQ(vv_warm_find(warm, vv_run_layer(2, 0)), 1);
	path_of(&w, vv_run_layer(1, 0), path);
	if (warm->window[0]) { /* it may not be mapped, where others own the file */
		struct vv_want want = { runs(&w), 0, w.n, to, "p" };
		uint64_t sum = 0;

		ok(vv_warm_read(warm, &want, 0, w.n, true, &left, &got));
		CHECK_EQ(left.n, 0);
		CHECK(memcmp(to, w.p, w.n) == 0);
		for (uint64_t k = 0; k <= warm->file[0]->get->size >> 20; k++)
			CHECK(atomic_load(&warm->window[0][k]) <= 2);
		CHECK_EQ(truncate(path, 2 << 20), 0);
		ok(vv_warm_read(warm, &want, 0, w.n, true, &left, &got));
		for (size_t i = 0; i < left.n; i++)
			sum += left.v[i].len;
		CHECK_EQ(sum, w.n);
	}
	CHECK(read_part(&w, 0, w.n) < 0);
	vv_warm_close(warm, 0);
	free(warm);
	free(left.v);
	free(to);
	tear_down(&w);
}

int main(void)
{
	whole_and_parts("plain", "codec=none", (20 << 20) + 4321, 8, 900);
	whole_and_parts("coded", CODED_FAST " block=256KiB", (9 << 20) + 1, 4, 200);
	whole_and_parts("odd", "codec=none chunk=1000 block=100000", (9 << 20) + 5, 6, 200);
	whole_and_parts("sha", "codec=none digest=sha256", (9 << 20) + 5, 3, 200);
	whole_and_parts("many", "codec=none", (2 << 20) + 100, 150, 6);
	damage();
	cut_short();
	return 0;
}
