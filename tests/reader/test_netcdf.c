// netCDF classic, made by hand: where its variables are said to be, and what damage does.
#include "reader/peek.h"
#include "support/formats.h"
#include "support/outlines.h"
#include "vv_test.h"

enum { X = 6, Y = 5, RECORDS = 3, HEAD = 400 };

static uint8_t data[1 << 20];
static const struct formats_dim dims[] = { { "time", 0 }, { "y", Y }, { "x", X }, { "len", 80 } };

static void check_form(const struct vv_outline *o, const char *name, unsigned type, uint32_t record, uint64_t row, uint64_t plane)
{
	const struct vv_outline_piece *p = NULL;
	const struct vv_variable *v;
	struct vv_form form;
	uint32_t number;

	v = outlines_find(o, name, &number);
	CHECK(outlines_pieces(o, number, &p) > 0);
	form = vv_reader_form(v, p);
	CHECK_EQ(form.type, type);
	CHECK_EQ(form.record, record);
	CHECK_EQ(form.row, row);
	CHECK_EQ(form.plane, plane);
	CHECK_EQ(form.swapped, vv_head_type_size(type) > 1);
}

static void check_pieces(const struct vv_outline *o, const struct formats_cdf *c, const struct formats_var *var, const char *name, uint64_t n)
{
	const struct vv_outline_piece *p = NULL;
	uint32_t number;

	outlines_find(o, name, &number);
	CHECK_EQ(outlines_pieces(o, number, &p), n);
	for (uint64_t r = 0; n && p < o->piece + o->n_pieces; p++)
		if (p->variable == number) {
			CHECK_EQ(p->at, var->at + r * c->record_bytes);
			CHECK_EQ(p->len, var->slab);
			CHECK_EQ(p->ordinal, r);
			r++;
		}
}

// Of each version: variables of every kind, each where it was put.
static void finds_all(unsigned version)
{
	struct formats_var var[] = {
		{ "lonely", 6, 0, { 0 }, data, 0, 0 },      { "plane", 5, 2, { 1, 2 }, data, 0, 0 },  { "title", 2, 1, { 3 }, data, 0, 0 },
		{ "steps", 3, 1, { 2 }, data, 0, 0 },       { "names", 2, 2, { 1, 3 }, data, 0, 0 },  { "field", 6, 3, { 0, 1, 2 }, data, 0, 0 },
		{ "short", 3, 2, { 0, 1 }, data, 0, 0 },    { "log", 2, 2, { 0, 3 }, data, 0, 0 },    { "t", 6, 1, { 0 }, data, 0, 0 },
		{ "wide", version == 5 ? 10 : 4, 2, { 1, 2 }, data, 0, 0 },
	};
	struct formats_cdf c = { .version = version, .records = RECORDS, .dim = dims, .n_dims = 4, .var = var, .n_vars = 10 };

	for (int streaming = 0; streaming < 2; streaming++) {
		struct vv_buf b = { 0 };
		struct vv_outline o;

		c.streaming = streaming;
		formats_cdf(&b, &c);
		o = outlines_get(b.p, b.n, "f.nc", "netcdf");
		CHECK_EQ(o.n_variables, 10);
		for (unsigned i = 0; i < 10; i++) {
			char name[32];

			snprintf(name, sizeof(name), "/%s", var[i].name);
			check_pieces(&o, &c, &var[i], name, var[i].ndim && var[i].dim[0] == 0 ? RECORDS : 1);
		}
		check_form(&o, "/lonely", VV_TYPE_F64, 0, 0, 0);
		check_form(&o, "/plane", VV_TYPE_F32, 0, X, 0);
		check_form(&o, "/title", VV_TYPE_BYTES, 80, 0, 0);
		check_form(&o, "/steps", VV_TYPE_I16, 0, 0, 0);
		check_form(&o, "/names", VV_TYPE_BYTES, 80, 0, 0);
		check_form(&o, "/field", VV_TYPE_F64, 0, X, X * Y);
		check_form(&o, "/short", VV_TYPE_I16, 0, Y, 0);
		check_form(&o, "/log", VV_TYPE_BYTES, 80, 0, 0);
		check_form(&o, "/wide", version == 5 ? VV_TYPE_I64 : VV_TYPE_I32, 0, X, 0);
		CHECK_EQ(outlines_find(&o, "/field", NULL)->dim[0], RECORDS);
		vv_reader_outline_fini(&o);
		if (!streaming)
			outlines_damage(b.p, b.n, HEAD, "f.nc");
		vv_buf_fini(&b);
	}
}

static void knows_all_types(void)
{
	static const uint8_t want[] = { 0, VV_TYPE_I8, VV_TYPE_BYTES, VV_TYPE_I16, VV_TYPE_I32, VV_TYPE_F32, VV_TYPE_F64, VV_TYPE_U8,
					VV_TYPE_U16, VV_TYPE_U32, VV_TYPE_I64, VV_TYPE_U64 };

	for (unsigned type = 1; type < 12; type++) {
		struct formats_var var = { "v", type, 2, { 1, 2 }, data, 0, 0 };
		struct formats_cdf c = { .version = 5, .dim = dims, .n_dims = 4, .var = &var, .n_vars = 1 };
		struct vv_buf b = { 0 };
		struct vv_outline o;

		formats_cdf(&b, &c);
		o = outlines_get(b.p, b.n, "f.nc", "netcdf");
		CHECK_EQ(o.n_pieces, 1);
		CHECK_EQ(o.variable[0].type, want[type]);
		CHECK_EQ(o.piece[0].len, b.n - var.at < 4 ? 0 : var.slab);
		vv_reader_outline_fini(&o);
		vv_buf_fini(&b);
	}
}

