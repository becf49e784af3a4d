// ctest: TIMEOUT 120
// Small HDF5 files, of the oldest and the newest format of their library, two of them with links, maps and rare filters: what is in them; and what becomes of them when any byte is another, or
// they end anywhere, or memory or the disk fails: never a crash, a read outside of the file, or an outline out of order.
#include "base/err.h"
#include "base/mem.h"
#include "reader/filter.h"
#include "reader/resolve.h"
#include "reader/virtual.h"
#include "support/gen.h"
#include "support/place.h"
#include "vv_test.h"

struct file {
	uint8_t *p;
	size_t n;
	uint64_t read;   // bytes, in all
	long fail_after; // reads, if not 0
};

static int read_file(void *arg, uint64_t at, void *to, size_t n)
{
	struct file *f = arg;

	CHECK(at <= f->n && n <= f->n - at);
	if (f->fail_after && --f->fail_after == 0)
		return vv_err_set(VV_EIO, "no more");
	memcpy(to, f->p + at, n);
	f->read += n;
	return 0;
}

static int outline(struct file *f, struct vv_outline *o)
{
	struct vv_reader_file r = { .name = "file", .len = f->n, .read = read_file, .arg = f };

	f->read = 0;
	return vv_reader_outline(&r, o);
}

static uint64_t chunk_bytes(const struct vv_variable *v)
{
	uint64_t len = v->width;

	for (unsigned i = 0; i < v->ndim; i++)
		if (__builtin_mul_overflow(len, v->chunk[i], &len))
			return UINT64_MAX;
	return len;
}

static void undo(const struct file *f, const struct vv_variable *v, const struct vv_outline_piece *p)
{
	uint64_t len = chunk_bytes(v);
	uint8_t *raw, *to;

	if (!p->coded || len == 0 || len > 1 << 16)
		return;
	raw = malloc(p->len); // of exactly its size: a sanitizer sees the first byte beyond it
	to = malloc(len);
	CHECK(raw && to);
	memcpy(raw, f->p + p->at, p->len);
	(void)vv_filter_undo(v, p->mask, raw, p->len, to, len);
	free(raw);
	free(to);
}

static uint64_t array_bytes(const struct vv_variable *v)
{
	uint64_t len = v->width;

	for (unsigned i = 0; i < v->ndim; i++)
		if (__builtin_mul_overflow(len, v->dim[i], &len))
			return UINT64_MAX;
	return len;
}

// Arrays of exactly their size.
static void follow_map(const struct vv_outline *o, const struct vv_reader_map *m)
{
	const struct vv_variable *v = &o->variable[m->variable];
	char path[VV_RESOLVE_PATH];

	CHECK(m->variable < o->n_variables && v->made);
	if (vv_resolve_path(o, m->source, path))
		return;
	for (size_t i = 0; i < o->n_variables; i++) {
		uint64_t from = array_bytes(&o->variable[i]), to = array_bytes(v);
		uint8_t *a, *b;

		if (strcmp(o->variable[i].name, path) || from > 1 << 16 || to > 1 << 16)
			continue;
		a = calloc(from + !from, 1);
		b = malloc(to + !to);
		CHECK(a && b);
		(void)vv_virtual_copy(m, &o->variable[i], a, v, b);
		free(a);
		free(b);
	}
}

static void must_be_in_order(struct file *f)
{
	struct vv_outline o = { 0 };
	uint64_t end = 0;

	CHECK_EQ(outline(f, &o), 0);
	CHECK(f->read <= 16 * f->n + (32 << 20));
	for (size_t i = 0; i < o.n_variables; i++)
		CHECK(o.variable[i].width >= 1 && o.variable[i].ndim <= VV_MAX_DIMS && o.variable[i].type < VV_TYPES);
	for (size_t i = 0; i < o.n_pieces; i++) {
		const struct vv_outline_piece *p = &o.piece[i];

		CHECK(p->len && p->at >= end && p->at <= f->n && p->len <= f->n - p->at && p->variable < o.n_variables);
		end = p->at + p->len;
		undo(f, &o.variable[p->variable], p);
	}
	for (size_t i = 0; i < o.n_links; i++) {
		char path[VV_RESOLVE_PATH];

		(void)vv_resolve_path(&o, o.link[i].name, path);
	}
	for (size_t i = 0; i < o.n_maps; i++)
		follow_map(&o, &o.map[i]);
	vv_reader_outline_fini(&o);
}

static const struct vv_variable *find(const struct vv_outline *o, const char *name)
{
	for (size_t i = 0; i < o->n_variables; i++)
		if (strcmp(o->variable[i].name, name) == 0)
			return &o->variable[i];
	fprintf(stderr, "no %s\n", name);
	exit(1);
}

