// ctest: TIMEOUT 120 COST 3
/* Restarts from the page cache, in the order of the destination: regions of several stripes, pieces that lie across their borders,
 * parts of chunks, more layers than are open at once; and files that are damaged, or cut short while they are mapped. */
#include "base/err.h"
#include "base/mem.h"
#include "base/pool.h"
#include "core/format/name.h"
#include "engine/lineage/run_table.h"
#include "engine/read/copy_mapped.h"
#include "support/coded.h"
#include "support/gen.h"
#include "support/place.h"
#include "support/settle.h"
#include "vv_test.h"
#include <fcntl.h>
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
	struct vv_run_table table;
	struct vv_pool *pool;
};

/* A page gets new content; in grains also a few of them, which may become zero or what is elsewhere. The first grains, one for each
 * epoch, stay. */
static void change(struct world *w, uint64_t *state, size_t grain)
{
	size_t unit = grain ? grain : 4096, first = grain ? (size_t)w->epochs : 0;
	size_t at = (first + (size_t)gen_below(state, w->n / unit - first)) * unit;
	size_t len = grain ? (1 + (size_t)gen_below(state, 4)) * unit : unit, left = w->n - at;

	len = len < left ? len : left;
	if (!grain || gen_below(state, 3))
		gen_bytes(state, w->p + at, len);
	else if (gen_below(state, 2))
		memset(w->p + at, 0, len);
	else
		memmove(w->p + at, w->p + (size_t)gen_below(state, (w->n - len) / unit) * unit, len);
}

/* On all threads the table is the same. */
static void check_table(const struct world *w)
{
	struct vv_run_table t = { 0 };

	ok(vv_run_table_load(&w->lineage, w->epochs, 0, &(struct vv_run_table_how){ .pool = w->pool }, &t));
	CHECK_EQ(t.n, w->table.n);
	for (size_t i = 0; i < t.n; i++) {
		const struct vv_runs *a = &t.region[i].runs, *b = &w->table.region[i].runs;

		CHECK_EQ(a->n, b->n);
		CHECK(memcmp(a->v, b->v, a->n * sizeof(*a->v)) == 0);
	}
	vv_run_table_fini(&t);
}

/* A first epoch, then others with some changes each; a small region before the large one, so that its pieces begin anywhere in
 * a stripe. */
static void lay_down(struct world *w, const char *name, const char *options, size_t n, uint64_t epochs, size_t changed)
{
	const char *grains = strstr(options, "grain=");
	size_t grain = grains ? (size_t)atoi(grains + strlen("grain=")) : 0;
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
		for (size_t i = 0; e > 1 && i < changed; i++)
			change(w, &state, grain);
		if (e > 1 && grain) /* so that the first layer is the last to be met */
			gen_bytes(&state, w->p + (e - 2) * grain, grain);
		ok(settle_checkpoint(v));
	}
	ok(varve_close(v));
	ok(vv_store_open(w->store, &opt, &w->s));
	ok(vv_catalog_open(w->s, "L", false, &w->lineage));
	ok(vv_run_table_load(&w->lineage, epochs, 0, NULL, &w->table));
	ok(vv_pool_new(2, &w->pool));
	check_table(w);
}

/* Files of the store that are mapped. */
static size_t mapped(const struct world *w)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[4 * PLACE_MAX];
	size_t n = 0;

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, w->store) != NULL;
	fclose(f);
	return n;
}

/* Mappings are taken down behind the reader's back, but before the pool has ended. */
static void tear_down(struct world *w)
{
	vv_pool_free(w->pool);
	CHECK_EQ(mapped(w), 0);
	vv_run_table_fini(&w->table);
	vv_store_close(w->s);
	place_remove(w->store);
	free(w->p);
}

/* Whichever allocation fails, on whatever thread: that is said, or done without. */
static void table_no_memory(void)
{
	struct world w;

	lay_down(&w, "memory", "codec=none grain=128", 9 << 20, 4, 2000);
	for (long k = 1, asked = k; asked >= k; k += 1 + k / 16) {
		struct vv_run_table t = { 0 };
		int rc;

		vv_mem_fail_at(k);
		rc = vv_run_table_load(&w.lineage, w.epochs, 0, &(struct vv_run_table_how){ .pool = w.pool }, &t);
		asked = vv_mem_asked();
		vv_mem_fail_at(0);
		CHECK(rc == 0 || (rc == VV_ENOMEM && strstr(varve_last_error(), "out of memory")));
		vv_run_table_fini(&t);
	}
	tear_down(&w);
}

