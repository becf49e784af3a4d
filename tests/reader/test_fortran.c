// Fortran's records, made by hand: found with every kind of marks, and not found where there are none.
#include "support/formats.h"
#include "support/gen.h"
#include "support/outlines.h"
#include "vv_test.h"
#include <math.h>

static const struct formats_marks all_marks[] = { { 4, false, 0 }, { 4, true, 0 }, { 8, false, 0 }, { 8, true, 0 } };

static void swap(void *p, size_t n, size_t width)
{
	uint8_t *b = p;

	for (size_t i = 0; i + width <= n; i += width)
		for (size_t k = 0; k < width / 2; k++) {
			uint8_t x = b[i + k];

			b[i + k] = b[i + width - 1 - k];
			b[i + width - 1 - k] = x;
		}
}

static void put_floats(struct vv_buf *b, const struct formats_marks *m, size_t n, double phase)
{
	float *v = malloc(n * 4);

	CHECK(v != NULL);
	for (size_t i = 0; i < n; i++)
		v[i] = (float)(300 + sin(phase + (double)i / 20));
	if (m->swapped)
		swap(v, n * 4, 4);
	formats_record(b, m, v, n * 4);
	free(v);
}

static void put_doubles(struct vv_buf *b, const struct formats_marks *m, size_t n, double step)
{
	double *v = malloc(n * 8);

	CHECK(v != NULL);
	for (size_t i = 0; i < n; i++)
		v[i] = step * (double)(i + 1);
	if (m->swapped)
		swap(v, n * 8, 8);
	formats_record(b, m, v, n * 8);
	free(v);
}

static void put_integers(struct vv_buf *b, const struct formats_marks *m, size_t n)
{
	int32_t *v = malloc(n * 4);

	CHECK(v != NULL);
	for (size_t i = 0; i < n; i++)
		v[i] = (int32_t)(i * 37 % 1000) - 300;
	if (m->swapped)
		swap(v, n * 4, 4);
	formats_record(b, m, v, n * 4);
	free(v);
}

static const struct vv_variable *check(const struct vv_outline *o, const char *name, unsigned type, size_t pieces, const struct vv_outline_piece **first)
{
	const struct vv_variable *v;
	uint32_t number;

	v = outlines_find(o, name, &number);
	CHECK_EQ(v->type, type);
	CHECK_EQ(outlines_pieces(o, number, first), pieces);
	return v;
}

// A restart file: scalars, levels of fields, larger arrays, zeros.
static void finds_records(const struct formats_marks *m)
{
	static const uint8_t zeros[4000];
	const struct vv_outline_piece *p = NULL;
	const struct vv_variable *v;
	struct vv_buf b = { 0 };
	struct vv_outline o;
	struct vv_form form;

	for (int i = 0; i < 5; i++)
		formats_record(&b, m, "\1\0\0\0", 4);
	for (int i = 0; i < 40; i++)
		put_floats(&b, m, 288, i);
	put_integers(&b, m, 500);
	for (int i = 0; i < 10; i++)
		put_floats(&b, m, 288, 1 + i);
	put_doubles(&b, m, 400, 1. / 3);
	formats_record(&b, m, "", 0);
	put_doubles(&b, m, 20000, 0.5); // of few digits
	put_doubles(&b, m, 20000, 0.25);
	formats_record(&b, m, zeros, sizeof(zeros));
	o = outlines_get(b.p, b.n, "restart.dat", "fortran");
	CHECK_EQ(o.n_variables, 5);
	v = check(&o, "/a/160000", VV_TYPE_F64, 2, &p);
	CHECK_EQ(v->swapped, m->swapped);
	CHECK_EQ(p->len, 160000);
	CHECK_EQ(p[0].ordinal, 0);
	CHECK_EQ(p[1].ordinal, 1);
	v = check(&o, "/b/1152", VV_TYPE_F32, 2, &p);
	CHECK_EQ(p->at, 5 * (4 + 2 * m->size) + m->size);
	CHECK_EQ(p->len, 40 * (1152 + 2 * m->size) - 2 * m->size);
	form = vv_reader_form(v, p);
	CHECK_EQ(form.type, VV_TYPE_F32);
	CHECK_EQ(form.row, 288 + m->size / 2);
	CHECK_EQ(form.swapped, m->swapped);
	check(&o, "/c/4000", VV_TYPE_F64, 1, &p); // zeros: as most others
	check(&o, "/d/3200", VV_TYPE_F64, 1, &p);
	check(&o, "/e/2000", VV_TYPE_I32, 1, &p);
	vv_reader_outline_fini(&o);
	vv_buf_fini(&b);
}

// gfortran splits what is long; the parts are records whose marks are negative here and there.
static void finds_parts(const struct formats_marks *marks)
{
	struct formats_marks m = *marks;
	const struct vv_outline_piece *p = NULL;
	struct vv_buf b = { 0 };
	struct vv_outline o;

	m.longest = 20000;
	put_doubles(&b, &m, 10000, 0.1);
	put_doubles(&b, &m, 100, 0.1);
	o = outlines_get(b.p, b.n, "parts.dat", "fortran");
	check(&o, "/a/20000", VV_TYPE_F64, 4, &p);
	check(&o, "/b/800", VV_TYPE_F64, 1, &p);
	vv_reader_outline_fini(&o);
	b.p[m.swapped ? m.size - 1 : 0] ^= 1;
	o = outlines_get(b.p, b.n, "parts.dat", "opaque");
	vv_reader_outline_fini(&o);
	vv_buf_fini(&b);
}

