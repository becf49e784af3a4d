/* Lists of files: round trips, every flip and cut, names that lead out of a folder, and rules that a forger breaks. */
#include "base/err.h"
#include "base/mem.h"
#include "core/format/manifest.h"
#include "support/gen.h"
#include "vv_test.h"

static struct vv_recipe some_recipe(uint64_t *state)
{
	struct vv_recipe r = vv_recipe_plain(1u << gen_below(state, 4));

	r.record = (uint16_t)(1 + gen_below(state, VV_RECIPE_PLANES / r.width));
	r.predictor = (uint8_t)gen_below(state, 2);
	r.real = (r.width == 2 || r.width == 4 || r.width == 8) && gen_below(state, 2);
	r.swapped = gen_below(state, 2);
	r.coder = (uint8_t)gen_below(state, 3);
	r.level = (int8_t)(gen_below(state, 30) - 7);
	r.window = (uint8_t)gen_below(state, 28);
	r.n_strides = (uint8_t)gen_below(state, VV_RECIPE_STRIDES + 1);
	for (unsigned i = 0; i < r.n_strides; i++)
		r.stride[i] = (uint32_t)(i ? r.stride[i - 1] : 1) + (uint32_t)gen_below(state, 1000);
	return r;
}

static void add_file(struct vv_manifest *m, uint64_t *state, const char *name)
{
	struct vv_manifest_file *f = vv_manifest_add_file(m, name);

	CHECK(f);
	f->region = (uint32_t)m->n_files;
	f->mode = (uint32_t)gen_below(state, 010000);
	f->mtime_s = (int64_t)gen_next(state);
	f->mtime_ns = (uint32_t)gen_below(state, 1000000000);
	f->format = vv_mem_strdup("hdf5");
	CHECK(f->format);
}

static void add_kind(struct vv_manifest *m, uint64_t *state, const char *key)
{
	struct vv_manifest_kind *k = vv_manifest_add_kind(m, key);

	CHECK(k);
	k->type = (uint8_t)gen_below(state, VV_TYPES);
	k->width = (uint32_t)gen_next(state);
	k->swapped = gen_below(state, 2);
	k->merged = gen_below(state, 2);
	k->ndim = (uint8_t)gen_below(state, VV_MAX_DIMS + 1);
	for (unsigned i = 0; i < k->ndim; i++)
		k->dim[i] = gen_next(state) >> gen_below(state, 64);
	k->instances = gen_below(state, 1000);
	k->raw = gen_next(state);
	k->fresh = gen_next(state);
	k->stored = gen_next(state);
	k->segment = (uint8_t)gen_below(state, VV_SEGMENTS);
	k->zero = gen_next(state);
	k->dup_time = gen_next(state);
	k->dup_space = gen_next(state);
	if (gen_below(state, 4))
		k->recipe = some_recipe(state);
	k->expected_ratio = (uint32_t)gen_next(state);
	k->basis = gen_next(state) >> 24;
	k->age = (uint8_t)gen_next(state);
}

static struct vv_manifest some_manifest(uint64_t *state, size_t files, size_t kinds)
{
	struct vv_manifest m = { .scheme = vv_mem_strdup("auto"), .effort = vv_mem_strdup("default") };
	char name[64];

	for (size_t i = 0; i < files; i++) {
		snprintf(name, sizeof(name), "run/rank%zu.h5", i);
		add_file(&m, state, name);
	}
	for (size_t i = 0; i < kinds; i++) {
		snprintf(name, sizeof(name), "Grid#/v%zu_F64LE_Array3D", i);
		add_kind(&m, state, name);
	}
	return m;
}

