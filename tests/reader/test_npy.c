// .npy and .npz, made by hand: what NumPy writes, what it may write, and what it never would.
#include "support/formats.h"
#include "support/outlines.h"
#include "vv_test.h"

static const uint8_t data[4096];

struct npy_case {
	const char *descr, *shape;
	bool fortran_order;
	size_t n;     // bytes of the array
	size_t piece; // bytes that are found
	struct vv_form form;
};

static const struct npy_case cases[] = {
	{ "'<f8'", "(3, 4, 5)", false, 480, 480, { .type = VV_TYPE_F64, .row = 5, .plane = 20 } },
	{ "'<f8'", "(3, 4, 5)", true, 480, 480, { .type = VV_TYPE_F64, .row = 3, .plane = 12 } },
	{ "'>f4'", "(10,)", false, 40, 40, { .type = VV_TYPE_F32, .swapped = true } },
	{ "'<f4'", "(5, 2)", false, 40, 40, { .type = VV_TYPE_F32, .row = 2 } },
	{ "'<i2'", "()", false, 2, 2, { .type = VV_TYPE_I16 } },
	{ "'|u1'", "(7, 7)", false, 49, 49, { .type = VV_TYPE_U8, .row = 7 } },
	{ "'|b1'", "(9,)", false, 9, 9, { .type = VV_TYPE_U8 } },
	{ "'<c8'", "(4, 4)", false, 128, 128, { .type = VV_TYPE_C64, .row = 4 } },
	{ "'>c16'", "(4,)", false, 64, 64, { .type = VV_TYPE_C128, .swapped = true } },
	{ "'<u8'", "(6,)", false, 48, 48, { .type = VV_TYPE_U64 } },
	{ "'<f2'", "(6, 2)", false, 24, 24, { .type = VV_TYPE_F16, .row = 2 } },
	{ "'<f1'", "(6, 2)", false, 12, 12, { .type = VV_TYPE_F8_E5M2, .row = 2 } },
	{ "'<V2'", "(6, 2)", false, 24, 24, { .record = 2 } },
	{ "'<M8[ns]'", "(6,)", false, 48, 48, { .type = VV_TYPE_I64 } },
	{ "'|S12'", "(5,)", false, 60, 60, { .record = 12 } },
	{ "'<U5'", "(3,)", false, 60, 60, { .record = 20 } },
	{ "'|V24'", "(3,)", false, 72, 72, { .record = 24 } },
	{ "[('x', '<f4'), ('v', '<f8', (3,)), ('id', '<i8')]", "(4,)", false, 144, 144, { .record = 36 } },
	{ "[('p', [('x', '<f4'), ('y', '<f4')]), (('a title', 'q'), '|i1', (2, 2))]", "(10,)", false, 120, 120, { .record = 12 } },
	{ "\"<f8\"", "(3L, 4L)", false, 96, 96, { .type = VV_TYPE_F64, .row = 4 } },
	{ "[('it\\'s', '<f4'), ('b', '<f4', 2)]", "(2,)", false, 24, 24, { .record = 12 } },
	{ "'<f8'", "(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3)", false, 48, 48, { .type = VV_TYPE_F64 } },
	// cut short
	{ "'<f8'", "(3, 4, 5)", false, 100, 96, { .type = VV_TYPE_F64, .row = 5, .plane = 20 } },
	{ "'<f8'", "(3, 4, 5)", false, 7, 0, { .type = VV_TYPE_BYTES } },
	// nothing to be found
	{ "'<f8'", "(0, 5)", false, 0, 0, { .type = VV_TYPE_BYTES } },
	{ "'|O'", "(3,)", false, 400, 0, { .type = VV_TYPE_BYTES } },
	{ "'|S0'", "(3,)", false, 0, 0, { .type = VV_TYPE_BYTES } },
	{ "'<f8'", "(18446744073709551615, 18446744073709551615)", false, 400, 0, { .type = VV_TYPE_BYTES } },
	{ "'<f8'", "(99999999999999999999999,)", false, 400, 0, { .type = VV_TYPE_BYTES } },
	{ "'<f8'", "(-1,)", false, 400, 0, { .type = VV_TYPE_BYTES } },
	{ "'<f8'", "(3", false, 400, 0, { .type = VV_TYPE_BYTES } },
	{ "''", "(3,)", false, 400, 0, { .type = VV_TYPE_BYTES } },
	{ "'<'", "(3,)", false, 400, 0, { .type = VV_TYPE_BYTES } },
	{ "'<f8", "(3,)", false, 400, 0, { .type = VV_TYPE_BYTES } },
	{ "'<U4611686018427387905'", "(3,)", false, 400, 0, { .type = VV_TYPE_BYTES } },
	{ "[('a', '<f4')", "(3,)", false, 400, 0, { .type = VV_TYPE_BYTES } },
	{ "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "(3,)", false, 400, 0, { .type = VV_TYPE_BYTES } },
	{ "[('a', [('a', [('a', [('a', [('a', [('a', [('a', [('a', [('a', [('a', [('a', [('a', [('a', [('a', [('a', [('a', [('a', [('a', '<f4')])])])]"
	  ")])])])])])])])])])])])])])]",
	  "(3,)", false, 400, 0, { .type = VV_TYPE_BYTES } },
};

static void understands(const struct npy_case *c, unsigned version)
{
	struct vv_buf b = { 0 };
	struct vv_outline o;

	formats_npy(&b, version, c->descr, c->fortran_order, c->shape, data, c->n);
	o = outlines_get(b.p, b.n, "some/where/density_0003.npy", "npy");
	CHECK_EQ(o.n_pieces, c->piece ? 1 : 0);
	if (c->piece) {
		struct vv_form form = vv_reader_form(&o.variable[0], &o.piece[0]);

		CHECK_STR(o.variable[0].name, "/density_0003");
		CHECK_EQ(o.piece[0].len, c->piece);
		CHECK_EQ(o.piece[0].at, b.n - c->n);
		if (!vv_recipe_same_form(&form, &c->form)) {
			fprintf(stderr, "%s %s: type %u, record %u, row %llu, plane %llu\n", c->descr, c->shape, form.type, form.record,
				(unsigned long long)form.row, (unsigned long long)form.plane);
			exit(1);
		}
	}
	vv_reader_outline_fini(&o);
	vv_buf_fini(&b);
}

static void survives_damage(void)
{
	struct vv_buf b = { 0 };

	formats_npy(&b, 1, "[('x', '<f4'), ('v', '<f8', (3,)), ('id', '<i8')]", false, "(4, 2)", data, 288);
	outlines_damage(b.p, b.n, 128, "a.npy");
	b.n = 0;
	formats_npy(&b, 2, "'>f8'", true, "(4, 2, 3)", data, 192);
	outlines_damage(b.p, b.n, 128, "a.npy");
	b.p[6] = 4; // a version that is not known
	vv_buf_fini(&b);
}

static void put(struct vv_buf *b, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++) {
		uint8_t byte = (uint8_t)(v >> (8 * i));

		vv_buf_add(b, &byte, 1);
	}
}