static const struct vv_outline_piece *piece_of(const struct vv_outline *o, const struct vv_variable *v, uint64_t ordinal)
{
	for (size_t i = 0; i < o->n_pieces; i++)
		if (&o->variable[o->piece[i].variable] == v && o->piece[i].ordinal == ordinal)
			return &o->piece[i];
	fprintf(stderr, "no chunk %d of %s\n", (int)ordinal, v->name);
	exit(1);
}

static void check_numbers(const struct file *f, const struct vv_outline *o)
{
	const struct vv_variable *a = find(o, "/a"), *t = find(o, "/g/t");
	double v[6];

	CHECK(a->type == VV_TYPE_F64 && a->ndim == 1 && a->dim[0] == 6 && !a->chunked && !a->partial);
	CHECK_EQ(piece_of(o, a, 0)->len, sizeof(v));
	memcpy(v, f->p + piece_of(o, a, 0)->at, sizeof(v));
	for (int i = 0; i < 6; i++)
		CHECK(v[i] == 1.25 * i + 3);
	CHECK(t->chunked && t->chunk[0] == 2 && t->n_filters == 0);
	for (int i = 0; i < 3; i++) {
		memcpy(v, f->p + piece_of(o, t, (uint64_t)i)->at, 16);
		CHECK(v[0] == 2.5 * i + 3 && v[1] == 2.5 * i + 4.25);
	}
}

static void check_coded(const struct file *f, const struct vv_outline *o)
{
	const struct vv_variable *b = find(o, "/g/b");
	const struct vv_outline_piece *p = piece_of(o, b, 3); // rows 2 and 3, column 3 and what is beyond the edge
	uint8_t v[12];
	int rc;

	CHECK(b->type == VV_TYPE_I16 && b->swapped && b->ndim == 2 && b->dim[0] == 4 && b->dim[1] == 4 && b->chunk[1] == 3);
	CHECK(b->n_filters == 2 && b->filter[0].id == VV_FILTER_SHUFFLE && b->filter[0].value[0] == 2 && b->filter[1].id == VV_FILTER_DEFLATE);
	CHECK(p->coded && p->mask == 0);
	rc = vv_filter_undo(b, p->mask, f->p + p->at, p->len, v, sizeof(v));
	if (rc == VV_ENOTSUP)
		return; // no zlib in this build
	CHECK_EQ(rc, 0);
	CHECK(v[0] == 0 && v[1] == (int)(11 * 1.25 + 3) && v[6] == 0 && v[7] == (int)(15 * 1.25 + 3) && v[2] == 0 && v[3] == 0);
}

static void check_content(struct file *f)
{
	static const uint8_t one_and_a_half[4] = { 0, 0, 0xc0, 0x3f };
	struct vv_outline o = { 0 };
	const struct vv_variable *v;

	CHECK_EQ(outline(f, &o), 0);
	CHECK_STR(o.format, "hdf5");
	CHECK_EQ(o.n_variables, 6); // "/link" leads to what is there already
	check_numbers(f, &o);
	check_coded(f, &o);
	CHECK_EQ(find(&o, "/g/c")->type, VV_TYPE_C64);
	v = find(&o, "/g/f");
	CHECK(v->n_fill == 4 && memcmp(v->fill, one_and_a_half, 4) == 0);
	v = find(&o, "/r");
	CHECK(v->type == VV_TYPE_BYTES && v->width == 9 && v->dim[0] == 3);
	vv_reader_outline_fini(&o);
}

static void check_views(struct file *f)
{
	static const char *const links[] = { "/second", "second", "soft", "also/x", "/g/up/g//up/soft" };
	int32_t x[12], got[12];
	struct vv_outline o = { 0 };
	char path[VV_RESOLVE_PATH], first[VV_RESOLVE_PATH];
	const struct vv_variable *source;

	CHECK_EQ(outline(f, &o), 0);
	CHECK_EQ(vv_resolve_path(&o, "/g/x", first), 0); // the name that was found first
	source = find(&o, first);
	for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++) {
		CHECK_EQ(vv_resolve_path(&o, links[i], path), 0);
		CHECK_STR(path, first);
	}
	CHECK_EQ(vv_resolve_path(&o, "g/round", path), VV_ENOENT);
	CHECK_EQ(vv_resolve_path(&o, "out", path), VV_ENOENT);
	CHECK_EQ(o.n_maps, 3);
	for (int i = 0; i < 12; i++) {
		x[i] = i;
		got[i] = -1;
	}
	for (size_t i = 0; i < o.n_maps; i++)
		if (&o.variable[o.map[i].variable] == find(&o, "/v"))
			CHECK_EQ(vv_virtual_copy(&o.map[i], source, (uint8_t *)x, find(&o, "/v"), (uint8_t *)got), 0);
	CHECK(memcmp(got, (int32_t[]){ 4, 5, 6, 7, 8, -1, 9, -1 }, 32) == 0);
	CHECK(find(&o, "/n")->odd.type == VV_TYPE_I16 && find(&o, "/n")->odd.bits == 9 && find(&o, "/n")->odd.at == 3);
	vv_reader_outline_fini(&o);
}