/* Links, folders and attributes. */
static void add_tree(struct vv_manifest *m, uint64_t *state)
{
	struct vv_manifest_entry *e = vv_manifest_add_entry(m, "run/sub/link");

	CHECK(e);
	e->type = VV_MANIFEST_LINK;
	e->mode = 0777;
	e->mtime_s = (int64_t)gen_next(state);
	e->target = vv_mem_strdup("../../other/x");
	e = vv_manifest_add_entry(m, "run/empty");
	CHECK(e && m->entry[0].target);
	e->type = VV_MANIFEST_FOLDER;
	e->mode = 01750;
	e->mtime_ns = 17;
	CHECK_EQ(vv_file_attributes_add(&e->attrs, "system.posix_acl_default", "\2\0\0\0", 4), 0);
	for (size_t i = 0; i < m->n_files; i += 2) {
		m->file[i].linked = true;
		m->file[i].dev = gen_next(state);
		m->file[i].ino = gen_next(state);
		CHECK_EQ(vv_file_attributes_add(&m->file[i].attrs, "user.z", "", 0), 0);
		CHECK_EQ(vv_file_attributes_add(&m->file[i].attrs, "user.a", "a\0b", 3), 0);
	}
}

static struct vv_manifest some_tree(uint64_t *state, size_t files, size_t kinds)
{
	struct vv_manifest m = some_manifest(state, files, kinds);

	add_tree(&m, state);
	return m;
}

static int get(const uint8_t *p, size_t n)
{
	struct vv_manifest m = { 0 };
	uint8_t *copy = malloc(n ? n : 1);
	int rc;

	CHECK(copy);
	memcpy(copy, p, n);
	rc = vv_manifest_get(&m, copy, n);
	CHECK(rc == 0 || (m.n_files == 0 && m.file == NULL && m.scheme == NULL));
	vv_manifest_fini(&m);
	free(copy);
	return rc;
}

static void check_same(const struct vv_manifest *a, const struct vv_manifest *b)
{
	CHECK_EQ(a->n_files, b->n_files);
	CHECK_EQ(a->n_kinds, b->n_kinds);
	CHECK_STR(a->scheme, b->scheme);
	CHECK_STR(a->effort, b->effort);
	for (size_t i = 0; i < a->n_files; i++) {
		const struct vv_manifest_file *x = &a->file[i], *y = &b->file[i];

		CHECK_STR(x->name, y->name);
		CHECK_STR(x->format, y->format);
		CHECK_EQ(x->region, y->region);
		CHECK_EQ(x->mode, y->mode);
		CHECK_EQ(x->mtime_s, y->mtime_s);
		CHECK_EQ(x->mtime_ns, y->mtime_ns);
		CHECK_EQ(x->linked, y->linked);
		CHECK_EQ(x->dev, y->dev);
		CHECK_EQ(x->ino, y->ino);
		CHECK(vv_file_attributes_equal(&x->attrs, &y->attrs));
	}
	CHECK_EQ(a->n_entries, b->n_entries);
	for (size_t i = 0; i < a->n_entries; i++) {
		const struct vv_manifest_entry *x = &a->entry[i], *y = &b->entry[i];

		CHECK_STR(x->name, y->name);
		CHECK_EQ(x->type, y->type);
		CHECK_EQ(x->mode, y->mode);
		CHECK_EQ(x->mtime_s, y->mtime_s);
		CHECK_EQ(x->mtime_ns, y->mtime_ns);
		CHECK(!x->target == !y->target);
		CHECK(!x->target || strcmp(x->target, y->target) == 0);
		CHECK(vv_file_attributes_equal(&x->attrs, &y->attrs));
	}
	for (size_t i = 0; i < a->n_kinds; i++) {
		const struct vv_manifest_kind *x = &a->kind[i], *y = &b->kind[i];

		CHECK_STR(x->key, y->key);
		CHECK_EQ(x->type, y->type);
		CHECK_EQ(x->width, y->width);
		CHECK_EQ(x->swapped, y->swapped);
		CHECK_EQ(x->merged, y->merged);
		CHECK_EQ(x->ndim, y->ndim);
		CHECK(memcmp(x->dim, y->dim, sizeof(x->dim)) == 0);
		CHECK_EQ(x->instances, y->instances);
		CHECK_EQ(x->raw, y->raw);
		CHECK_EQ(x->fresh, y->fresh);
		CHECK_EQ(x->stored, y->stored);
		CHECK_EQ(x->segment, y->segment);
		CHECK_EQ(x->zero, y->zero);
		CHECK_EQ(x->dup_time, y->dup_time);
		CHECK_EQ(x->dup_space, y->dup_space);
		CHECK(vv_recipe_same(&x->recipe, &y->recipe));
		CHECK_EQ(x->expected_ratio, y->expected_ratio);
		CHECK_EQ(x->basis, y->basis);
		CHECK_EQ(x->age, y->age);
	}
}