static const struct vv_runs *runs(const struct world *w)
{
	return &w->table.region[vv_run_table_find(&w->table, "p")].runs;
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

/* ---- tables that nobody has laid down ----------------------------------------------------------------------------------------- */

/* The whole payload of a layer. */
static uint8_t *payload_of(const struct world *w, uint64_t layer, uint64_t *len)
{
	struct vv_layer_file *f = NULL;
	uint8_t *all;

	ok(vv_layer_file_open(&w->lineage, layer, VV_LAYER_FILE_BLOCKS, &f));
	*len = f->head.payload;
	CHECK((all = calloc(1, *len)));
	for (size_t i = 0; i < f->blocks.n; i++) {
		const struct vv_block *b = &f->blocks.v[i];
		uint8_t *raw = malloc(b->raw_len), *at = raw;

		CHECK(raw);
		ok(vv_layer_file_read_block(f, i, raw, NULL));
		for (size_t x = b->extent; x < b->extent + b->n_extents; at += f->blocks.extent.v[x++].len)
			memcpy(all + f->blocks.extent.v[x].pos, at, f->blocks.extent.v[x].len);
		free(raw);
	}
	vv_layer_file_close(f);
	return all;
}

/* Runs from anywhere in a layer, up to `most` bytes each, with as much between them; zeros now and then. */
static void throw_runs(uint64_t *state, uint64_t layer, uint64_t payload, uint64_t n, uint64_t most, uint64_t between, uint64_t unit,
		       struct vv_runs *out)
{
	for (uint64_t at = 0, len; at < n; at += len + gen_below(state, between + 1) / unit * unit) {
		uint64_t room = n - at < payload ? n - at : payload;

		len = (1 + gen_below(state, most / unit)) * unit;
		len = len < room ? len : room;
		if (gen_below(state, 8) == 0)
			CHECK_EQ(vv_run_add(out, (struct vv_run){ at, len, 0, 0 }), 0);
		else
			CHECK_EQ(vv_run_add(out, (struct vv_run){ at, len, layer, gen_below(state, (payload - len) / unit + 1) * unit }), 0);
	}
}

/* Long runs with short ones over them, in no order that a program would make; what no run names is not touched. */
static void any_table(void)
{
	enum { EPOCHS = 4, LEN = 9 << 20, ROUNDS = 30, TABLES = 5 };
	uint8_t *payload[EPOCHS], *to = malloc(LEN), *want = malloc(LEN);
	uint64_t len[EPOCHS], state = 11;
	struct world w;

	CHECK(to && want);
	lay_down(&w, "any", "codec=none", LEN, EPOCHS, 400);
	for (uint64_t e = 0; e < EPOCHS; e++)
		payload[e] = payload_of(&w, vv_run_layer(e + 1, 0), &len[e]);
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t n = 1 + gen_below(&state, LEN), unit = round % 3 ? 128 : 1, epoch = gen_below(&state, EPOCHS);
		struct vv_runs table = { 0 };

		throw_runs(&state, vv_run_layer(epoch + 1, 0), len[epoch], n, round % 4 ? 100000 : 400000, round % 2 ? 5000 : 0, unit, &table);
		for (int i = 1; i < TABLES; i++) {
			struct vv_runs above = { 0 }, both = { 0 };

			epoch = gen_below(&state, EPOCHS);
			throw_runs(&state, vv_run_layer(epoch + 1, 0), len[epoch], n, 300, 20000 >> gen_below(&state, 6), unit, &above);
			CHECK_EQ(vv_run_overlay(&above, &table, &both), 0);
			vv_run_fini(&above);
			vv_run_fini(&table);
			table = both;
		}
		memset(want, 0xa5, n);
		for (size_t i = 0; i < table.n; i++) {
			const struct vv_run *r = &table.v[i];

			if (r->layer)
				memcpy(want + r->at, payload[vv_run_epoch(r->layer) - 1] + r->pos, r->len);
			else
				memset(want + r->at, 0, r->len);
		}
		memset(to, 0xa5, n);
		ok(vv_restore_read(&w.lineage, w.pool, &(struct vv_want){ &table, 0, n, to, NULL }, 1));
		CHECK(memcmp(to, want, n) == 0);
		vv_run_fini(&table);
	}
	for (uint64_t e = 0; e < EPOCHS; e++)
		free(payload[e]);
	tear_down(&w);
	free(to);
	free(want);
}