struct member {
	const char *name;
	unsigned method;
	struct vv_buf bytes;
	uint64_t at;
};

static void put_local(struct vv_buf *b, struct member *m)
{
	m->at = b->n;
	put(b, 0x04034b50, 4);
	put(b, 45, 2);
	put(b, 0, 2);
	put(b, m->method, 2);
	put(b, 0, 8);
	put(b, UINT32_MAX, 4); // as NumPy writes it: sizes are in the extra field
	put(b, UINT32_MAX, 4);
	put(b, strlen(m->name), 2);
	put(b, 20, 2);
	vv_buf_add(b, m->name, strlen(m->name));
	put(b, 1, 2);
	put(b, 16, 2);
	put(b, m->bytes.n, 8);
	put(b, m->bytes.n, 8);
	vv_buf_add(b, m->bytes.p, m->bytes.n);
}

static void put_entry(struct vv_buf *b, const struct member *m, bool wide)
{
	put(b, 0x02014b50, 4);
	put(b, 45, 2);
	put(b, 45, 2);
	put(b, 0, 2);
	put(b, m->method, 2);
	put(b, 0, 8);
	put(b, wide ? UINT32_MAX : m->bytes.n, 4);
	put(b, wide ? UINT32_MAX : m->bytes.n, 4);
	put(b, strlen(m->name), 2);
	put(b, wide ? 32 : 0, 2);
	put(b, 3, 2);
	put(b, 0, 8);
	put(b, wide ? UINT32_MAX : m->at, 4);
	vv_buf_add(b, m->name, strlen(m->name));
	if (wide) {
		put(b, 0x5455, 2); // somebody else's
		put(b, 0, 2);
		put(b, 1, 2);
		put(b, 24, 2);
		put(b, m->bytes.n, 8);
		put(b, m->bytes.n, 8);
		put(b, m->at, 8);
	}
	vv_buf_add(b, "why", 3);
}

