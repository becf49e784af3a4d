// ctest: TIMEOUT 120 COST 4
/* Reading through run tables that point into many layers, against copies kept aside: whole regions and any stretch of them,
 * blocks of which parts are used, coded and plain, chunks of all sizes, before and after a gc. Then flipped bytes: in what is
 * used they are found and named, in what is not used they never give wrong bytes, and neither do damaged digests. */
#include "base/mem.h"
#include "base/pool.h"
#include "engine/lineage/catalog.h"
#include "engine/upkeep/gc.h"
#include "engine/lineage/layer_file.h"
#include "engine/read/restore.h"
#include "engine/lineage/run_table.h"
#include "support/coded.h"
#include "support/gen.h"
#include "support/place.h"
#include "vv_test.h"
#include <varve/varve.h>

enum { EPOCHS = 12, REGIONS = 2, SMALL = 150001, LARGE = 3500001, GUARD = 64 }; /* LARGE: the layers get mapped */

struct world {
	const char *options;
	unsigned chunk;
	size_t size; /* of the larger region */
	bool spares; /* what is not used is not looked at */
	struct vv_store *store;
	struct vv_lineage lineage;
	struct vv_pool *pool;
	struct vv_run_table table[EPOCHS + 1];
	uint8_t *want[EPOCHS + 1][REGIONS];
	uint64_t state;
	long spared, found;
};

static void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		exit(1);
	}
}

static size_t size_of(const struct world *w, int region)
{
	return region ? w->size / 3 : w->size;
}

static void fresh(struct world *w, uint8_t *p, size_t n)
{
	if (strstr(w->options, "codec=none"))
		gen_bytes(&w->state, p, n);
	else
		gen_text(&w->state, p, n); /* it has to shrink, else it is stored as it is */
}

/* New bytes, bytes from elsewhere, zeros: most of it in whole chunks, some across them. */
static void change(struct world *w, uint8_t *p, size_t n, int share)
{
	size_t chunks = n / w->chunk + 1, count = chunks * (size_t)share / 100 + 1;

	for (size_t i = 0; i < count; i++) {
		size_t at = (size_t)gen_below(&w->state, chunks) * w->chunk, len = w->chunk, from;

		at += i % 16 == 15 ? (size_t)gen_below(&w->state, w->chunk) : 0;
		at = at < n ? at : n - 1;
		len = len < n - at ? len : n - at;
		from = (size_t)gen_below(&w->state, n / w->chunk) * w->chunk;
		if (i % 8 == 6)
			memset(p + at, 0, len);
		else if (i % 8 == 7 && from + len <= n)
			memmove(p + at, p + from, len);
		else
			fresh(w, p + at, len);
	}
}

static void lay_down(struct world *w, const char *url)
{
	static const char *const name[REGIONS] = { "a", "b" };
	varve *v = NULL;

	ok(varve_open(url, "L", w->options, &v));
	for (int r = 0; r < REGIONS; r++)
		CHECK((w->want[0][r] = calloc(1, size_of(w, r))) &&
		      varve_protect(v, name[r], w->want[0][r], size_of(w, r)) == 0);
	for (int e = 1; e <= EPOCHS; e++) {
		for (int r = 0; r < REGIONS; r++) {
			if (e == 1)
				fresh(w, w->want[0][r], size_of(w, r));
			else
				change(w, w->want[0][r], size_of(w, r), w->size == LARGE ? 35 : 8);
			w->want[e][r] = malloc(size_of(w, r));
			CHECK(w->want[e][r]);
			memcpy(w->want[e][r], w->want[0][r], size_of(w, r));
		}
		ok(varve_checkpoint(v));
	}
	ok(varve_close(v));
}

static void set_up(struct world *w, const char *url)
{
	struct vv_store_options opt = { .create = true };

	ok(vv_store_open(url, &opt, &w->store)); /* held open: memory goes with its last user */
	lay_down(w, url);
	ok(vv_catalog_open(w->store, "L", false, &w->lineage));
	ok(vv_pool_new(2, &w->pool));
	for (uint64_t e = 1; e <= EPOCHS; e++)
		ok(vv_run_table_load(&w->lineage, e, 0, NULL, &w->table[e]));
}

static void tear_down(struct world *w)
{
	for (int e = 0; e <= EPOCHS; e++) {
		vv_run_table_fini(&w->table[e]);
		for (int r = 0; r < REGIONS; r++)
			free(w->want[e][r]);
	}
	vv_pool_free(w->pool);
	vv_store_close(w->store);
}