static void test_round_trip(void)
{
	uint64_t state = 1;

	for (size_t i = 0; i < 60; i++) {
		struct vv_manifest a = (i % 2 ? some_tree : some_manifest)(&state, i % 7, i / 7), b = { 0 };
		struct vv_buf out = { 0 }, again = { 0 };

		vv_manifest_put(&a, &out);
		CHECK_EQ(vv_buf_check(&out), 0);
		CHECK_EQ(out.p[8], i % 2 ? 2 : 1); /* older readers read all that they can */
		CHECK_EQ(vv_manifest_get(&b, out.p, out.n), 0);
		check_same(&a, &b);
		vv_manifest_put(&b, &again);
		CHECK(again.n == out.n && memcmp(again.p, out.p, out.n) == 0);
		vv_manifest_fini(&a);
		vv_manifest_fini(&b);
		vv_buf_fini(&out);
		vv_buf_fini(&again);
	}
}

/* A cut never passes; a flip may give another list, but never one that breaks a rule or takes memory out of proportion. */
static void check_damage(struct vv_manifest m)
{
	struct vv_buf out = { 0 };

	vv_manifest_put(&m, &out);
	for (size_t n = 0; n < out.n; n++)
		CHECK_EQ(get(out.p, n), VV_EDAMAGED);
	for (size_t i = 0; i < out.n * 8; i++) {
		int rc;

		out.p[i / 8] ^= (uint8_t)(1 << i % 8);
		rc = get(out.p, out.n);
		CHECK(rc == VV_EDAMAGED || (rc == 0 && i / 8 >= 12));
		out.p[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	vv_wire_put_u8(&out, 0);
	CHECK_EQ(get(out.p, out.n), VV_EDAMAGED);
	vv_manifest_fini(&m);
	vv_buf_fini(&out);
}

static void test_damage(void)
{
	uint64_t state = 2;

	check_damage(some_manifest(&state, 3, 3));
	check_damage(some_tree(&state, 3, 1));
}

static void test_targets(void)
{
	static const char *const good[] = { "a", "a/b", "../a", "../../a", "..", "../..", ".", "./a", "./../a", "a/.", "a//b/", "...", "a..", "..a/b" };
	static const char *const bad[] = { "", "/", "/etc/passwd", "../../..", "../../../a", "a/..", "a/../b", "../a/../b", "a/../../..", ".././a/.." };
	char longer[VV_MANIFEST_NAME + 1];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CHECK(vv_manifest_is_target("x/y/link", good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(!vv_manifest_is_target("x/y/link", bad[i]));
	CHECK(vv_manifest_is_target("link", "a") && !vv_manifest_is_target("link", ".."));
	memset(longer, 'x', sizeof(longer));
	longer[VV_MANIFEST_NAME] = '\0';
	CHECK(!vv_manifest_is_target("link", longer));
	longer[VV_MANIFEST_NAME - 1] = '\0';
	CHECK(vv_manifest_is_target("link", longer));
}

static void test_names(void)
{
	static const char *const good[] = { "a", "a/b", "...", "a/..b", "a/b../c", ".a", "a\nb", "a b", "\xc3\xa4/\xff", "-rf", "a\\..\\b", "a/.varve.files" };
	static const char *const bad[] = { "", "/", "/a", "a/", "a//b", ".", "..", "a/.", "a/..", "./a", "../a", "a/../b", "a/./b", "//", ".varve.files" };
	char part[VV_MANIFEST_NAME + 2];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CHECK(vv_manifest_is_name(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(!vv_manifest_is_name(bad[i]));
	memset(part, 'x', sizeof(part));
	part[255] = '\0';
	CHECK(vv_manifest_is_name(part));
	part[255] = 'x';
	part[256] = '\0';
	CHECK(!vv_manifest_is_name(part));
	memset(part, 'x', sizeof(part));
	for (size_t i = 1; i < sizeof(part); i += 2)
		part[i] = '/';
	part[4095] = '\0';
	CHECK(vv_manifest_is_name(part));
	part[4095] = '/';
	part[4097] = '\0';
	CHECK(!vv_manifest_is_name(part));
}

/* What an encoder writes that was handed something it should not have been. */
static int forged(void (*change)(struct vv_manifest *m))
{
	uint64_t state = 3;
	struct vv_manifest m = some_tree(&state, 3, 2);
	struct vv_buf out = { 0 };
	int rc;

	m.kind[0].recipe = (struct vv_recipe){ .width = 8, .record = 1, .real = true, .n_strides = 2, .stride = { 1, 64 } };
	change(&m);
	vv_manifest_put(&m, &out);
	rc = get(out.p, out.n);
	vv_manifest_fini(&m);
	vv_buf_fini(&out);
	return rc;
}

static void rename_to(struct vv_manifest *m, const char *name)
{
	vv_mem_free(m->file[1].name);
	m->file[1].name = vv_mem_strdup(name);
}

static void nothing(struct vv_manifest *m) { (void)m; }
static void climb(struct vv_manifest *m) { rename_to(m, "run/../../etc/passwd"); }
static void start_anew(struct vv_manifest *m) { rename_to(m, "/etc/passwd"); }
static void empty_name(struct vv_manifest *m) { rename_to(m, ""); }
static void twice(struct vv_manifest *m) { rename_to(m, "run/rank2.h5"); }
static void same_region(struct vv_manifest *m) { m->file[2].region = m->file[0].region; }
static void far_region(struct vv_manifest *m) { m->file[0].region = VV_MAX_REGIONS; }
static void long_second(struct vv_manifest *m) { m->file[0].mtime_ns = 1000000000; }
static void no_type(struct vv_manifest *m) { m->kind[0].type = VV_TYPES; }
static void no_segment(struct vv_manifest *m) { m->kind[0].segment = VV_SEGMENTS; }
static void no_key(struct vv_manifest *m) { m->kind[0].key[0] = '\0'; }
static void wide(struct vv_manifest *m) { m->kind[0].recipe.width = VV_RECIPE_WIDEST + 1; m->kind[0].recipe.real = false; }
static void no_record(struct vv_manifest *m) { m->kind[0].recipe.record = 0; }
static void long_record(struct vv_manifest *m) { m->kind[0].recipe.record = 129; }
static void odd_real(struct vv_manifest *m) { m->kind[0].recipe.width = 1; }
static void far_predictor(struct vv_manifest *m) { m->kind[0].recipe.predictor = VV_PREDICT_TEXT + 1; }
static void zero_stride(struct vv_manifest *m) { m->kind[0].recipe.stride[0] = 0; }
static void falling_stride(struct vv_manifest *m) { m->kind[0].recipe.stride[0] = 65; }
static void far_window(struct vv_manifest *m) { m->kind[0].recipe.window = 32; }

static void lead_to(struct vv_manifest *m, const char *target)
{
	vv_mem_free(m->entry[0].target);
	m->entry[0].target = vv_mem_strdup(target);
}

static void link_out(struct vv_manifest *m) { lead_to(m, "../../../etc/passwd"); }
static void link_root(struct vv_manifest *m) { lead_to(m, "/etc/passwd"); }
static void link_back(struct vv_manifest *m) { lead_to(m, "a/../../../.."); }
static void link_nowhere(struct vv_manifest *m) { lead_to(m, ""); }
static void no_entry_type(struct vv_manifest *m) { m->entry[1].type = 3; }
static void attrs_of_link(struct vv_manifest *m) { CHECK_EQ(vv_file_attributes_add(&m->entry[0].attrs, "user.a", "b", 1), 0); }
static void entry_climbs(struct vv_manifest *m) { vv_mem_free(m->entry[1].name); m->entry[1].name = vv_mem_strdup("a/../../b"); }
static void entry_is_file(struct vv_manifest *m) { vv_mem_free(m->entry[1].name); m->entry[1].name = vv_mem_strdup("run/rank1.h5"); }
static void privilege(struct vv_manifest *m) { CHECK_EQ(vv_file_attributes_add(&m->file[0].attrs, "security.capability", "x", 1), 0); }
static void attr_twice(struct vv_manifest *m) { CHECK_EQ(vv_file_attributes_add(&m->file[0].attrs, "user.a", "x", 1), 0); }
static void long_value(struct vv_manifest *m) { m->file[0].attrs.v[0].value = vv_mem_grow(m->file[0].attrs.v[0].value, 1 << 17, 1); m->file[0].attrs.v[0].len = VV_FILE_ATTRIBUTES_VALUE + 1; }

static void test_rules(void)
{
	static void (*const bad[])(struct vv_manifest *) = {
		climb,     start_anew, empty_name,  twice,    same_region,   far_region,  long_second,    no_type, no_key, wide, no_segment,
		no_record, long_record, odd_real, far_predictor, zero_stride, falling_stride, far_window,
		link_out,  link_root,   link_back, link_nowhere, no_entry_type, attrs_of_link, entry_climbs, entry_is_file, privilege, attr_twice, long_value,
	};

	CHECK_EQ(forged(nothing), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_EQ(forged(bad[i]), VV_EDAMAGED);
}

/* A count that promises a million files, with nothing behind it. */
static void test_counts(void)
{
	struct vv_buf b = { 0 };

	vv_buf_add(&b, "VARVEFIL\1\0\0\0\0\0", 14);
	vv_wire_put_var(&b, VV_MANIFEST_FILES);
	CHECK_EQ(get(b.p, b.n), VV_EDAMAGED);
	b.n = 14;
	vv_wire_put_var(&b, VV_MANIFEST_FILES + 1ull);
	CHECK_EQ(get(b.p, b.n), VV_EDAMAGED);
	b.n = 14;
	vv_wire_put_var(&b, 0);
	vv_wire_put_var(&b, VV_MANIFEST_KINDS);
	CHECK_EQ(get(b.p, b.n), VV_EDAMAGED);
	b.n = 15;
	vv_wire_put_var(&b, 0);
	CHECK_EQ(get(b.p, b.n), 0);
	b.p[8] = 2; /* without anything that needs it */
	vv_wire_put_var(&b, 0);
	CHECK_EQ(get(b.p, b.n), VV_EDAMAGED);
	b.p[8] = 3;
	CHECK_EQ(get(b.p, b.n), VV_EDAMAGED);
	CHECK(strstr(vv_err_last(), "version 3"));
	vv_buf_fini(&b);
}

static void test_no_memory(void)
{
	uint64_t state = 4;
	struct vv_manifest m = some_tree(&state, 4, 4), back = { 0 };
	struct vv_buf out = { 0 };
	int rc = VV_ENOMEM;

	vv_manifest_put(&m, &out);
	for (long k = 1; rc; k++) {
		vv_mem_fail_at(k);
		rc = vv_manifest_get(&back, out.p, out.n);
		vv_mem_fail_at(0);
		CHECK(rc == 0 || rc == VV_ENOMEM);
		CHECK(k < 100);
	}
	check_same(&m, &back);
	vv_manifest_fini(&back);
	vv_manifest_fini(&m);
	vv_buf_fini(&out);
}

/* A list as the first version with links wrote it: it must decode for ever. */
static void test_golden(void)
{
	static const uint8_t bytes[] = {
		86, 65, 82, 86, 69, 70, 73, 76, 2, 0, 0, 0, 4, 97, 117, 116, 111, 7, 100, 101, 102, 97, 117, 108,
		116, 2, 3, 97, 47, 120, 0, 164, 3, 160, 205, 235, 175, 13, 232, 210, 183, 216, 2, 6, 111, 112, 97, 113,
		117, 101, 3, 128, 252, 3, 250, 144, 137, 5, 1, 6, 117, 115, 101, 114, 46, 107, 1, 118, 3, 97, 47, 121,
		1, 164, 3, 160, 205, 235, 175, 13, 232, 210, 183, 216, 2, 6, 111, 112, 97, 113, 117, 101, 3, 128, 252, 3,
		250, 144, 137, 5, 1, 6, 117, 115, 101, 114, 46, 107, 1, 118, 1, 13, 40, 115, 109, 97, 108, 108, 32, 102,
		105, 108, 101, 115, 41, 0, 1, 2, 0, 1, 2, 2, 2, 0, 0, 0, 0, 1, 1, 0, 0, 0, 2, 6,
		0, 0, 0, 0, 0, 2, 3, 97, 47, 108, 1, 255, 3, 160, 205, 235, 175, 13, 232, 210, 183, 216, 2, 1,
		120, 0, 1, 101, 2, 237, 3, 160, 205, 235, 175, 13, 132, 140, 244, 215, 2, 0,
	};
	struct vv_manifest m = { 0 };

	CHECK_EQ(vv_manifest_get(&m, bytes, sizeof(bytes)), 0);
	CHECK(m.n_files == 2 && m.n_entries == 2);
	CHECK_STR(m.file[0].name, "a/x");
	CHECK_STR(m.file[1].name, "a/y");
	CHECK(m.file[0].linked && m.file[1].linked && m.file[0].dev == m.file[1].dev && m.file[0].ino == m.file[1].ino);
	CHECK_EQ(m.file[0].ino, 10635386);
	CHECK_EQ(m.file[0].attrs.n, 1);
	CHECK_STR(m.file[0].attrs.v[0].name, "user.k");
	CHECK(m.file[0].attrs.v[0].len == 1 && m.file[0].attrs.v[0].value[0] == 'v');
	CHECK(m.entry[0].type == VV_MANIFEST_LINK && m.entry[1].type == VV_MANIFEST_FOLDER);
	CHECK_STR(m.entry[0].name, "a/l");
	CHECK_STR(m.entry[0].target, "x");
	CHECK_STR(m.entry[1].name, "e");
	CHECK_EQ(m.entry[1].mode, 0755);
	vv_manifest_fini(&m);
}

static void check_words(struct vv_recipe r, const char *want)
{
	char words[64];

	vv_recipe_words(&r, words, sizeof(words));
	CHECK_STR(words, want);
}

static void test_words(void)
{
	char small[8];
	struct vv_recipe r = { .width = 8, .record = 1, .real = true, .predictor = VV_PREDICT_LORENZO, .coder = 2, .level = 3,
			       .n_strides = 3, .stride = { 1, 64, 4096 } };

	check_words(r, "f64 lorenzo-3d planes zstd:3");
	vv_recipe_words(&r, small, sizeof(small));
	CHECK_STR(small, "f64 lor");
	r.n_strides = 1;
	check_words(r, "f64 delta planes zstd:3");
	r.swapped = true;
	r.predictor = VV_PREDICT_REAL;
	r.window = 27;
	check_words(r, "f64be real-1d planes zstd:3 window-27");
	check_words(vv_recipe_plain(1), "bytes raw");
	check_words((struct vv_recipe){ .width = 4, .record = 22, .coder = 1 }, "22xi32 planes lz4");
	check_words((struct vv_recipe){ 0 }, "-");
	check_words((struct vv_recipe){ .width = 8, .record = 1, .real = true, .predictor = VV_PREDICT_FPC, .coder = 9 }, "f64 fpc coder-9");
}

int main(void)
{
	test_round_trip();
	test_damage();
	test_names();
	test_targets();
	test_rules();
	test_counts();
	test_no_memory();
	test_golden();
	test_words();
	return 0;
}
