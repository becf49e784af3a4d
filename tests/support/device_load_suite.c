#include "support/device_load_suite.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/format/name.h"
#include "engine/read/device_load.h"
#include "engine/lineage/layer_file.h"
#include "engine/lineage/run_table.h"
#include "support/coded.h"
#include "support/gen.h"
#include "support/place.h"
#include "support/settle.h"
#include "vv_test.h"
#include <varve/varve.h>

enum { GUARD = 64, PLENTY = 256 << 20 };

static void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		exit(1);
	}
}

struct world {
	const struct device_load_suite *suite;
	char store[PLACE_MAX];
	uint8_t *p; /* what the newest epoch holds */
	size_t n;
	uint64_t memory, epochs;
	bool settled; /* tables are not read before they are settled */
	struct vv_store *s;
	struct vv_lineage lineage;
	struct vv_run_table table;
	struct vv_pool *pool;
};

/* ---- lineages --------------------------------------------------------------------------------------------------------------------- */

/* One to four units become new, zero, or what is elsewhere. */
static void change(struct world *w, uint64_t *state, size_t unit)
{
	size_t at = (size_t)gen_below(state, w->n / unit) * unit, len = (1 + (size_t)gen_below(state, 4)) * unit;

	len = len < w->n - at ? len : w->n - at;
	if (gen_below(state, 3))
		gen_bytes(state, w->p + at, len);
	else if (gen_below(state, 2))
		memset(w->p + at, 0, len);
	else
		memmove(w->p + at, w->p + (size_t)gen_below(state, (w->n - len) / unit) * unit, len);
}

/* All grains of the region, neighbours from different pages. */
static void scatter(struct world *w, size_t unit)
{
	size_t units = w->n / unit, rows = 4096 / unit;
	uint8_t *was = malloc(w->n);

	CHECK(was);
	memcpy(was, w->p, w->n);
	for (size_t i = 0, to = 0; i < rows; i++)
		for (size_t k = i; k < units; k += rows)
			memcpy(w->p + to++ * unit, was + k * unit, unit);
	free(was);
}

struct kind {
	const char *options;
	size_t n, unit;
	uint64_t epochs;
	size_t changed; /* times, in each; SCATTER: all of it */
};

#define SCATTER SIZE_MAX

static void lay_down(struct world *w, const struct device_load_suite *s, const struct kind *k)
{
	struct vv_store_options opt = { 0 };
	uint64_t state = k->n + k->epochs;
	uint8_t small[1001];
	varve *v = NULL;

	*w = (struct world){ .suite = s, .n = k->n, .memory = PLENTY, .epochs = k->epochs };
	place_path(w->store, "ferry");
	CHECK((w->p = malloc(w->n)));
	gen_bytes(&state, w->p, w->n);
	memset(w->p + w->n / 3, 0, w->n / 10);
	gen_bytes(&state, small, sizeof(small));
	ok(varve_open(w->store, "L", k->options, &v));
	ok(varve_protect(v, "small", small, sizeof(small))); /* so that pieces begin anywhere in a page */
	ok(varve_protect(v, "p", w->p, w->n));
	for (uint64_t e = 1; e <= k->epochs; e++) {
		for (size_t i = 0; e > 1 && k->changed != SCATTER && i < k->changed; i++)
			change(w, &state, k->unit);
		if (e > 1 && k->changed == SCATTER)
			scatter(w, k->unit);
		ok(settle_checkpoint(v));
	}
	ok(varve_close(v));
	ok(vv_store_open(w->store, &opt, &w->s));
	ok(vv_catalog_open(w->s, "L", false, &w->lineage));
	ok(vv_run_table_load(&w->lineage, k->epochs, 0, NULL, &w->table));
	ok(vv_pool_new(2, &w->pool));
}

static void tear_down(struct world *w)
{
	vv_pool_free(w->pool);
	vv_run_table_fini(&w->table);
	vv_store_close(w->s);
	place_remove(w->store);
	free(w->p);
}

static const struct vv_runs *runs(const struct world *w)
{
	return &w->table.region[vv_run_table_find(&w->table, "p")].runs;
}

/* ---- reading ---------------------------------------------------------------------------------------------------------------------- */

