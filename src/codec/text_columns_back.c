#include "base/err.h"
#include "base/mem.h"
#include "codec/codec.h"
#include "codec/context_pool.h"
#include "codec/stream.h"
#include "codec/text_columns.h"
#include <string.h>

enum { PAD = 8, LINE = 4, DIGITS = 20, SHORT = 16, LONG = 2 * DIGITS,
       TOKEN = 2 * UINT8_MAX + 2 * LONG /* bytes written for a token, at most; some are not of it */ };

static uint64_t unzigzag(uint64_t z)
{
	return (z >> 1) ^ (0 - (z & 1));
}

static int damaged(const char *what)
{
	return vv_err_set(VV_EDAMAGED, "a block of text in columns does not decode: %s", what);
}

/* Items of a stream, joined. */
struct text_back_items {
	uint8_t *p;
	size_t n, at;
	unsigned width;
	uint64_t mask;
};

struct text_back_column {
	struct text_back_items ids, numbers;
	unsigned from;
	struct vv_text_number before;
};

struct text_back {
	struct vv_text_tokens *t;  /* of the base, and the dictionary */
	size_t n_base;             /* tokens */
	bool has_base;
	struct vv_text_lines lines;
	struct text_back_items jumps;
	struct text_back_column column[VV_TEXT_COLUMNS];
	size_t n_columns;
	uint8_t *to, *end;
};

static int get_items(struct vv_wire *w, unsigned width, size_t most, uint32_t coder, struct text_back_items *x)
{
	struct vv_stream_in s = { 0 };
	int rc = vv_stream_get(w, width, most, coder, &s);

	if (rc == 0) {
		*x = (struct text_back_items){ .n = s.n, .width = width, .mask = UINT64_MAX >> (64 - 8 * width) };
		x->p = vv_mem_grow(NULL, s.n * width + PAD, 1);
		rc = x->p ? 0 : VV_ENOMEM;
	}
	if (rc == 0)
		vv_stream_join(&s, 0, s.n, x->p);
	vv_split_fini(&s.split);
	return rc;
}

/* The next item; there must be one. */
static inline uint64_t next(struct text_back_items *x)
{
	uint64_t v;

	memcpy(&v, x->p + x->at++ * x->width, sizeof(v));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	v = __builtin_bswap64(v);
#endif
	return v & x->mask;
}

/* ---- tokens ---- */

static const char pairs[] = "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
			    "5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";

/* Writes the digits of v, at least `least` of them, so that they end at `end`; returns where they
 * begin. */
static uint8_t *put_digits(uint8_t *end, uint64_t v, unsigned least)
{
	uint8_t *p = end;

	for (; v >= 100; v /= 100)
		memcpy(p -= 2, pairs + 2 * (v % 100), 2);
	if (v >= 10)
		memcpy(p -= 2, pairs + 2 * v, 2);
	else if (v || p == end)
		*--p = (uint8_t)('0' + v);
	while (end - p < (ptrdiff_t)least)
		*--p = '0';
	return p;
}

/* Writes a number by its format. There is room for TOKEN bytes. */
static uint8_t *put_number(uint8_t *to, const struct vv_text_entry *e, int64_t value)
{
	uint8_t text[2 * LONG], *end = text + LONG, *p; /* copies of constant length are much faster */
	unsigned whole = e->zeros ? e->zeros : 1;
	size_t len, blanks;

	p = put_digits(end, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, whole + e->decimals);
	if (value < 0)
		*--p = '-';
	len = (size_t)(end - p) + (e->decimals > 0);
	if (len < e->field) {
		blanks = e->field - len;
		memset(to, ' ', blanks);
		to += blanks;
	}
	len = (size_t)(end - p) - e->decimals;
	memcpy(to, p, LONG);
	to += len;
	if (e->decimals) {
		*to++ = '.';
		memcpy(to, end - e->decimals, DIGITS);
		to += e->decimals;
	}
	return to;
}

static uint8_t *put_token(uint8_t *to, const struct text_back *b, const struct vv_text_entry *e, int64_t value)
{
	const uint8_t *prefix = b->t->dictionary.p + e->prefix;

	memcpy(to, prefix, SHORT);
	if (e->len > SHORT)
		memcpy(to, prefix, e->len);
	to += e->len;
	return e->number ? put_number(to, e, value) : to;
}