static void flip_all(struct file *f, size_t step)
{
	static const uint8_t patterns[] = { 0xff, 0x01, 0x80 };

	for (size_t at = 0; at < f->n; at += step)
		for (size_t k = 0; k < sizeof(patterns); k++) {
			f->p[at] ^= patterns[k];
			must_be_in_order(f);
			f->p[at] ^= patterns[k];
		}
}

// The bytes go with it: a buffer of exactly what is left.
static void truncate_all(const struct file *f)
{
	for (size_t n = 0; n < f->n; n += n < 512 ? 1 : 3) {
		struct file part = { .p = malloc(n ? n : 1), .n = n };

		CHECK(part.p);
		memcpy(part.p, f->p, n);
		must_be_in_order(&part);
		free(part.p);
	}
}

// Several places at once, with values that such places may have: small numbers, addresses inside the file, the end of numbers.
static void scramble(const struct file *f, uint64_t seed)
{
	struct file bad = { .p = malloc(f->n), .n = f->n };

	CHECK(bad.p);
	for (int round = 0; round < 4000; round++) {
		memcpy(bad.p, f->p, f->n);
		for (int i = 0; i < 1 + round % 6; i++) {
			uint64_t r = gen_next(&seed), at = r % (f->n - 8), value = gen_next(&seed);

			value = r >> 40 & 1 ? value % f->n : r >> 41 & 1 ? value % 64 : UINT64_MAX << (value % 64);
			memcpy(bad.p + at, &value, (size_t)1 << (r >> 48) % 4);
		}
		must_be_in_order(&bad);
	}
	free(bad.p);
}

// Trees whose nodes lead to themselves, of all levels.
static void tie_trees(struct file *f)
{
	for (size_t at = 0; at + 64 < f->n; at++) {
		uint8_t keep[64];

		if (memcmp(f->p + at, "TREE", 4))
			continue;
		memcpy(keep, f->p + at, sizeof(keep));
		for (int level = 0; level < 3; level++) {
			uint64_t self = at;

			f->p[at + 5] = (uint8_t)level;
			for (size_t child = 24; child + 8 <= sizeof(keep); child += 8)
				memcpy(f->p + at + child, &self, 8);
			must_be_in_order(f);
		}
		memcpy(f->p + at, keep, sizeof(keep));
	}
}

static void fail_everywhere(struct file *f)
{
	struct vv_outline o = { 0 };
	int rc;

	for (long n = 1;; n++) {
		vv_mem_fail_at(n);
		rc = outline(f, &o);
		if (vv_mem_asked() < n)
			break;
		vv_mem_fail_at(0);
		CHECK_EQ(rc, VV_ENOMEM);
		CHECK_EQ(o.n_variables, 0);
	}
	vv_mem_fail_at(0);
	CHECK_EQ(rc, 0);
	vv_reader_outline_fini(&o);
	f->fail_after = 2; // the first one is the caller's, to tell the format
	CHECK_EQ(outline(f, &o), VV_EIO);
	f->fail_after = 0;
}

int main(void)
{
	static const struct {
		const char *name;
		void (*check)(struct file *f);
		size_t step;
	} files[] = { { "earliest.h5", check_content, 1 }, { "latest.h5", check_content, 1 }, { "views_old.h5", check_views, 11 }, { "views_new.h5", check_views, 11 } };

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		const char *source = getenv("VARVE_SOURCE");
		char path[PLACE_MAX];
		struct file f = { 0 };

		if (!source)
			SKIP("VARVE_SOURCE, where the files are, is not set");
		snprintf(path, sizeof(path), "%s/tests/reader/data/%s", source, files[i].name);
		f.p = place_read(path, &f.n);
		files[i].check(&f);
		flip_all(&f, files[i].step);
		truncate_all(&f);
		scramble(&f, i + 1);
		tie_trees(&f);
		fail_everywhere(&f);
		files[i].check(&f);
		free(f.p);
	}
	return 0;
}