/* ---- right bytes ---------------------------------------------------------------------------------------------------- */

/* Some stretches at once, with a margin that must stay as it is. */
static void check_stretches(struct world *w, uint64_t epoch)
{
	enum { MOST = 5 };
	struct vv_want want[MOST];
	size_t n = 1 + (size_t)gen_below(&w->state, MOST);

	for (size_t i = 0; i < n; i++) {
		int r = (int)gen_below(&w->state, REGIONS);
		uint64_t at = gen_below(&w->state, size_of(w, r)), len = gen_below(&w->state, size_of(w, r) - at + 1);

		len = i % 2 ? len : len % 300; /* short ones as well */
		want[i] = (struct vv_want){ &w->table[epoch].region[r].runs, at, len, malloc(len + GUARD), NULL };
		CHECK(want[i].to);
		memset(want[i].to, 0xa5, len + GUARD);
	}
	ok(vv_restore_read(&w->lineage, w->pool, want, n));
	for (size_t i = 0; i < n; i++) {
		int r = want[i].runs == &w->table[epoch].region[1].runs;

		CHECK(memcmp(want[i].to, w->want[epoch][r] + want[i].at, want[i].len) == 0);
		for (size_t k = 0; k < GUARD; k++)
			CHECK(want[i].to[want[i].len + k] == 0xa5);
		free(want[i].to);
	}
}

/* Both regions whole: the code, and whether the bytes are right. */
static int read_epoch(struct world *w, uint64_t epoch, bool *same)
{
	struct vv_want want[REGIONS];
	int rc;

	for (int r = 0; r < REGIONS; r++) {
		want[r] = (struct vv_want){ &w->table[epoch].region[r].runs, 0, size_of(w, r), malloc(size_of(w, r)), NULL };
		CHECK(want[r].to);
		memset(want[r].to, 0xa5, size_of(w, r));
	}
	rc = vv_restore_read(&w->lineage, w->pool, want, REGIONS);
	*same = true;
	for (int r = 0; r < REGIONS; r++) {
		*same &= memcmp(want[r].to, w->want[epoch][r], size_of(w, r)) == 0;
		free(want[r].to);
	}
	return rc;
}

static void check_reads(struct world *w, uint64_t first)
{
	for (uint64_t e = first; e <= EPOCHS; e++) {
		bool same = false;

		ok(read_epoch(w, e, &same));
		CHECK(same);
		for (int i = 0; i < 6; i++)
			check_stretches(w, e);
	}
}

/* ---- damage --------------------------------------------------------------------------------------------------------- */

/* Payload position of byte `off` of a decoded block. */
static uint64_t pos_of(const struct vv_blocks *b, size_t block, uint64_t off)
{
	const struct vv_extent *x = &b->extent.v[b->v[block].extent];

	for (; off >= x->len; x++)
		off -= x->len;
	return x->pos + off;
}

static bool is_used(const struct world *w, uint64_t epoch, uint64_t layer, uint64_t pos)
{
	for (int r = 0; r < REGIONS; r++)
		for (size_t i = 0; i < w->table[epoch].region[r].runs.n; i++) {
			const struct vv_run *x = &w->table[epoch].region[r].runs.v[i];

			if (x->layer == layer && pos >= x->pos && pos < x->pos + x->len)
				return true;
		}
	return false;
}

static void check_flip(struct world *w, uint64_t epoch, const struct vv_layer_file *f, size_t block, uint64_t off)
{
	const struct vv_block *b = &f->blocks.v[block];
	bool used = b->codec == 0 && is_used(w, epoch, f->layer, pos_of(&f->blocks, block, off)), same = false;
	char place[64];
	int rc = read_epoch(w, epoch, &same);

	snprintf(place, sizeof(place), "block %zu at offset %llu: checksum mismatch", block, (unsigned long long)b->off);
	CHECK(rc == 0 || rc == VARVE_EDAMAGED);
	CHECK(rc < 0 || same);
	CHECK(rc == 0 || (strstr(varve_last_error(), f->object) && strstr(varve_last_error(), place)));
	CHECK(!used || rc < 0);
	w->found += rc < 0;
	w->spared += rc == 0;
}