/* The same near the end of the text. */
static bool put_last_token(struct text_back *b, const struct vv_text_entry *e, int64_t value)
{
	uint8_t text[TOKEN] = { 0 };
	size_t n = (size_t)(put_token(text, b, e, value) - text);

	if (n > (size_t)(b->end - b->to))
		return false;
	memcpy(b->to, text, n);
	b->to += n;
	return true;
}

/* ---- lines ---- */

/* Reads the number of a token; like: the token of the base at its place, or SIZE_MAX. */
static bool get_number(const struct text_back *b, struct text_back_column *c, unsigned decimals, size_t like, int64_t *value)
{
	uint64_t v;

	if (c->numbers.at == c->numbers.n)
		return false;
	v = unzigzag(next(&c->numbers));
	if (c->from == VV_TEXT_FROM_BEFORE)
		v += (uint64_t)vv_text_rescale(c->before.value, c->before.decimals, decimals);
	else if (c->from == VV_TEXT_FROM_BASE && like != SIZE_MAX)
		v += (uint64_t)vv_text_rescale(b->t->value[like], b->t->entry[b->t->id[like]].decimals, decimals);
	*value = (int64_t)v;
	c->before = (struct vv_text_number){ *value, decimals };
	return true;
}

/* Reads the entry of a token. */
static const struct vv_text_entry *get_entry(const struct text_back *b, struct text_back_column *c, size_t like)
{
	uint64_t id;

	if (c->ids.at == c->ids.n)
		return NULL;
	id = next(&c->ids);
	if (b->has_base && id == 0 && like == SIZE_MAX)
		return NULL;
	if (b->has_base)
		id = id ? id - 1 : b->t->id[like];
	return id < b->t->n_entries ? &b->t->entry[id] : NULL;
}

/* The tokens of a base's line, from *first up to *end. */
static bool get_line(struct text_back *b, size_t *line, size_t *first, size_t *end)
{
	*first = *end = 0;
	if (!b->has_base)
		return true;
	if (b->jumps.at == b->jumps.n)
		return false;
	*line += unzigzag(next(&b->jumps)) + 1;
	if (*line < b->lines.n) {
		*first = b->lines.start[*line];
		*end = b->lines.start[*line + 1];
	}
	return true;
}

static bool get_lines(struct text_back *b)
{
	size_t line = SIZE_MAX, first = 0, end = 0, at = 0;
	bool begins = true;

	while (b->to < b->end) {
		struct text_back_column *c = &b->column[at];
		const struct vv_text_entry *e;
		size_t like;
		int64_t value = 0;

		if (begins && !get_line(b, &line, &first, &end))
			return false;
		like = first < end ? first++ : SIZE_MAX;
		e = at < b->n_columns ? get_entry(b, c, like) : NULL;
		if (!e || (e->number && !get_number(b, c, e->decimals, like, &value)))
			return false;
		if (b->end - b->to >= TOKEN)
			b->to = put_token(b->to, b, e, value);
		else if (!put_last_token(b, e, value))
			return false;
		begins = vv_text_ends_line(b->t, e);
		at = begins ? 0 : at + 1 < VV_TEXT_COLUMNS ? at + 1 : at;
	}
	return true;
}

/* ---- the block ---- */

static int get_column(struct vv_wire *w, struct text_back_column *c, size_t *most, uint32_t coder)
{
	unsigned head = vv_wire_u8(w), wide = head >> 2 & 1, width = head >> 3;
	int rc;

	c->from = head & 3;
	if (w->bad || c->from >= VV_TEXT_FROMS || !width || width > sizeof(uint64_t))
		return damaged("the head of a column is none");
	rc = get_items(w, 1 + wide, *most, coder, &c->ids);
	*most -= c->ids.n;
	return rc ? rc : get_items(w, width, c->ids.n, coder, &c->numbers);
}

static int get_dictionary(struct text_back *b, struct vv_wire *w, uint32_t coder)
{
	struct text_back_items x = { 0 };
	int rc = get_items(w, 1, VV_TEXT_ENTRIES * (VV_TEXT_PREFIX + 4), coder, &x);

	if (rc == 0 && !vv_text_tokens_read(b->t, x.p, x.n))
		rc = b->t->dictionary.failed ? VV_ENOMEM : damaged("its dictionary is none");
	if (rc == 0 && !vv_buf_room(&b->t->dictionary, SHORT)) /* put_token reads so far */
		rc = VV_ENOMEM;
	vv_mem_free(x.p);
	return rc;
}