// A part that says that another one comes, and none does.
static void parts_must_agree(void)
{
	uint8_t bytes[2 * 108] = { 0 };
	struct vv_outline o;

	for (int i = 0; i < 2; i++) {
		memcpy(bytes + 108 * i, "\x64\0\0\0", 4);
		memcpy(bytes + 108 * i + 104, "\x64\0\0\0", 4);
	}
	o = outlines_get(bytes, sizeof(bytes), "file", "fortran");
	vv_reader_outline_fini(&o);
	memcpy(bytes, "\x9c\xff\xff\xff", 4);
	o = outlines_get(bytes, sizeof(bytes), "file", "opaque");
	vv_reader_outline_fini(&o);
	memcpy(bytes + 108 + 104, "\x9c\xff\xff\xff", 4);
	o = outlines_get(bytes, sizeof(bytes), "file", "fortran");
	vv_reader_outline_fini(&o);
}

// What came after many good records was lost: the rest is as good as before.
static void survives_a_cut(void)
{
	const struct formats_marks *m = &all_marks[0];
	const struct vv_outline_piece *p = NULL;
	struct vv_buf b = { 0 };
	struct vv_outline o;
	size_t whole;

	for (int i = 0; i < 70; i++)
		put_floats(&b, m, 100, i);
	whole = b.n;
	put_floats(&b, m, 100, 7);
	o = outlines_get(b.p, b.n - 50, "cut.dat", "fortran");
	check(&o, "/a/400", VV_TYPE_F32, 1, &p);
	CHECK_EQ(p->at + p->len, whole - 4);
	vv_reader_outline_fini(&o);
	o = outlines_get(b.p, 20 * 408 - 1, "cut.dat", "opaque");
	vv_reader_outline_fini(&o);
	vv_buf_fini(&b);
}

// The same field of two ranks whose parts of the grid differ by a row, and rank 0 writes more: names differ in lengths only.
static void ranks_agree(void)
{
	const struct formats_marks *m = &all_marks[0];
	const struct vv_outline_piece *p = NULL;
	struct vv_buf b = { 0 };
	struct vv_outline o;

	put_integers(&b, m, 64);
	for (int i = 0; i < 20; i++)
		put_floats(&b, m, 12 * 24, i);
	for (int i = 0; i < 20; i++)
		put_floats(&b, m, 12 * 4, i);
	o = outlines_get(b.p, b.n, "rst_0000.dat", "fortran");
	check(&o, "/a/1152", VV_TYPE_F32, 1, &p);
	check(&o, "/b/192", VV_TYPE_F32, 1, &p);
	check(&o, "/c/256", VV_TYPE_I32, 1, &p);
	vv_reader_outline_fini(&o);
	b.n = 0;
	for (int i = 0; i < 20; i++)
		put_floats(&b, m, 13 * 24, i);
	for (int i = 0; i < 20; i++)
		put_floats(&b, m, 13 * 4, i);
	o = outlines_get(b.p, b.n, "rst_0001.dat", "fortran");
	check(&o, "/a/1248", VV_TYPE_F32, 1, &p);
	check(&o, "/b/208", VV_TYPE_F32, 1, &p);
	vv_reader_outline_fini(&o);
	vv_buf_fini(&b);
}

static void is_not_led_astray(void)
{
	uint64_t state = 3;
	uint8_t *p = malloc(1 << 20);
	struct vv_outline o;

	CHECK(p != NULL);
	for (int i = 0; i < 3; i++) {
		if (i == 0)
			gen_bytes(&state, p, 1 << 20);
		else if (i == 1)
			gen_text(&state, p, 1 << 20);
		else
			memset(p, 0, 1 << 20);
		o = outlines_get(p, 1 << 20, "file", "opaque");
		vv_reader_outline_fini(&o);
	}
	memcpy(p, "\4\0\0\0abcd\4\0\0\0", 12); // and then zeros, which would do for empty records
	o = outlines_get(p, 1 << 20, "file", "opaque");
	vv_reader_outline_fini(&o);
	free(p);
}

// As many lengths as records: it ends, with what there is room for.
static void many_lengths(void)
{
	static const uint8_t bytes[64 + 5000];
	struct vv_buf b = { 0 };
	struct vv_outline o;

	for (size_t i = 0; i < 5000; i++)
		formats_record(&b, &all_marks[0], bytes, 64 + i);
	o = outlines_get(b.p, b.n, "file", "fortran");
	CHECK(o.n_variables > 1000);
	CHECK(o.n_pieces > 1000);
	vv_reader_outline_fini(&o);
	vv_buf_fini(&b);
}

int main(void)
{
	struct vv_buf b = { 0 };

	for (size_t i = 0; i < 4; i++) {
		finds_records(&all_marks[i]);
		finds_parts(&all_marks[i]);
		b.n = 0;
		for (int k = 0; k < 4; k++)
			put_floats(&b, &all_marks[i], 20, k);
		put_integers(&b, &all_marks[i], 30);
		outlines_damage(b.p, b.n, b.n, "restart.dat");
	}
	vv_buf_fini(&b);
	parts_must_agree();
	survives_a_cut();
	ranks_agree();
	is_not_led_astray();
	many_lengths();
	return 0;
}
