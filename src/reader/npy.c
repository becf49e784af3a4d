/* A header, which is a Python dictionary: {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4),
 * }; then the array. The descr of a structure is a list of its fields: [('x', '<f4'), ('v', '<f8',
 * (3,))]. As in numpy/lib/format.py. */
#include "reader/npy.h"
#include "base/err.h"
#include "base/mem.h"
#include "reader/peek.h"
#include "reader/scanner.h"
#include <string.h>

enum {
	MAX_HEADER = 1 << 20,
	MAX_NESTING = 16, /* of structures */
	MAGIC_BYTES = 6,
};

static const char magic[] = "\x93NUMPY";

struct npy_array {
	struct vv_variable form; /* type, width, swapped, shape */
	bool fortran_order, has_descr, has_shape;
};

/* Returns the text between quotes; escapes are not decoded. */
static struct vv_scanner get_string(struct vv_scanner *t)
{
	struct vv_scanner s = { 0 };
	char quote = vv_scanner_look(t);

	t->bad = t->bad || (quote != '\'' && quote != '"');
	if (t->bad)
		return s;
	s.p = ++t->p;
	while (t->p < t->end && *t->p != quote)
		t->p += *t->p == '\\' && t->p + 1 < t->end ? 2 : 1;
	s.end = t->p;
	vv_scanner_expect(t, quote);
	return s;
}

static uint64_t get_number(struct vv_scanner *t)
{
	uint64_t v = vv_scanner_number(t);

	vv_scanner_accept(t, 'L'); /* written by Python 2 */
	return v;
}

static bool is_string(struct vv_scanner s, const char *word)
{
	return s.p && (size_t)(s.end - s.p) == strlen(word) && memcmp(s.p, word, strlen(word)) == 0;
}

/* Parses (3, 4) or 3, and returns the product. Stores the dimensions in `form` unless that is NULL;
 * those beyond the limit are merged into one. */
static uint64_t get_shape(struct vv_scanner *t, struct vv_variable *form)
{
	uint64_t product = 1;
	size_t n = 0;

	if (!vv_scanner_accept(t, '('))
		return get_number(t);
	while (!t->bad && !vv_scanner_accept(t, ')')) {
		uint64_t len = get_number(t);

		t->bad = t->bad || __builtin_mul_overflow(product, len, &product);
		if (form && n < VV_MAX_DIMS)
			form->dim[n] = len;
		n++;
		if (vv_scanner_look(t) != ')')
			vv_scanner_expect(t, ',');
	}
	if (form)
		form->ndim = (uint8_t)(n > VV_MAX_DIMS ? 1 : n);
	if (form && n > VV_MAX_DIMS)
		form->dim[0] = product;
	return product;
}

static uint8_t type_of(char kind, uint64_t size)
{
	static const struct {
		char kind;
		uint8_t size, type;
	} known[] = {
		{ 'i', 1, VV_TYPE_I8 },  { 'i', 2, VV_TYPE_I16 }, { 'i', 4, VV_TYPE_I32 }, { 'i', 8, VV_TYPE_I64 },
		{ 'u', 1, VV_TYPE_U8 },  { 'u', 2, VV_TYPE_U16 }, { 'u', 4, VV_TYPE_U32 }, { 'u', 8, VV_TYPE_U64 },
		{ 'f', 4, VV_TYPE_F32 }, { 'f', 8, VV_TYPE_F64 }, { 'c', 8, VV_TYPE_C64 }, { 'c', 16, VV_TYPE_C128 },
		{ 'b', 1, VV_TYPE_U8 },  { 'm', 8, VV_TYPE_I64 }, { 'M', 8, VV_TYPE_I64 }, { 'f', 2, VV_TYPE_F16 },
		{ 'f', 1, VV_TYPE_F8_E5M2 }, /* as ml_dtypes has it; its other types are 'V' */
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].kind == kind && known[i].size == size)
			return known[i].type;
	return VV_TYPE_BYTES;
}

/* Parses "<f8", "|S12", "<U5", "<M8[ns]": returns the width, and stores the rest in `form` unless
 * that is NULL. Objects are pickled elsewhere and have no width. */
static uint64_t get_simple(struct vv_scanner *t, struct vv_variable *form)
{
	struct vv_scanner s = get_string(t);
	bool swapped = s.p && s.p < s.end && *s.p == '>';
	uint64_t width;
	char kind;

	if (s.p && s.p < s.end && memchr("<>|=", *s.p, 4))
		s.p++;
	if (!s.p || s.p >= s.end) {
		t->bad = true;
		return 0;
	}
	kind = *s.p++;
	width = get_number(&s);
	t->bad = t->bad || s.bad || !memchr("biufcmMSUVa", kind, 11) || (kind == 'U' && __builtin_mul_overflow(width, 4, &width));
	if (form && !t->bad) {
		form->type = type_of(kind, width);
		form->swapped = swapped;
	}
	return t->bad ? 0 : width;
}

static uint64_t get_descr(struct vv_scanner *t, struct vv_variable *form, unsigned depth);

/* ('name', descr) or ('name', descr, shape); the name may be ('title', 'name'). */
static uint64_t get_field(struct vv_scanner *t, unsigned depth)
{
	uint64_t width, times = 1;

	vv_scanner_expect(t, '(');
	if (vv_scanner_accept(t, '(')) {
		get_string(t);
		vv_scanner_expect(t, ',');
		get_string(t);
		vv_scanner_expect(t, ')');
	} else {
		get_string(t);
	}
	vv_scanner_expect(t, ',');
	width = get_descr(t, NULL, depth);
	if (vv_scanner_accept(t, ',') && vv_scanner_look(t) != ')')
		times = get_shape(t, NULL);
	vv_scanner_expect(t, ')');
	t->bad = t->bad || __builtin_mul_overflow(width, times, &width);
	return t->bad ? 0 : width;
}