static int get_columns(struct text_back *b, struct vv_wire *w, size_t raw_len, uint32_t coder)
{
	size_t most = vv_text_tokens_most(raw_len);
	int rc = b->has_base ? get_items(w, LINE, most, coder, &b->jumps) : 0;

	b->n_columns = vv_wire_u8(w) + 1u;
	for (size_t i = 0; rc == 0 && i < b->n_columns; i++)
		rc = get_column(w, &b->column[i], &most, coder);
	return rc || !vv_wire_left(w) ? rc : damaged("bytes are left over");
}

static int get_base(struct text_back *b, const void *before, size_t n_before)
{
	int rc = n_before > VV_TEXT_LARGEST ? damaged("its base is too long") : vv_text_tokens_init(b->t, n_before);

	if (rc == 0)
		rc = vv_text_tokens_scan(b->t, before, n_before);
	if (rc == VV_TEXT_DIFFERS)
		rc = damaged("its base is no text in columns");
	return rc ? rc : vv_text_columns_lines(&b->lines, b->t, b->t->n);
}

static bool is_left_over(const struct text_back *b)
{
	bool left = b->jumps.at < b->jumps.n;

	for (size_t i = 0; i < b->n_columns; i++)
		left |= b->column[i].ids.at < b->column[i].ids.n || b->column[i].numbers.at < b->column[i].numbers.n;
	return left;
}

static uint32_t coder_of(unsigned head)
{
	return head & 3;
}

/* Text that is no table. */
static int get_plain(struct vv_wire *w, uint32_t coder, uint8_t *to, size_t raw_len)
{
	struct vv_stream_in s = { 0 };
	int rc = vv_stream_get(w, 1, raw_len, coder, &s);

	if (rc == 0 && (s.n != raw_len || vv_wire_left(w)))
		rc = damaged("its text has another length");
	if (rc == 0)
		vv_stream_join(&s, 0, s.n, to);
	vv_split_fini(&s.split);
	return rc;
}

static int get_text(struct text_back *b, const void *before, size_t n_before, const void *from, size_t n, size_t raw_len)
{
	struct vv_wire w = vv_wire_over(from, n);
	unsigned head = vv_wire_u8(&w);
	uint32_t coder = coder_of(head);
	int rc;

	if (head >> 2 == VV_TEXT_PLAIN >> 2 && coder_of(head) <= VV_CODEC_ZSTD && !n_before)
		return get_plain(&w, coder_of(head), b->to, raw_len);
	b->has_base = head & VV_TEXT_HAS_BASE;
	if (w.bad || raw_len > VV_TEXT_LARGEST || head & ~(unsigned)(3 | VV_TEXT_HAS_BASE) || coder > VV_CODEC_ZSTD || b->has_base != (n_before > 0))
		return damaged("its head is none");
	rc = get_base(b, before, n_before);
	if (rc == 0)
		rc = get_dictionary(b, &w, coder);
	if (rc == 0)
		rc = get_columns(b, &w, raw_len, coder);
	if (rc == 0 && (!get_lines(b) || is_left_over(b)))
		rc = damaged("its tokens are none");
	return rc;
}

int vv_text_columns_back_decode_after(const void *before, size_t n_before, const void *from, size_t n, void *to, size_t raw_len)
{
	struct text_back *b = vv_mem_new(1, sizeof(*b));
	int rc = VV_ENOMEM;

	if (b)
		b->t = vv_mem_new(1, sizeof(*b->t));
	if (b && b->t) {
		b->to = to;
		b->end = b->to + raw_len;
		rc = get_text(b, before, n_before, from, n, raw_len);
		for (size_t i = 0; i < VV_TEXT_COLUMNS; i++) {
			vv_mem_free(b->column[i].ids.p);
			vv_mem_free(b->column[i].numbers.p);
		}
		vv_mem_free(b->jumps.p);
		vv_mem_free(b->lines.start);
		vv_text_tokens_fini(b->t);
		vv_mem_free(b->t);
	}
	vv_mem_free(b);
	return rc;
}

/* Items of some bytes for each token, which has a few bytes of text; as much for a base. */
size_t vv_text_columns_back_takes(size_t n, size_t raw_len)
{
	(void)n;
	return 4 * raw_len;
}