static void put_zip(struct vv_buf *b, struct member *m, unsigned n, bool wide)
{
	uint64_t directory, end;

	for (unsigned i = 0; i < n; i++)
		put_local(b, &m[i]);
	directory = b->n;
	for (unsigned i = 0; i < n; i++)
		put_entry(b, &m[i], wide);
	end = b->n;
	if (wide) {
		put(b, 0x06064b50, 4);
		put(b, 44, 8);
		put(b, 45, 2);
		put(b, 45, 2);
		put(b, 0, 8);
		put(b, n, 8);
		put(b, n, 8);
		put(b, end - directory, 8);
		put(b, directory, 8);
		put(b, 0x07064b50, 4);
		put(b, 0, 4);
		put(b, end, 8);
		put(b, 1, 4);
	}
	put(b, 0x06054b50, 4);
	put(b, 0, 4);
	put(b, wide ? UINT16_MAX : n, 2);
	put(b, wide ? UINT16_MAX : n, 2);
	put(b, end - directory, 4);
	put(b, wide ? UINT32_MAX : directory, 4);
	put(b, 0, 2);
	CHECK_EQ(vv_buf_check(b), 0);
}

static void finds_members(bool wide)
{
	struct member m[] = { { .name = "density.npy" }, { .name = "packed.npy", .method = 8 }, { .name = "velocity.npy" }, { .name = "README" } };
	struct vv_buf b = { 0 };
	struct vv_outline o;
	uint32_t number;

	formats_npy(&m[0].bytes, 1, "'<f8'", false, "(4, 5)", data, 160);
	formats_npy(&m[1].bytes, 1, "'<f8'", false, "(4, 5)", data, 160);
	formats_npy(&m[2].bytes, 1, "'<f4'", false, "(3, 4, 5)", data, 240);
	vv_buf_add(&m[3].bytes, "What is this?", 13);
	put_zip(&b, m, 4, wide);
	o = outlines_get(b.p, b.n, "state.npz", "npz");
	CHECK_EQ(o.n_pieces, 2);
	outlines_find(&o, "/density", &number);
	CHECK_EQ(o.piece[0].variable, number);
	CHECK_EQ(o.piece[0].len, 160);
	CHECK_EQ(o.piece[0].at, m[0].at + 30 + 11 + 20 + m[0].bytes.n - 160);
	outlines_find(&o, "/velocity", &number);
	CHECK_EQ(o.piece[1].variable, number);
	CHECK_EQ(o.piece[1].len, 240);
	vv_reader_outline_fini(&o);
	outlines_damage(b.p, b.n, b.n, "state.npz");
	vv_buf_fini(&b);
	for (int i = 0; i < 4; i++)
		vv_buf_fini(&m[i].bytes);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (unsigned version = 1; version <= 3; version++)
			understands(&cases[i], version);
	survives_damage();
	finds_members(false);
	finds_members(true);
	return 0;
}
