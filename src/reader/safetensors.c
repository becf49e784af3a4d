/* safetensors: the length of a header in eight bytes, the header, which is a JSON object, and the
 * bytes of the tensors. {"__metadata__": {"format": "pt"}, "w": {"dtype": "BF16", "shape": [3, 4],
 * "data_offsets": [0, 24]}}; offsets count from the end of the header. */
#include "base/err.h"
#include "base/mem.h"
#include "reader/peek.h"
#include "reader/scanner.h"
#include <string.h>

enum { LENGTH_BYTES = 8, MOST_HEADER = 32 << 20, NAME = 1024, DEEP = 16 };

struct safetensors_tensor {
	struct vv_variable form;
	uint64_t from, to;
	bool has_type, has_shape, has_place;
};

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Four hexadecimal digits as UTF-8; halves of a pair become '?'. */
static size_t get_code(struct vv_scanner *t, char out[3])
{
	unsigned code = 0;

	for (unsigned i = 0; i < 4; i++, t->p++) {
		char c = t->p < t->end ? *t->p : 0;
		unsigned digit = c >= '0' && c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 32) - 'a') + 10;

		t->bad = t->bad || digit > 15;
		if (t->bad)
			return 0;
		code = code * 16 + digit;
	}
	if (code >= 0xd800 && code < 0xe000)
		code = '?';
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (char)(0xc0 | code >> 6);
		out[1] = (char)(0x80 | (code & 63));
		return 2;
	}
	out[0] = (char)(0xe0 | code >> 12);
	out[1] = (char)(0x80 | (code >> 6 & 63));
	out[2] = (char)(0x80 | (code & 63));
	return 3;
}

/* The text between quotes, cut to cap bytes with its end. */
static void get_string(struct vv_scanner *t, char *out, size_t cap)
{
	static const char escapes[] = "n\nt\tr\rb\bf\f";
	size_t n = 0;

	vv_scanner_expect(t, '"');
	while (!t->bad && t->p < t->end && *t->p != '"') {
		char c = *t->p++, wide[3] = { c };
		size_t len = 1;

		if (c == '\\' && t->p < t->end) {
			const char *known = memchr(escapes, *t->p, sizeof(escapes) - 1);

			c = *t->p++;
			wide[0] = known && (known - escapes) % 2 == 0 ? known[1] : c;
			if (c == 'u')
				len = get_code(t, wide);
		}
		if (n + len < cap) {
			memcpy(out + n, wide, len);
			n += len;
		}
	}
	out[n] = '\0';
	vv_scanner_expect(t, '"');
}

/* Any value; of nested ones only brackets and texts are looked at. */
static void skip(struct vv_scanner *t)
{
	char ignored[2];
	unsigned deep = 0;

	do {
		char c = vv_scanner_look(t);

		if (c == '"') {
			get_string(t, ignored, sizeof(ignored));
			continue;
		}
		if (c == '{' || c == '[')
			deep++;
		else if ((c == '}' || c == ']') && deep)
			deep--;
		else if (deep == 0 && (c == ',' || c == '}' || c == ']'))
			return;
		t->bad = t->bad || c == 0 || deep > DEEP;
		t->p += !t->bad;
	} while (!t->bad && (deep || (vv_scanner_look(t) != ',' && vv_scanner_look(t) != '}')));
}

/* ---- tensors --------------------------------------------------------------------------------- */

static void get_type(struct vv_scanner *t, struct safetensors_tensor *x)
{
	static const struct {
		const char *name;
		uint8_t type;
	} known[] = {
		{ "F64", VV_TYPE_F64 }, { "F32", VV_TYPE_F32 }, { "F16", VV_TYPE_F16 }, { "BF16", VV_TYPE_BF16 },
		{ "F8_E4M3", VV_TYPE_F8_E4M3 }, { "F8_E5M2", VV_TYPE_F8_E5M2 }, { "F8_E8M0", VV_TYPE_U8 }, { "I64", VV_TYPE_I64 },
		{ "I32", VV_TYPE_I32 }, { "I16", VV_TYPE_I16 }, { "I8", VV_TYPE_I8 }, { "U64", VV_TYPE_U64 }, { "U32", VV_TYPE_U32 },
		{ "U16", VV_TYPE_U16 }, { "U8", VV_TYPE_U8 }, { "BOOL", VV_TYPE_U8 }, { "C64", VV_TYPE_C64 },
	};
	char name[16];

	get_string(t, name, sizeof(name));
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(known[i].name, name) == 0) {
			x->form.type = known[i].type;
			x->form.width = (uint32_t)vv_head_type_size(known[i].type);
			x->has_type = true;
		}
}

/* Dimensions beyond the limit are merged into one. */
static void get_shape(struct vv_scanner *t, struct safetensors_tensor *x)
{
	uint64_t product = 1;
	size_t n = 0;

	vv_scanner_expect(t, '[');
	while (!t->bad && !vv_scanner_accept(t, ']')) {
		uint64_t len = vv_scanner_number(t);

		t->bad = t->bad || __builtin_mul_overflow(product, len, &product);
		if (n < VV_MAX_DIMS)
			x->form.dim[n] = len;
		n++;
		if (vv_scanner_look(t) != ']')
			vv_scanner_expect(t, ',');
	}
	x->form.ndim = (uint8_t)(n > VV_MAX_DIMS ? 1 : n);
	if (n > VV_MAX_DIMS)
		x->form.dim[0] = product;
	x->has_shape = true;
}