/* Neither single chunks nor parts of them are left to those who read in the plain way, and the layers are lists of few lanes. */
static void nothing_left(const char *name, const char *options, size_t changed)
{
	struct vv_open_layers *warm = calloc(1, sizeof(*warm));
	struct vv_pending_list left = { 0 };
	uint64_t got = 0;
	struct world w;
	uint8_t *to;

	lay_down(&w, name, options, (8 << 20) + 4321, 6, changed);
	CHECK(warm && (to = malloc(w.n)));
	memset(to, 0xa5, w.n);
	warm->all = true;
	for (warm->n = 0; warm->n < w.epochs; warm->n++)
		ok(vv_open_layers_open(warm, warm->n, &w.lineage, NULL, vv_run_layer(warm->n + 1, 0), 10000, 0));
	vv_open_layers_build_index(warm);
	for (size_t i = 0; i < warm->n; i++)
		CHECK(!warm->window[i] || (warm->n_extents[i] > 0 && warm->n_extents[i] <= 4));
	ok(vv_copy_mapped_read(warm, &(struct vv_want){ runs(&w), 0, w.n, to, "p" }, 0, w.n, true, &left, &got));
	for (size_t i = 0; i < left.n; i++)
		CHECK(!warm->window[vv_open_layers_find(warm, left.v[i].layer)]); /* small files are not mapped, nor those of others */
	CHECK(left.n || memcmp(to, w.p, w.n) == 0);
	for (size_t i = 0; i < warm->n; i++)
		vv_open_layers_close(warm, i);
	free(warm);
	vv_mem_free(left.v);
	free(to);
	tear_down(&w);
}

/* A flipped byte in a page that is used is found, and named; in one that is not, nobody minds. */
static void damage(const char *name, const char *options, size_t changed)
{
	struct world w;
	char path[2 * PLACE_MAX];
	struct vv_layer_file *f = NULL;
	size_t n;
	uint8_t *bytes;

	lay_down(&w, name, options, (9 << 20) + 77, 6, changed);
	for (size_t i = 0, done = 0; i < runs(&w)->n && done < 8; i += runs(&w)->n / 9 + 1) {
		const struct vv_run *r = &runs(&w)->v[i];
		struct vv_payload_cursor c = { 0 };
		uint64_t at;

		if (!r->layer)
			continue;
		ok(vv_layer_file_open(&w.lineage, r->layer, VV_LAYER_FILE_BLOCKS, &f));
		CHECK(vv_payload_locate(&f->blocks, r->pos, &c));
		at = f->blocks.v[c.block].off + c.before + (r->pos - f->blocks.extent.v[c.extent].pos);
		vv_layer_file_close(f);
		path_of(&w, r->layer, path);
		bytes = place_read(path, &n);
		bytes[at] ^= 16;
		place_write(path, bytes, n);
		CHECK_EQ(read_part(&w, 0, w.n), VV_EDAMAGED);
		CHECK(strstr(varve_last_error(), "checksum mismatch"));
		bytes[at] ^= 16;
		place_write(path, bytes, n);
		free(bytes);
		ok(read_part(&w, 0, w.n));
		done++;
	}
	tear_down(&w);
}

/* Digests that are damaged, where they lie or in what they say they are of: what was stored is whole, so nobody minds. */
static void damaged_digests(const char *name, const char *options, size_t changed)
{
	enum { TRIES = 60 };
	uint64_t state = 5;
	struct world w;

	lay_down(&w, name, options, (3 << 20) + 77, 3, changed);
	for (int i = 0; i < TRIES; i++) {
		uint64_t layer = vv_run_layer(1 + gen_below(&state, 3), 0), at;
		struct vv_layer_file *f = NULL;
		const struct vv_section *s;
		char path[2 * PLACE_MAX];
		uint8_t *bytes;
		size_t n;

		ok(vv_layer_file_open(&w.lineage, layer, 0, &f));
		s = vv_layer_section(&f->frame, VV_SECTION_DIGESTS);
		at = s->off + gen_below(&state, i % 2 && s->len > 16 ? 16 : s->len);
		vv_layer_file_close(f);
		path_of(&w, layer, path);
		bytes = place_read(path, &n);
		bytes[at] ^= (uint8_t)(1 + gen_below(&state, 255));
		place_write(path, bytes, n);
		free(bytes);
		ok(read_part(&w, 0, w.n));
	}
	tear_down(&w);
}