/* A byte of the newest epochs' layers, then a byte of the digests. */
static void damage_layer(struct world *w, uint64_t epoch, uint64_t from)
{
	struct vv_layer_file *f = NULL;
	const struct vv_section *digests;
	uint8_t *bytes = NULL;
	size_t n = 0;
	bool same = false;

	ok(vv_layer_file_open(&w->lineage, vv_run_layer(from, 0), VV_LAYER_FILE_BLOCKS, &f));
	ok(vv_store_get(w->store, f->object, SIZE_MAX, &bytes, &n));
	for (int i = 0; i < 12 && f->blocks.n; i++) {
		size_t block = (size_t)gen_below(&w->state, f->blocks.n);
		uint64_t off = gen_below(&w->state, f->blocks.v[block].stored_len), at = f->blocks.v[block].off + off;

		bytes[at] ^= 0x10;
		ok(vv_store_put(w->store, f->object, bytes, n));
		check_flip(w, epoch, f, block, off);
		bytes[at] ^= 0x10;
	}
	digests = vv_layer_section(&f->frame, VV_SECTION_DIGESTS);
	bytes[digests->off + gen_below(&w->state, digests->len)] ^= 1;
	ok(vv_store_put(w->store, f->object, bytes, n));
	ok(read_epoch(w, epoch, &same)); /* the blocks are whole, and that can still be told */
	CHECK(same);
	vv_layer_file_close(f);
	vv_mem_free(bytes);
}

/* The layer as it was when `damage_layer` is through with it. */
static void damage(struct world *w, uint64_t epoch)
{
	for (uint64_t from = 1; from <= EPOCHS; from += from == 1 ? 3 : 4) {
		char object[VV_NAME_MAX];
		uint8_t *bytes = NULL;
		size_t n = 0;

		vv_name_layer(object, "L", from, 0);
		if (vv_store_get(w->store, object, SIZE_MAX, &bytes, &n) < 0)
			continue; /* gc took it */
		damage_layer(w, epoch, from);
		ok(vv_store_put(w->store, object, bytes, n));
		vv_mem_free(bytes);
	}
	CHECK(w->found > 0);
	CHECK(!w->spares || w->spared > 0);
}

static void collect(struct world *w)
{
	struct vv_gc_report report;

	for (uint64_t e = 1; e < EPOCHS - 2; e++)
		ok(vv_catalog_drop_epoch(&w->lineage, e, NULL));
	ok(vv_gc_run(&w->lineage, 0, VV_GC_THOROUGH, NULL, &report));
	CHECK(report.removed + report.rewritten > 0);
}

static void run(const char *url, const char *options, unsigned chunk, size_t size, bool spares)
{
	struct world w = { .options = options, .chunk = chunk, .size = size, .spares = spares, .state = chunk };

	set_up(&w, url);
	check_reads(&w, 1);
	damage(&w, EPOCHS);
	check_reads(&w, 1);
	collect(&w);
	check_reads(&w, EPOCHS - 2);
	damage(&w, EPOCHS);
	check_reads(&w, EPOCHS - 2);
	printf("%s: %ld found, %ld of what is not used\n", options, w.found, w.spared);
	tear_down(&w);
}

int main(void)
{
	char dir[PLACE_MAX];

	run("mem:1", "chunk=32 block=4096 codec=none threads=2 log=error", 32, SMALL, false);
	run("mem:2", "chunk=100 block=8KiB codec=none threads=2 log=error", 100, SMALL, false);
	run("mem:3", "chunk=1000 block=16KiB codec=none threads=2 log=error", 1000, SMALL, true);
	run("mem:4", "chunk=4096 block=64KiB codec=none threads=2 log=error", 4096, SMALL, true);
	run("mem:5", "chunk=1000 block=16KiB " CODED " threads=2 log=error", 1000, SMALL, false);
	run("mem:6", "chunk=1024 block=16KiB codec=none digest=sha256 threads=2 log=error", 1024, SMALL, false);
	run("mem:7", "chunk=512 block=16KiB codec=none order=address tracker=digest threads=2 log=error", 512, SMALL, true);
	run(place_path(dir, "4096"), "chunk=4096 block=64KiB codec=none threads=2 log=error", 4096, LARGE, true);
	run(place_path(dir, "8192"), "chunk=8192 block=64KiB codec=none threads=2 log=error", 8192, LARGE, true);
	run(place_path(dir, "3001"), "chunk=3001 block=32KiB codec=none threads=2 log=error", 3001, LARGE, true);
	run(place_path(dir, "coded"), "chunk=4096 block=64KiB " CODED_FAST " threads=2 log=error", 4096, LARGE, false);
	return 0;
}