/* What was left, as the host reads it. */
static int read_left(const struct world *w, const struct vv_want *want, const struct vv_extents *left)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < left->n; i++) {
		const struct vv_extent *x = &left->v[i];
		uint8_t *p = malloc(x->len);

		CHECK(p && x->pos >= want->at && x->pos + x->len <= want->at + want->len);
		rc = vv_restore_read(&w->lineage, w->pool, &(struct vv_want){ want->runs, x->pos, x->len, p, NULL }, 1);
		if (rc == 0)
			ok(w->suite->space->copy_in(want->to + (x->pos - want->at), p, x->len));
		free(p);
	}
	return rc;
}

/* at..at+len of a table, or of a strand that says the same, which must come out as `holds`, with a margin that stays as it is; *left: bytes that the host had to read. */
static int read_once(const struct world *w, const struct vv_runs *table, const struct vv_run_table_unmerged *unmerged, size_t at, size_t len, const uint8_t *holds,
		     uint64_t *left)
{
	uint8_t *there = w->suite->get(len + 2 * GUARD), *is = malloc(len + 2 * GUARD);
	struct vv_want want = { table, at, len, there + GUARD, NULL };
	struct vv_device_buffers buffers = { 0 };
	struct vv_extents rest = { 0 };
	int rc;

	CHECK(there && is);
	memset(is, 0xa5, len + 2 * GUARD);
	ok(w->suite->space->copy_in(there, is, len + 2 * GUARD));
	vv_device_buffers_begin(&buffers, w->pool, w->suite->space, 0, w->memory, len);
	rc = vv_device_load_read(&w->lineage, w->pool, &buffers, &(struct vv_device_load_want){ &want, unmerged, &rest }, 1);
	vv_device_buffers_finish_close(&buffers);
	*left = 0;
	for (size_t i = 0; i < rest.n; i++)
		*left += rest.v[i].len;
	if (rc == 0)
		rc = read_left(w, &want, &rest);
	ok(w->suite->space->copy_out(is, there, len + 2 * GUARD));
	CHECK(rc || memcmp(is + GUARD, holds, len) == 0);
	for (size_t i = 0; i < GUARD; i++)
		CHECK(is[i] == 0xa5 && is[GUARD + len + i] == 0xa5);
	vv_payload_extents_fini(&rest);
	w->suite->put(there);
	free(is);
	return rc;
}

/* The newest epoch's, whose table is only begun; afterwards it says what it says to those who read it at once. Tables that are there are looked at in the
 * same way. */
static int read_begun(const struct world *w, size_t at, size_t len, const uint8_t *holds, uint64_t *left)
{
	struct vv_run_table t = { 0 };
	int rc = vv_run_table_load(&w->lineage, w->epochs, 0, &(struct vv_run_table_how){ .pool = w->pool, .runs = VV_RUN_TABLE_BEGUN }, &t);
	struct vv_run_table_region *r = rc ? NULL : &t.region[vv_run_table_find(&t, "p")];

	if (rc)
		return rc;
	CHECK(r->unmerged);
	rc = read_once(w, runs(w), r->unmerged, at, len, holds, left);
	if (rc == VV_DEVICE_LOAD_MERGE_FIRST) {
		CHECK(w->epochs > VV_OPEN_LAYERS_LAYERS);
		ok(vv_run_table_merge(&t, w->pool));
		rc = read_once(w, &r->runs, r->unmerged, at, len, holds, left);
	}
	if (rc == 0 && at % 2) {
		uint64_t again;

		ok(vv_run_table_load_rest(&t, w->pool));
		rc = read_once(w, runs(w), r->unmerged, at, len, holds, &again);
		CHECK(again == *left || !w->suite->fail_at);
	}
	ok(vv_run_table_merge(&t, w->pool));
	CHECK(r->runs.n == runs(w)->n && memcmp(r->runs.v, runs(w)->v, r->runs.n * sizeof(*r->runs.v)) == 0);
	vv_run_table_fini(&t);
	return rc;
}

/* In both ways, if it is the newest epoch's. */
static int read_table(const struct world *w, const struct vv_runs *table, size_t at, size_t len, const uint8_t *holds, uint64_t *left)
{
	uint64_t begun = 0;
	int rc = table == runs(w) && !w->settled ? read_begun(w, at, len, holds, &begun) : 0, plain;
	char said[400];

	snprintf(said, sizeof(said), "%s", rc ? varve_last_error() : "");
	plain = read_once(w, table, NULL, at, len, holds, left);
	if (table == runs(w) && !w->settled) {
		CHECK_EQ(rc, plain);
		CHECK(rc == 0 || strcmp(said, varve_last_error()) == 0);
		CHECK(rc || begun == *left);
	}
	return plain;
}