struct spot { /* of a chunk: where in the file its bytes are, and its digest */
	uint64_t bytes, digest;
};

static struct spot spot_of(const struct vv_layer_file *f, uint64_t pos)
{
	const struct vv_section *s = vv_layer_section(&f->frame, VV_SECTION_DIGESTS);
	const struct vv_digest_group *g = &f->digests.group[vv_payload_digest_group(&f->digests, pos)];
	struct vv_payload_cursor c = { 0 };

	CHECK(vv_payload_locate(&f->blocks, pos, &c));
	return (struct spot){ f->blocks.v[c.block].off + c.before + (pos - f->blocks.extent.v[c.extent].pos),
			      s->off + s->len - (f->digests.n - g->digest - (pos - g->pos) / g->chunk) * sizeof(struct vv_digest) };
}

static void swap(uint8_t *a, uint8_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint8_t x = a[i];

		a[i] = b[i];
		b[i] = x;
	}
}

/* Of the chunks of whole pages that the newest epoch has in the layer, two. */
static void find_two(const struct world *w, const struct vv_layer_file *f, uint64_t page, struct spot out[2])
{
	size_t found = 0;

	for (size_t i = 0; i < runs(w)->n && found < 2; i++) {
		const struct vv_run *r = &runs(w)->v[i];
		const struct vv_digest_group *g;

		if (r->layer != f->layer || r->len < page)
			continue;
		g = &f->digests.group[vv_payload_digest_group(&f->digests, r->pos)];
		if (g->chunk == page && (r->pos - g->pos) % page == 0)
			out[found++] = spot_of(f, r->pos);
	}
	CHECK_EQ(found, 2);
}

/* Two pages of a layer have changed places, and so have their digests: each fits its page. */
static void swapped(void)
{
	enum { PAGE = 4096 };
	struct vv_layer_file *f = NULL;
	struct spot at[2];
	struct world w;
	char path[2 * PLACE_MAX];
	uint8_t *bytes;
	size_t n;

	lay_down(&w, "swapped", "codec=none", 9 << 20, 4, 400);
	ok(vv_layer_file_open(&w.lineage, vv_run_layer(1, 0), VV_LAYER_FILE_BLOCKS | VV_LAYER_FILE_DIGESTS, &f));
	find_two(&w, f, PAGE, at);
	path_of(&w, f->layer, path);
	vv_layer_file_close(f);
	bytes = place_read(path, &n);
	swap(bytes + at[0].bytes, bytes + at[1].bytes, PAGE);
	swap(bytes + at[0].digest, bytes + at[1].digest, sizeof(struct vv_digest));
	place_write(path, bytes, n);
	free(bytes);
	CHECK_EQ(read_part(&w, 0, w.n), VV_EDAMAGED);
	tear_down(&w);
}

/* What was found good and copied later may be something else by then. A file that only loses its name is what it was. */
static void changed_meanwhile(void)
{
	struct vv_open_layers *warm = calloc(1, sizeof(*warm));
	char path[2 * PLACE_MAX], other[2 * PLACE_MAX + 8];
	struct world w;
	uint8_t byte;
	int fd;

	lay_down(&w, "changed", "codec=none", 5 << 20, 1, 0);
	CHECK(warm);
	warm->n = 1;
	ok(vv_open_layers_open(warm, 0, &w.lineage, NULL, vv_run_layer(1, 0), 1000, 0));
	path_of(&w, vv_run_layer(1, 0), path);
	snprintf(other, sizeof(other), "%s.other", path);
	CHECK_EQ(vv_open_layers_check(warm), 0);
	CHECK_EQ(link(path, other), 0);
	CHECK_EQ(vv_open_layers_check(warm), 0);
	CHECK_EQ(unlink(other), 0);
	vv_open_layers_close(warm, 0);
	ok(vv_open_layers_open(warm, 0, &w.lineage, NULL, vv_run_layer(1, 0), 1000, 0));
	CHECK((fd = open(path, O_RDWR)) >= 0);
	CHECK_EQ(pread(fd, &byte, 1, 100000), 1);
	CHECK_EQ(pwrite(fd, &byte, 1, 100000), 1); /* though it is the same */
	close(fd);
	if (warm->file[0]->get->map) {
		CHECK_EQ(vv_open_layers_check(warm), VV_EIO);
		CHECK(strstr(varve_last_error(), "was changed while it was being read"));
	}
	vv_open_layers_close(warm, 0);
	ok(read_part(&w, 0, w.n));
	free(warm);
	tear_down(&w);
}