// The slabs of the only record variable are not padded; they lie side by side.
static void one_record_variable(void)
{
	struct formats_var var = { "s", 3, 2, { 0, 1 }, data, 0, 0 };
	struct formats_cdf c = { .version = 2, .records = 7, .dim = dims, .n_dims = 4, .var = &var, .n_vars = 1 };
	struct vv_buf b = { 0 };
	struct vv_outline o;

	formats_cdf(&b, &c);
	CHECK_EQ(b.n - var.at, 7 * 2 * Y);
	o = outlines_get(b.p, b.n, "f.nc", "netcdf");
	CHECK_EQ(o.n_pieces, 1);
	CHECK_EQ(o.piece[0].at, var.at);
	CHECK_EQ(o.piece[0].len, b.n - var.at);
	check_form(&o, "/s", VV_TYPE_I16, 0, Y, 0);
	vv_reader_outline_fini(&o);
	vv_buf_fini(&b);
}

// Thousands of records of a few numbers are a table.
static void many_short_records(void)
{
	struct formats_var var[] = { { "t", 6, 1, { 0 }, data, 0, 0 }, { "n", 4, 1, { 0 }, data, 0, 0 }, { "b", 1, 1, { 0 }, data, 0, 0 } };
	struct formats_cdf c = { .version = 1, .records = 5000, .dim = dims, .n_dims = 4, .var = var, .n_vars = 3 };
	struct vv_buf b = { 0 };
	struct vv_outline o;

	formats_cdf(&b, &c);
	CHECK_EQ(c.record_bytes, 16);
	o = outlines_get(b.p, b.n, "f.nc", "netcdf");
	CHECK_EQ(o.n_pieces, 1);
	CHECK_EQ(o.piece[0].len, 16 * 5000);
	check_form(&o, "/records", VV_TYPE_BYTES, 16, 0, 0);
	vv_reader_outline_fini(&o);
	vv_buf_fini(&b);
}

// A header much larger than what a reader gets to see at first.
static void large_header(void)
{
	enum { MANY = 3000 };
	static struct formats_var var[MANY];
	static char names[MANY][64];
	struct formats_cdf c = { .version = 2, .records = 2, .dim = dims, .n_dims = 4, .var = var, .n_vars = MANY };
	struct vv_buf b = { 0 };
	struct vv_outline o;

	for (unsigned i = 0; i < MANY; i++) {
		snprintf(names[i], sizeof(names[i]), "a_variable_with_quite_a_name_%u", i);
		var[i] = (struct formats_var){ names[i], 5, 2, { i % 3 == 0 ? 0 : 1, 2 }, data, 0, 0 };
	}
	formats_cdf(&b, &c);
	CHECK(var[1].at > 10 * VV_READER_HEAD);
	o = outlines_get(b.p, b.n, "f.nc", "netcdf");
	CHECK_EQ(o.n_variables, MANY);
	CHECK_EQ(o.n_pieces, 2000 + 2 * 1000);
	check_pieces(&o, &c, &var[2999], "/a_variable_with_quite_a_name_2999", 1);
	check_pieces(&o, &c, &var[2997], "/a_variable_with_quite_a_name_2997", 2);
	vv_reader_outline_fini(&o);
	vv_buf_fini(&b);
}

// Counts that no file could hold: nothing is allocated for them, and it ends at once.
static void impossible_counts(void)
{
	struct formats_var var[] = { { "t", 6, 1, { 0 }, data, 0, 0 }, { "f", 5, 2, { 0, 1 }, data, 0, 0 } };
	struct formats_cdf c = { .version = 5, .records = 4, .dim = dims, .n_dims = 4, .var = var, .n_vars = 2 };
	struct vv_buf b = { 0 };
	struct vv_outline o;

	formats_cdf(&b, &c);
	memset(b.p + 4, 0x7f, 8); // records
	o = outlines_get(b.p, b.n, "f.nc", "netcdf");
	CHECK_EQ(o.n_pieces, 8);
	vv_reader_outline_fini(&o);
	for (size_t at = 12; at + 8 <= var[0].at; at += 4) {
		uint8_t was[8];

		memcpy(was, b.p + at, 8);
		for (unsigned k = 0; k < 3; k++) {
			memset(b.p + at, k == 0 ? 0xff : k == 1 ? 0x7f : 0, 8);
			b.p[at + 3] = k == 2 ? 2 : b.p[at + 3];
			o = outlines_get(b.p, b.n, "f.nc", "netcdf");
			CHECK(o.n_pieces <= b.n / 4);
			vv_reader_outline_fini(&o);
		}
		memcpy(b.p + at, was, 8);
	}
	vv_buf_fini(&b);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i >> 2);
	finds_all(1);
	finds_all(2);
	finds_all(5);
	knows_all_types();
	one_record_variable();
	many_short_records();
	large_header();
	impossible_counts();
	return 0;
}