static uint64_t read_part(const struct world *w, size_t at, size_t len)
{
	uint64_t left;

	ok(read_table(w, runs(w), at, len, w->p + at, &left));
	return left;
}

enum left { NOTHING, SOMETHING, ALL };

static void kinds(const struct device_load_suite *s)
{
	static const struct {
		struct kind is;
		enum left left;
	} kind[] = {
		{ { "codec=none", (5 << 20) + 4321, 4096, 1, 0 }, NOTHING },
		{ { "codec=none", (5 << 20) + 4321, 4096, 8, 200 }, NOTHING },
		{ { "codec=none grain=128", (5 << 20) + 77, 128, 20, 300 }, NOTHING },
		{ { "codec=none grain=128", (5 << 20) + 77, 128, 20, 700 }, NOTHING }, /* in several rooms each */
		{ { "codec=none grain=32", (3 << 20) + 77, 32, 4, 2000 }, NOTHING },
		{ { "codec=none grain=64 chunk=8192 block=100000", (3 << 20) + 1, 64, 5, 2000 }, NOTHING },
		{ { "codec=none grain=512 chunk=1000 block=100000", (3 << 20) + 5, 512, 5, 400 }, NOTHING }, /* hashed by the host */
		{ { "codec=none grain=128", 4 << 20, 128, 2, SCATTER }, SOMETHING }, /* too many pages for a room */
		{ { "codec=none digest=sha256", (2 << 20) + 5, 4096, 2, 100 }, ALL },
		{ { CODED_FAST " block=256KiB", (2 << 20) + 5, 4096, 2, 100 }, NOTHING }, /* noise is stored as it is */
		{ { CODED_FAST " grain=128 block=100000", (5 << 20) + 77, 128, 20, 300 }, NOTHING },
		{ { "codec=none", (8 << 20) + 100, 4096, 150, 3 }, ALL }, /* more layers than are open at once */
		{ { "codec=none", (1 << 20) - 1, 4096, 1, 0 }, ALL },     /* not worth it */
	};

	for (size_t i = 0; i < sizeof(kind) / sizeof(*kind); i++) {
		uint64_t state = 1, left;
		struct world w;

		lay_down(&w, s, &kind[i].is);
		left = read_part(&w, 0, w.n);
		if (kind[i].left == SOMETHING ? left == 0 : left != (kind[i].left == ALL ? w.n : 0)) {
			fprintf(stderr, "%s: %llu bytes of %zu left\n", kind[i].is.options, (unsigned long long)left, w.n);
			exit(1);
		}
		for (int k = 0; k < 3; k++) {
			size_t at = (size_t)gen_below(&state, w.n / 4), len = w.n - at - (size_t)gen_below(&state, w.n / 4);

			left = read_part(&w, at, len);
			CHECK(kind[i].left != NOTHING || left < len || len < 1 << 20);
		}
		tear_down(&w);
	}
}

/* Many small wants, more threads than rooms. */
static void many(const struct device_load_suite *s)
{
	enum { WANTS = 48, LEN = 50 << 10, BYTES = WANTS * LEN };
	struct kind k = { "codec=none", BYTES, 4096, 2, 50 };
	struct vv_device_buffers buffers = { 0 };
	struct vv_device_load_want load[WANTS];
	struct vv_extents rest[WANTS] = { 0 };
	struct vv_want want[WANTS];
	uint8_t *there = s->get(BYTES), *is = malloc(BYTES);
	struct vv_pool *pool;
	struct world w;

	lay_down(&w, s, &k);
	CHECK(there && is);
	ok(vv_pool_new(14, &pool));
	for (size_t i = 0; i < WANTS; i++) {
		want[i] = (struct vv_want){ runs(&w), i * LEN, LEN, there + i * LEN, NULL };
		load[i] = (struct vv_device_load_want){ &want[i], NULL, &rest[i] };
	}
	vv_device_buffers_begin(&buffers, pool, s->space, 0, w.memory, BYTES);
	ok(vv_device_load_read(&w.lineage, pool, &buffers, load, WANTS));
	vv_device_buffers_finish_close(&buffers);
	for (size_t i = 0; i < WANTS; i++) {
		ok(read_left(&w, &want[i], &rest[i]));
		vv_payload_extents_fini(&rest[i]);
	}
	ok(s->space->copy_out(is, there, BYTES));
	CHECK(memcmp(is, w.p, BYTES) == 0);
	vv_pool_free(pool);
	s->put(there);
	free(is);
	tear_down(&w);
}