/* Cut short behind our back: what cannot be read from the mapping is left, and reading it says why. */
static void cut_short(void)
{
	struct vv_open_layers *warm = calloc(1, sizeof(*warm));
	struct vv_pending_list left = { 0 };
	uint64_t got;
	struct world w;
	char path[2 * PLACE_MAX];
	uint8_t *to;

	lay_down(&w, "cut", "codec=none", 5 << 20, 1, 0);
	CHECK(warm && (to = malloc(w.n)));
	warm->n = 1;
	ok(vv_open_layers_open(warm, 0, &w.lineage, NULL, vv_run_layer(1, 0), 1000, 0));
	vv_open_layers_build_index(warm);
	CHECK_EQ(vv_open_layers_find(warm, vv_run_layer(1, 0)), 0);
	CHECK_EQ(vv_open_layers_find(warm, vv_run_layer(2, 0)), 1);
	path_of(&w, vv_run_layer(1, 0), path);
	if (warm->window[0]) { /* it may not be mapped, where others own the file */
		struct vv_want want = { runs(&w), 0, w.n, to, "p" };
		uint64_t sum = 0;

		ok(vv_copy_mapped_read(warm, &want, 0, w.n, true, &left, &got));
		CHECK_EQ(left.n, 0);
		CHECK(memcmp(to, w.p, w.n) == 0);
		for (uint64_t k = 0; k <= warm->file[0]->get->size >> 21; k++)
			CHECK(atomic_load(&warm->window[0][k]) <= 2);
		CHECK(warm->file[0]->digests.lent);
		CHECK_EQ(truncate(path, (off_t)vv_layer_section(&warm->file[0]->frame, VV_SECTION_DIGESTS)->off), 0);
		ok(vv_copy_mapped_read(warm, &want, 0, w.n, true, &left, &got));
		for (size_t i = 0; i < left.n; i++)
			sum += left.v[i].len;
		CHECK(sum > 0);
		left.n = sum = 0;
		CHECK_EQ(truncate(path, 2 << 20), 0);
		ok(vv_copy_mapped_read(warm, &want, 0, w.n, true, &left, &got));
		for (size_t i = 0; i < left.n; i++)
			sum += left.v[i].len;
		CHECK_EQ(sum, w.n);
	}
	CHECK(read_part(&w, 0, w.n) < 0);
	vv_open_layers_close(warm, 0);
	free(warm);
	vv_mem_free(left.v);
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
	whole_and_parts("grains", "codec=none grain=128", (20 << 20) + 77, 8, 9000);
	whole_and_parts("small", "codec=none grain=32 chunk=1000", (3 << 20) + 77, 5, 9000);
	whole_and_parts("many grains", "codec=none grain=256", (2 << 20) + 100, 150, 8);
	table_no_memory();
	any_table();
	nothing_left("left", "codec=none", 900);
	nothing_left("left odd", "codec=none chunk=1000 block=100000", 900);
	nothing_left("left grains", "codec=none grain=128", 9000);
	damage("damage", "codec=none", 400);
	damage("damaged grains", "codec=none grain=128", 1500);
	damaged_digests("damaged digests", "codec=none", 400);
	damaged_digests("damaged digests of grains", "codec=none grain=128", 1500);
	damaged_digests("damaged digests, odd", "codec=none chunk=200 block=100000", 400);
	swapped();
	changed_meanwhile();
	cut_short();
	return 0;
}