static uint64_t get_descr(struct vv_scanner *t, struct vv_variable *form, unsigned depth)
{
	uint64_t width = 0;

	if (!vv_scanner_accept(t, '['))
		return get_simple(t, form);
	t->bad = t->bad || depth == MAX_NESTING;
	while (!t->bad && !vv_scanner_accept(t, ']')) {
		uint64_t field = get_field(t, depth + 1);

		t->bad = t->bad || __builtin_add_overflow(width, field, &width);
		if (vv_scanner_look(t) != ']')
			vv_scanner_expect(t, ',');
	}
	return t->bad ? 0 : width;
}

static void get_entry(struct vv_scanner *t, struct npy_array *a)
{
	struct vv_scanner key = get_string(t);
	uint64_t width;

	vv_scanner_expect(t, ':');
	if (is_string(key, "descr")) {
		width = get_descr(t, &a->form, 0);
		t->bad = t->bad || width == 0 || width > UINT32_MAX;
		a->form.width = (uint32_t)width;
		a->has_descr = true;
	} else if (is_string(key, "shape")) {
		get_shape(t, &a->form);
		a->has_shape = true;
	} else if (is_string(key, "fortran_order")) {
		a->fortran_order = vv_scanner_look(t) == 'T';
		while (t->p < t->end && *t->p >= 'A' && *t->p <= 'z')
			t->p++;
	} else {
		t->bad = true;
	}
	if (vv_scanner_look(t) != '}')
		vv_scanner_expect(t, ',');
}

static bool parse(const char *p, size_t n, struct npy_array *a)
{
	struct vv_scanner t = { p, p + n, false };

	vv_scanner_expect(&t, '{');
	while (!t.bad && !vv_scanner_accept(&t, '}'))
		get_entry(&t, a);
	return !t.bad && a->has_descr && a->has_shape;
}

/* Dimensions are named from the slowest to the fastest. */
static void reverse(struct vv_variable *v)
{
	for (unsigned i = 0; i < v->ndim / 2u; i++) {
		uint64_t other = v->dim[v->ndim - 1 - i];

		v->dim[v->ndim - 1 - i] = v->dim[i];
		v->dim[i] = other;
	}
}

/* Adds the present part of the array, in whole elements: a file may have been truncated. */
static int add(const struct npy_array *a, uint64_t at, uint64_t len, const char *name, struct vv_outline *out)
{
	struct vv_outline_piece piece = { .at = at, .len = a->form.width, .variable = (uint32_t)out->n_variables };
	struct vv_variable *v = vv_reader_add_variable(out, name, strlen(name));
	char *kept;

	if (!v)
		return VV_ENOMEM;
	kept = v->name;
	*v = a->form;
	v->name = kept;
	v->columns = a->fortran_order;
	if (v->columns)
		reverse(v);
	for (unsigned i = 0; i < v->ndim; i++)
		if (__builtin_mul_overflow(piece.len, v->dim[i], &piece.len))
			return 0;
	v->partial = piece.len > len;
	if (v->partial)
		piece.len = len - len % v->width;
	return piece.len ? vv_reader_add_piece(out, &piece) : 0;
}

int vv_npy_outline(const struct vv_reader_file *f, uint64_t at, uint64_t len, const char *name, struct vv_outline *out)
{
	struct npy_array a = { .form = { .width = 1 } };
	uint8_t head[MAGIC_BYTES + 2 + 4];
	size_t prefix, n;
	char *text;
	int rc;

	if (at > f->len || len > f->len - at || len < sizeof(head))
		return 0;
	rc = f->read(f->arg, at, head, sizeof(head));
	if (rc || memcmp(head, magic, MAGIC_BYTES) != 0 || head[6] == 0 || head[6] > 3)
		return rc;
	prefix = MAGIC_BYTES + 2 + (head[6] == 1 ? 2 : 4);
	n = (size_t)vv_peek_number(head + MAGIC_BYTES + 2, head[6] == 1 ? 2 : 4, false);
	if (n > MAX_HEADER || n > len - prefix)
		return 0;
	text = vv_mem_new(n, 1);
	if (!text)
		return VV_ENOMEM;
	rc = n ? f->read(f->arg, at + prefix, text, n) : 0;
	if (rc == 0 && parse(text, n, &a))
		rc = add(&a, at + prefix + n, len - prefix - n, name, out);
	vv_mem_free(text);
	return rc;
}

/* A file has one array, so the file's name identifies it. */
static int outline(const struct vv_reader_file *f, struct vv_outline *out)
{
	const char *slash = strrchr(f->name, '/'), *base = slash ? slash + 1 : f->name;
	size_t n = strlen(base);
	char *name;
	int rc;

	if (n > 4 && strcmp(base + n - 4, ".npy") == 0)
		n -= 4;
	name = vv_mem_printf("/%.*s", (int)(n < 512 ? n : 512), base);
	if (!name)
		return VV_ENOMEM;
	rc = vv_npy_outline(f, 0, f->len, name, out);
	vv_mem_free(name);
	return rc;
}

static bool is(const struct vv_reader_file *f, const uint8_t *head, size_t n)
{
	(void)f;
	return n > MAGIC_BYTES && memcmp(head, magic, MAGIC_BYTES) == 0;
}

extern const struct vv_reader vv_reader_npy;
const struct vv_reader vv_reader_npy = { .name = "npy", .is = is, .outline = outline };
