// The registry, what an outline is made of, and what a piece's bytes are said to be.
#include "base/err.h"
#include "reader/peek.h"
#include "support/formats.h"
#include "support/outlines.h"
#include "vv_test.h"

static void knows_its_readers(void)
{
	unsigned n = 0;

	for (const struct vv_reader *const *r = vv_reader_all(); *r; r++, n++) {
		CHECK((*r)->name && (*r)->is && (*r)->outline);
		for (const struct vv_reader *const *other = vv_reader_all(); other != r; other++)
			CHECK(strcmp((*r)->name, (*other)->name) != 0);
	}
	CHECK(n >= 4);
}

static void leaves_the_rest(void)
{
	static const uint8_t zeros[100000];
	static const char *const texts[] = { "", "x", "CDF", "CDF\1", "\x93NUMP", "PK\3\4", "\x89HDF\r\n\x1a\n", "What is this? No format that anybody knows." };
	struct vv_outline o;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct outlines_bytes b = { .p = (const uint8_t *)texts[i], .n = strlen(texts[i]) };
		struct vv_reader_file f = outlines_file(&b, "file");

		CHECK_EQ(vv_reader_outline(&f, &o), 0);
		CHECK_EQ(o.n_pieces, 0);
		vv_reader_outline_fini(&o);
	}
	o = outlines_get(zeros, sizeof(zeros), "zeros", "opaque");
	CHECK_EQ(o.n_pieces, 0);
	CHECK_EQ(o.n_variables, 0);
	vv_reader_outline_fini(&o);
	vv_reader_outline_fini(&o); // twice is fine
}

static void tells_that_it_cannot_read(void)
{
	struct outlines_bytes b = { .p = (const uint8_t *)"0123456789", .n = 10, .fail_at = 1 };
	struct vv_reader_file f = outlines_file(&b, "file");
	struct vv_outline o = { 0 };

	CHECK_EQ(vv_reader_outline(&f, &o), VV_EIO);
	CHECK_STR(vv_err_last(), "the read was to fail");
	CHECK(o.format == NULL);
}

static void names_are_text(void)
{
	static const struct {
		const char *in;
		size_t n;
		const char *out;
	} cases[] = {
		{ "/Density", 8, "/Density" },
		{ "/Density", 4, "/Den" },
		{ "a\nb\x7f\x1b[2J", 8, "a?b??[2J" },
		{ "a\0b", 3, "a" },
		{ "gr\xc3\xbc\xc3\x9f", 6, "gr\xc3\xbc\xc3\x9f" },
		{ "\xff\xc3", 2, "??" },
		{ "", 0, "" },
	};
	struct vv_outline o = { 0 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vv_variable *v = vv_reader_add_variable(&o, cases[i].in, cases[i].n);

		CHECK_STR(v->name, cases[i].out);
		CHECK_EQ(v->width, 1);
	}
	vv_reader_outline_fini(&o);
}

static void ends_when_full(void)
{
	struct vv_outline o = { 0 };
	size_t n = 0;

	while (vv_reader_add_piece(&o, &(struct vv_outline_piece){ .at = n }) == 0)
		n++;
	CHECK(n >= 100000 && n < 100u << 20 && o.full);
	CHECK(vv_reader_add_variable(&o, "v", 1) == NULL);
	vv_reader_outline_fini(&o);
	CHECK(!o.full);
	n = 0;
	while (vv_reader_add_variable(&o, "v", 1))
		n++;
	CHECK(n >= 10000 && n < 1u << 20 && o.full);
	vv_reader_outline_fini(&o);
}