static void get_place(struct vv_scanner *t, struct safetensors_tensor *x)
{
	vv_scanner_expect(t, '[');
	x->from = vv_scanner_number(t);
	vv_scanner_expect(t, ',');
	x->to = vv_scanner_number(t);
	vv_scanner_expect(t, ']');
	x->has_place = true;
}

static void get_tensor(struct vv_scanner *t, struct safetensors_tensor *x)
{
	char key[32];

	vv_scanner_expect(t, '{');
	while (!t->bad && !vv_scanner_accept(t, '}')) {
		get_string(t, key, sizeof(key));
		vv_scanner_expect(t, ':');
		if (strcmp(key, "dtype") == 0)
			get_type(t, x);
		else if (strcmp(key, "shape") == 0)
			get_shape(t, x);
		else if (strcmp(key, "data_offsets") == 0)
			get_place(t, x);
		else
			skip(t);
		if (vv_scanner_look(t) != '}')
			vv_scanner_expect(t, ',');
	}
}

/* A tensor of a type that is not known is bytes. */
static int add(const struct safetensors_tensor *x, const char *name, uint64_t data, uint64_t file_len, struct vv_outline *out)
{
	struct vv_outline_piece piece = { .variable = (uint32_t)out->n_variables };
	uint64_t len = x->to - x->from, whole = x->form.width;
	struct vv_variable *v;
	char *kept;

	if (!x->has_place || !x->has_shape || x->to < x->from || __builtin_add_overflow(data, x->from, &piece.at))
		return 0;
	for (unsigned i = 0; i < x->form.ndim; i++)
		if (__builtin_mul_overflow(whole, x->form.dim[i], &whole))
			return 0;
	v = vv_reader_add_variable(out, name, strlen(name));
	if (!v)
		return VV_ENOMEM;
	kept = v->name;
	*v = x->form;
	v->name = kept;
	if (!x->has_type || whole != len) {
		v->type = VV_TYPE_BYTES;
		v->width = 1;
		v->ndim = 1;
		v->dim[0] = len;
	}
	/* a file may have been truncated */
	piece.len = piece.at >= file_len ? 0 : len < file_len - piece.at ? len : file_len - piece.at;
	v->partial = piece.len < len;
	piece.len -= piece.len % v->width;
	return piece.len ? vv_reader_add_piece(out, &piece) : 0;
}

static int parse(struct vv_scanner *t, uint64_t data, uint64_t file_len, struct vv_outline *out)
{
	char name[NAME] = "/";
	int rc = 0;

	vv_scanner_expect(t, '{');
	while (rc == 0 && !t->bad && !vv_scanner_accept(t, '}')) {
		struct safetensors_tensor x = { .form = { .width = 1 } };

		get_string(t, name + 1, sizeof(name) - 1);
		vv_scanner_expect(t, ':');
		if (strcmp(name, "/__metadata__") == 0)
			skip(t);
		else
			get_tensor(t, &x);
		if (!t->bad)
			rc = add(&x, name, data, file_len, out);
		if (vv_scanner_look(t) != '}')
			vv_scanner_expect(t, ',');
	}
	return rc;
}

static int outline(const struct vv_reader_file *f, struct vv_outline *out)
{
	uint8_t head[LENGTH_BYTES];
	struct vv_scanner t = { 0 };
	uint64_t n;
	char *text;
	int rc = f->read(f->arg, 0, head, sizeof(head));

	n = vv_peek_number(head, sizeof(head), false);
	if (rc || n > MOST_HEADER)
		return rc;
	text = vv_mem_new((size_t)n, 1);
	if (!text)
		return VV_ENOMEM;
	rc = f->read(f->arg, sizeof(head), text, (size_t)n);
	t.p = text;
	t.end = text + n;
	if (rc == 0)
		rc = parse(&t, sizeof(head) + n, f->len, out);
	vv_mem_free(text);
	return rc;
}

/* The header begins with a brace and a name. */
static bool is(const struct vv_reader_file *f, const uint8_t *head, size_t n)
{
	struct vv_scanner t = { .p = (const char *)head + LENGTH_BYTES, .end = (const char *)head + n };
	uint64_t len;

	if (n < LENGTH_BYTES + 2)
		return false;
	len = vv_peek_number(head, LENGTH_BYTES, false);
	return len >= 2 && len <= f->len - LENGTH_BYTES && head[LENGTH_BYTES] == '{' && vv_scanner_accept(&t, '{') && (vv_scanner_look(&t) == '"' || vv_scanner_look(&t) == '}');
}

extern const struct vv_reader vv_reader_safetensors;
const struct vv_reader vv_reader_safetensors = { .name = "safetensors", .is = is, .outline = outline };