/* No room at all can be made, and not for lack of memory. */
static void closed(const struct device_load_suite *s)
{
	struct kind k = { "codec=none", 2 << 20, 4096, 1, 0 };
	uint64_t left;
	struct world w;

	lay_down(&w, s, &k);
	s->fail_open(true);
	CHECK_EQ(read_table(&w, runs(&w), 0, w.n, w.p, &left), VV_EIO);
	CHECK(strstr(varve_last_error(), "no room"));
	s->fail_open(false);
	tear_down(&w);
}

/* A program that has written nothing. */
static void zeros(const struct device_load_suite *s)
{
	struct kind k = { "codec=none", (2 << 20) + 9, 4096, 1, 0 };
	struct vv_runs none = { 0 };
	uint64_t left;
	struct world w;

	lay_down(&w, s, &k);
	memset(w.p, 0, w.n);
	ok(vv_run_add(&none, (struct vv_run){ 0, w.n, 0, 0 }));
	ok(read_table(&w, &none, 0, w.n, w.p, &left));
	CHECK_EQ(left, 0);
	vv_run_fini(&none);
	tear_down(&w);
}

/* ---- tables that nobody has laid down ------------------------------------------------------------------------------------------------ */

/* The whole payload of a layer. */
static uint8_t *payload_of(const struct world *w, uint64_t layer, uint64_t *len)
{
	struct vv_layer_file *f = NULL;
	uint8_t *all;

	ok(vv_layer_file_open(&w->lineage, layer, VV_LAYER_FILE_BLOCKS, &f));
	*len = f->head.payload;
	CHECK((all = calloc(1, *len)));
	for (size_t i = 0; i < f->blocks.n; i++) {
		uint8_t *scratch = malloc(f->blocks.v[i].stored_len);

		CHECK_EQ(f->blocks.v[i].n_extents, 1);
		ok(vv_layer_file_read_block(f, i, all + f->blocks.extent.v[f->blocks.v[i].extent].pos, scratch));
		free(scratch);
	}
	vv_layer_file_close(f);
	return all;
}

/* From anywhere in the layers, bytes to pages long; *hold: what they make. */
static void throw_runs(const struct world *w, uint64_t *state, uint64_t layers, struct vv_runs *out, uint8_t *hold)
{
	uint8_t *payload[8];
	uint64_t len[8], most = 1ull << (6 + gen_below(state, 12));

	CHECK(layers <= 8);
	for (uint64_t e = 0; e < layers; e++)
		payload[e] = payload_of(w, vv_run_layer(e + 1, 0), &len[e]);
	for (uint64_t at = 0, n; at < w->n; at += n) {
		uint64_t e = gen_below(state, layers), pos;

		n = 1 + gen_below(state, most);
		n = n < len[e] ? n : len[e];
		n = n < w->n - at ? n : w->n - at;
		pos = gen_below(state, len[e] - n + 1);
		if (gen_below(state, 6) == 0) {
			memset(hold + at, 0, n);
			ok(vv_run_add(out, (struct vv_run){ at, n, 0, 0 }));
		} else {
			memcpy(hold + at, payload[e] + pos, n);
			ok(vv_run_add(out, (struct vv_run){ at, n, vv_run_layer(e + 1, 0), pos }));
		}
	}
	for (uint64_t e = 0; e < layers; e++)
		free(payload[e]);
}

static void any_table(const struct device_load_suite *s)
{
	static const struct kind kind[] = {
		{ "codec=none", (1 << 20) + 333, 4096, 3, 40 },
		{ "codec=none chunk=1000 block=30000", (1 << 20) + 333, 1000, 3, 40 },
		{ CODED_FAST " block=30000", (1 << 20) + 333, 4096, 3, 40 },
	};
	uint64_t state = 7, left, fewest = UINT64_MAX;

	for (int round = 0; round < s->rounds; round++) {
		struct vv_runs table = { 0 };
		uint8_t *hold;
		struct world w;

		lay_down(&w, s, &kind[round % 3]);
		CHECK((hold = malloc(w.n)));
		throw_runs(&w, &state, kind[round % 3].epochs, &table, hold);
		ok(read_table(&w, &table, 0, w.n, hold, &left));
		fewest = left < fewest ? left : fewest;
		vv_run_fini(&table);
		free(hold);
		tear_down(&w);
	}
	CHECK(fewest == 0);
}