// Variables of a netCDF file, moved so that they overlap, are empty or lie outside.
static void drops_what_is_not_sound(void)
{
	static const uint8_t data[400];
	static const struct formats_dim dim[] = { { "x", 10 } };
	struct formats_var var[5] = { { "a", 6, 1, { 0 }, data, 0, 0 }, { "b", 6, 1, { 0 }, data, 0, 0 }, { "c", 6, 1, { 0 }, data, 0, 0 },
				      { "d", 6, 1, { 0 }, data, 0, 0 }, { "e", 6, 1, { 0 }, data, 0, 0 } };
	struct formats_cdf c = { .version = 1, .dim = dim, .n_dims = 1, .var = var, .n_vars = 5 };
	struct vv_buf b = { 0 };
	struct vv_outline o;

	formats_cdf(&b, &c);
	o = outlines_get(b.p, b.n, "f.nc", "netcdf");
	CHECK_EQ(o.n_pieces, 5);
	vv_reader_outline_fini(&o);
	for (size_t i = 0; i + 4 <= var[0].at; i++) { // where each begins, in the header
		uint64_t at = vv_peek_number(b.p + i, 4, true);

		if (at == var[1].at)
			b.p[i + 3] = (uint8_t)(b.p[i + 3] + 40); // onto c
		else if (at == var[3].at)
			memset(b.p + i, 0x7f, 4);
		else if (at == var[4].at)
			b.p[i + 3] = (uint8_t)(b.p[i + 3] + 1); // a byte too far
	}
	o = outlines_get(b.p, b.n, "f.nc", "netcdf");
	CHECK_EQ(o.n_variables, 5);
	CHECK_EQ(o.n_pieces, 2);
	CHECK_EQ(o.piece[0].at, var[0].at);
	CHECK_EQ(o.piece[1].at, var[1].at + 40);
	CHECK_EQ(o.piece[1].variable, 1);
	vv_reader_outline_fini(&o);
	vv_buf_fini(&b);
}

struct form_case {
	struct vv_variable v;
	uint64_t len;
	bool coded;
	struct vv_form form;
};