/* ---- when things go wrong ------------------------------------------------------------------------------------------------------------ */

static void path_of(const struct world *w, uint64_t layer, char out[2 * PLACE_MAX])
{
	char object[VV_NAME_MAX];

	vv_name_layer(object, "L", vv_run_epoch(layer), vv_run_rank(layer));
	snprintf(out, 2 * PLACE_MAX, "%s/%s", w->store, object);
}

/* Where the first byte of a run lies in its file, or some byte of its block if that is compressed, and where the layer's digests do. */
static uint64_t offset_of(const struct world *w, const struct vv_run *r, uint64_t *digests)
{
	struct vv_payload_cursor c = { 0 };
	struct vv_layer_file *f = NULL;
	uint64_t at;

	ok(vv_layer_file_open(&w->lineage, r->layer, VV_LAYER_FILE_BLOCKS, &f));
	CHECK(vv_payload_locate(&f->blocks, r->pos, &c));
	at = f->blocks.v[c.block].off + c.before + (r->pos - f->blocks.extent.v[c.extent].pos);
	if (f->blocks.v[c.block].codec)
		at = f->blocks.v[c.block].off + f->blocks.v[c.block].stored_len / 2;
	*digests = vv_layer_section(&f->frame, VV_SECTION_DIGESTS)->off;
	vv_layer_file_close(f);
	return at;
}

static void flip(const char *path, uint64_t at)
{
	size_t n;
	uint8_t *bytes = place_read(path, &n);

	CHECK(at < n);
	bytes[at] ^= 16;
	place_write(path, bytes, n);
	free(bytes);
}

/* A flipped byte of a page is found, wherever, and the host names it in its own words. Digests that are damaged are done without. */
static void damage(const struct device_load_suite *s, const struct kind *k)
{
	uint64_t at, last, digests, left;
	struct world w;

	lay_down(&w, s, k);
	for (size_t i = 0; i < runs(&w)->n; i += runs(&w)->n / 6 + 1) {
		const struct vv_run *r = &runs(&w)->v[i];
		char path[2 * PLACE_MAX], host[400];
		uint8_t *p = malloc(w.n);

		if (!r->layer) {
			free(p);
			continue;
		}
		at = offset_of(&w, r, &digests);
		last = strstr(k->options, "codec=none") ? (r->len - 1) * (i % 2) : 0;
		path_of(&w, r->layer, path);
		flip(path, at + last);
		CHECK_EQ(vv_restore_read(&w.lineage, w.pool, &(struct vv_want){ runs(&w), 0, w.n, p, NULL }, 1), VV_EDAMAGED);
		snprintf(host, sizeof(host), "%s", varve_last_error());
		CHECK_EQ(read_table(&w, runs(&w), 0, w.n, w.p, &left), VV_EDAMAGED);
		CHECK_STR(varve_last_error(), host);
		CHECK(left > 0 && left < w.n);
		flip(path, at + last);
		flip(path, digests + 20);
		CHECK(read_part(&w, 0, w.n) > 0);
		flip(path, digests + 20);
		CHECK_EQ(read_part(&w, 0, w.n), 0);
		free(p);
	}
	tear_down(&w);
}

/* A layer that is not there is an error as it always was; less memory than rooms take is none. */
static void missing(const struct device_load_suite *s)
{
	struct kind k = { "codec=none grain=128", (4 << 20) + 77, 128, 3, 500 };
	char path[2 * PLACE_MAX];
	uint64_t left;
	struct world w;

	lay_down(&w, s, &k);
	w.memory = 4 << 20; /* small rooms */
	CHECK_EQ(read_part(&w, 0, w.n), 0);
	w.memory = 1 << 20;
	CHECK_EQ(read_part(&w, 0, w.n), w.n);
	w.memory = PLENTY;
	path_of(&w, vv_run_layer(2, 0), path);
	place_remove(path);
	CHECK_EQ(read_table(&w, runs(&w), 0, w.n, w.p, &left), VV_EDAMAGED);
	CHECK(strstr(varve_last_error(), "missing"));
	tear_down(&w);
}

/* The n-th allocation from now on fails. */
static int read_short(const struct world *w, long n, bool begun, long *asked)
{
	uint8_t *there = w->suite->get(w->n);
	struct vv_extents left = { 0 };
	struct vv_device_buffers buffers = { 0 };
	struct vv_run_table t = { 0 };
	int rc;

	vv_mem_fail_at(n);
	vv_device_buffers_begin(&buffers, w->pool, w->suite->space, 0, w->memory, w->n);
	rc = begun ? vv_run_table_load(&w->lineage, w->epochs, 0, &(struct vv_run_table_how){ .pool = w->pool, .runs = VV_RUN_TABLE_BEGUN }, &t) : 0;
	if (rc == 0)
		rc = vv_device_load_read(&w->lineage, w->pool, &buffers, &(struct vv_device_load_want){ &(struct vv_want){ runs(w), 0, w->n, there, NULL },
					begun ? t.region[vv_run_table_find(&t, "p")].unmerged : NULL, &left }, 1);
	vv_device_buffers_finish_close(&buffers);
	if (rc == 0)
		rc = vv_run_table_merge(&t, w->pool);
	*asked = vv_mem_asked();
	vv_mem_fail_at(0);
	vv_payload_extents_fini(&left);
	vv_run_table_fini(&t);
	w->suite->put(there);
	return rc;
}

/* Whichever allocation of the host's fails: that is said, or done without. */
static void want_of_memory(const struct device_load_suite *s)
{
	struct kind k = { "codec=none grain=128", (1 << 20) + 77, 128, 3, 500 };
	struct world w;

	lay_down(&w, s, &k);
	for (int begun = 0; begun < 2; begun++)
		for (long n = 1, asked = n; asked >= n; n += 1 + n / 16) {
			int rc = read_short(&w, n, begun, &asked);

			CHECK(rc == 0 || rc == VV_ENOMEM);
		}
	tear_down(&w);
}

static void gone(const struct device_load_suite *s)
{
	struct kind k = { "codec=none grain=128", (4 << 20) + 77, 128, 3, 500 };
	uint64_t left;
	struct world w;

	lay_down(&w, s, &k);
	w.settled = true; /* which of two fails is not known */
	for (long n = 1; n <= 4; n++) {
		s->fail_at(n);
		CHECK_EQ(read_begun(&w, 0, w.n, w.p, &left), VV_EIO);
		s->fail_at(n);
		CHECK_EQ(read_table(&w, runs(&w), 0, w.n, w.p, &left), VV_EIO);
		CHECK(strstr(varve_last_error(), "device"));
		s->fail_at(0);
		CHECK_EQ(read_part(&w, 0, w.n), 0);
	}
	tear_down(&w);
}

/* What finds no room is left to the host. */
static void no_rooms(const struct device_load_suite *s)
{
	struct kind k = { "codec=none grain=128", (8 << 20) + 77, 128, 3, 500 };
	struct world w;

	lay_down(&w, s, &k);
	for (unsigned n = 1; n <= 4; n++) {
		uint64_t left;

		w.settled = true;
		s->fail_rooms(n);
		ok(read_begun(&w, 0, w.n, w.p, &left));
		left = read_part(&w, 0, w.n);
		s->fail_rooms(0);
		w.settled = false;
		CHECK(n > 1 || left == w.n); /* a half may find a room where the whole found none */
		CHECK_EQ(read_part(&w, 0, w.n), 0);
	}
	tear_down(&w);
}

void device_load_suite_run(const struct device_load_suite *s)
{
	kinds(s);
	many(s);
	zeros(s);
	any_table(s);
	damage(s, &(struct kind){ "codec=none", (5 << 20) + 77, 4096, 4, 100 });
	damage(s, &(struct kind){ CODED_FAST " block=30000", (5 << 20) + 77, 4096, 4, 100 });
	damage(s, &(struct kind){ "codec=none grain=128 chunk=1000 block=100000", (5 << 20) + 77, 128, 3, 100 });
	missing(s);
	want_of_memory(s);
	if (s->fail_at)
		gone(s);
	if (s->fail_rooms)
		no_rooms(s);
	if (s->fail_open)
		closed(s);
}