static void says_what_pieces_are(void)
{
	static const struct form_case cases[] = {
		{ { .type = VV_TYPE_F64, .width = 8, .ndim = 3, .dim = { 4, 5, 6 } }, 960, false, { .type = VV_TYPE_F64, .row = 6, .plane = 30 } },
		{ { .type = VV_TYPE_F32, .width = 4, .swapped = true, .ndim = 2, .dim = { 5, 6 } }, 120, false, { .type = VV_TYPE_F32, .swapped = true, .row = 6 } },
		{ { .type = VV_TYPE_F32, .width = 4, .ndim = 1, .dim = { 30 } }, 120, false, { .type = VV_TYPE_F32 } },
		{ { .type = VV_TYPE_F32, .width = 4 }, 4, false, { .type = VV_TYPE_F32 } },
		// dimensions of 1 do not count
		{ { .type = VV_TYPE_F32, .width = 4, .ndim = 4, .dim = { 1, 5, 1, 6 } }, 120, false, { .type = VV_TYPE_F32, .row = 6 } },
		{ { .type = VV_TYPE_F32, .width = 4, .ndim = 3, .dim = { 30, 1, 1 } }, 120, false, { .type = VV_TYPE_F32 } },
		// a chunk's rows, not the array's
		{ { .type = VV_TYPE_I16, .width = 2, .ndim = 2, .dim = { 100, 100 }, .chunked = true, .chunk = { 10, 20 } }, 400, false,
		  { .type = VV_TYPE_I16, .row = 20 } },
		// slices follow each other
		{ { .type = VV_TYPE_F64, .width = 8, .ndim = 3, .dim = { 9, 5, 6 }, .chunked = true, .chunk = { 1, 5, 6 } }, 240, false,
		  { .type = VV_TYPE_F64, .row = 6, .plane = 30 } },
		// cut short, but in numbers; and not
		{ { .type = VV_TYPE_F64, .width = 8, .ndim = 2, .dim = { 4, 5 } }, 152, false, { .type = VV_TYPE_F64, .row = 5 } },
		{ { .type = VV_TYPE_F64, .width = 8, .ndim = 2, .dim = { 4, 5 } }, 153, false, { .type = VV_TYPE_BYTES } },
		{ { .type = VV_TYPE_F64, .width = 8, .ndim = 2, .dim = { 4, 5 } }, 168, false, { .type = VV_TYPE_BYTES } },
		{ { .type = VV_TYPE_F64, .width = 8, .ndim = 2, .dim = { UINT64_MAX / 8, 5 } }, 160, false, { .type = VV_TYPE_BYTES } },
		// coded by filters
		{ { .type = VV_TYPE_F64, .width = 8, .ndim = 2, .dim = { 4, 5 } }, 160, true, { .type = VV_TYPE_BYTES } },
		// structures and strings
		{ { .width = 12, .ndim = 1, .dim = { 10 } }, 120, false, { .type = VV_TYPE_BYTES, .record = 12 } },
		{ { .width = 1, .ndim = 1, .dim = { 120 } }, 120, false, { .type = VV_TYPE_BYTES } },
		{ { .width = 1024, .ndim = 1, .dim = { 2 } }, 2048, false, { .type = VV_TYPE_BYTES, .record = 1024 } },
		{ { .width = 1025, .ndim = 1, .dim = { 2 } }, 2050, false, { .type = VV_TYPE_BYTES } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vv_outline_piece p = { .len = cases[i].len, .coded = cases[i].coded };
		struct vv_form form = vv_reader_form(&cases[i].v, &p);

		if (!vv_recipe_same_form(&form, &cases[i].form)) {
			fprintf(stderr, "case %zu: type %u, record %u, row %llu, plane %llu\n", i, form.type, form.record,
				(unsigned long long)form.row, (unsigned long long)form.plane);
			exit(1);
		}
	}
}

static void peeks(void)
{
	static uint8_t bytes[3 * VV_PEEK_WINDOW];
	struct outlines_bytes b = { .p = bytes, .n = sizeof(bytes) };
	struct vv_reader_file f = outlines_file(&b, "file");
	struct vv_peek in;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 31 >> 3);
	vv_peek_init(&in, &f);
	for (size_t at = 0; at <= sizeof(bytes); at += 997)
		for (size_t n = 0; n <= VV_PEEK_WINDOW; n += 4096) {
			const uint8_t *p = vv_peek_at(&in, at, n);

			CHECK((p != NULL) == (n <= sizeof(bytes) - at));
			CHECK(!p || memcmp(p, bytes + at, n) == 0);
		}
	CHECK(vv_peek_at(&in, 0, VV_PEEK_WINDOW + 1) == NULL);
	CHECK(vv_peek_at(&in, UINT64_MAX, 1) == NULL);
	CHECK(vv_peek_at(&in, sizeof(bytes), 0) != NULL);
	CHECK(vv_peek_at(&in, sizeof(bytes) + 1, 0) == NULL);
	CHECK(vv_peek_at(&in, sizeof(bytes) - 1, 2) == NULL);
	b.reads = 0;
	for (size_t at = 0; at < VV_PEEK_WINDOW; at++)
		CHECK(vv_peek_at(&in, at, 1) != NULL);
	CHECK_EQ(b.reads, 1);
	b.fail_at = 2;
	CHECK(vv_peek_at(&in, VV_PEEK_WINDOW + 5, 1) == NULL);
	CHECK_EQ(in.rc, VV_EIO);
	CHECK(vv_peek_at(&in, 0, 1) == NULL); // nothing after a failure
	CHECK_EQ(vv_peek_number((const uint8_t *)"\1\2\3", 3, false), 0x030201);
	CHECK_EQ(vv_peek_number((const uint8_t *)"\1\2\3", 3, true), 0x010203);
}

int main(void)
{
	knows_its_readers();
	leaves_the_rest();
	tells_that_it_cannot_read();
	names_are_text();
	ends_when_full();
	drops_what_is_not_sound();
	says_what_pieces_are();
	peeks();
	return 0;
}
