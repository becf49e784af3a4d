/* Tables as text: rows of numbers and words. The text is divided into tokens (text_tokens.h). The
 * entries and the numbers of each column are streams, and each is compressed by itself. A number is
 * stored as it is, or as the difference to the last one in its column. With an earlier text as the
 * base, it may also be the difference to the number at its place there. */
#include "codec/text_columns.h"
#include "base/err.h"
#include "base/mem.h"
#include "codec/codec.h"
#include "codec/context_pool.h"
#include "codec/stream.h"
#include <string.h>

enum {
	WORD = 8,     /* bytes of a number before it is shortened */
	ENTRY = 2,    /* bytes of an entry's number, at most */
	LINE = 4,     /* and of a line's */
	SHARED = 1,   /* of several lines */
	WORDS = 6,    /* level for text that is no table */
};

/* The expected gain of differences must be clear: their noise is that of both numbers. */
static const double clear_gain = 0.97;

static uint64_t zigzag(uint64_t d)
{
	return (d << 1) ^ (0 - (d >> 63));
}

struct text_column {
	size_t n, numbers;               /* tokens, and those with a number */
	size_t at, number_at;            /* where the next ones go */
	uint64_t bits[VV_TEXT_FROMS];    /* of all differences */
	uint64_t used[VV_TEXT_FROMS];    /* the bits that any of them has */
	enum vv_text_from from;
	struct vv_text_number before;
};

struct text_coder {
	struct vv_text_tokens *t;
	size_t first;                    /* token of the text; those before it are the base's */
	bool has_base;
	struct vv_text_lines lines;
	uint32_t *like;                  /* for each token of the text: the one of the base, plus 1 */
	uint8_t *jumps, *ids, *numbers;  /* the stored bytes, little-endian */
	size_t n_jumps, n_columns;
	struct text_column column[VV_TEXT_COLUMNS];
};

/* ---- lines of the base ---- */

int vv_text_columns_lines(struct vv_text_lines *l, const struct vv_text_tokens *t, size_t n_tokens)
{
	l->start = vv_mem_grow(NULL, n_tokens + 1, sizeof(*l->start));
	if (!l->start)
		return VV_ENOMEM;
	for (size_t i = 0; i < n_tokens; i++)
		if (i == 0 || vv_text_ends_line(t, &t->entry[t->id[i - 1]]))
			l->start[l->n++] = (uint32_t)i;
	l->start[l->n] = (uint32_t)n_tokens;
	return 0;
}

/* Do two lines begin with the same token? */
static bool same_first(const struct vv_text_tokens *t, size_t a, size_t b)
{
	return t->id[a] == t->id[b] && t->value[a] == t->value[b];
}

static size_t slot_of(const struct vv_text_tokens *t, size_t token, unsigned bits)
{
	return (size_t)((((uint64_t)t->value[token] ^ (uint64_t)t->id[token] << 48) * 0x9e3779b97f4a7c15) >> (64 - bits));
}

struct text_line_table {
	uint32_t *slot; /* a line of the base plus 2; SHARED */
	unsigned bits;
};

static int list_lines(const struct text_coder *c, struct text_line_table *x)
{
	for (x->bits = 4; (size_t)1 << x->bits < 2 * c->lines.n; x->bits++)
		;
	x->slot = vv_mem_new((size_t)1 << x->bits, sizeof(*x->slot));
	if (!x->slot)
		return VV_ENOMEM;
	for (size_t i = 0; i < c->lines.n; i++) {
		uint32_t *s = &x->slot[slot_of(c->t, c->lines.start[i], x->bits)];

		*s = *s ? SHARED : (uint32_t)i + 2;
	}
	return 0;
}

/* The line of the base for the line that begins at a token. It is the expected line if both begin
 * alike, else the only line that begins like it. */
static size_t find_line(const struct text_coder *c, const struct text_line_table *x, size_t token, size_t expected)
{
	uint32_t s;

	if (expected < c->lines.n && same_first(c->t, c->lines.start[expected], token))
		return expected;
	s = x->slot[slot_of(c->t, token, x->bits)];
	return s > SHARED && same_first(c->t, c->lines.start[s - 2], token) ? s - 2 : expected;
}

static void put_little(uint8_t *p, uint64_t v, size_t n)
{
	for (size_t k = 0; k < n; k++)
		p[k] = (uint8_t)(v >> 8 * k);
}

/* Finds a line of the base for each line, and so a token for each token. */
static int find_lines(struct text_coder *c)
{
	const struct vv_text_tokens *t = c->t;
	struct text_line_table x;
	size_t line = 0, expected = 0, place = 0;
	int rc = list_lines(c, &x);

	for (size_t i = c->first; rc == 0 && i < t->n; i++, place++) {
		if (i == c->first || vv_text_ends_line(t, &t->entry[t->id[i - 1]])) {
			line = find_line(c, &x, i, expected);
			put_little(c->jumps + LINE * c->n_jumps++, zigzag((uint64_t)line - expected), LINE);
			expected = line + 1;
			place = 0;
		}
		c->like[i - c->first] = line < c->lines.n && place < c->lines.start[line + 1] - c->lines.start[line]
						? (uint32_t)(c->lines.start[line] + place + 1) : 0;
	}
	vv_mem_free(x.slot);
	return rc;
}

/* ---- columns ---- */

/* The token of the base at the same place; NULL: there is none. */
static bool has_like(const struct text_coder *c, size_t i, size_t *like)
{
	*like = c->has_base && c->like[i - c->first] ? c->like[i - c->first] - 1 : 0;
	return c->has_base && c->like[i - c->first];
}

/* The number from which the number of token i is subtracted, in the decimals of that token. */
static int64_t expected_number(const struct text_coder *c, size_t i, const struct text_column *col, enum vv_text_from from)
{
	unsigned decimals = c->t->entry[c->t->id[i]].decimals;
	size_t like;

	if (from == VV_TEXT_FROM_BEFORE)
		return vv_text_rescale(col->before.value, col->before.decimals, decimals);
	if (from == VV_TEXT_FROM_BASE && has_like(c, i, &like))
		return vv_text_rescale(c->t->value[like], c->t->entry[c->t->id[like]].decimals, decimals);
	return 0;
}

static void note_number(struct text_column *col, int64_t value, unsigned decimals)
{
	col->before = (struct vv_text_number){ value, decimals };
}

/* Adds up the bits of the differences of each kind. */
static void measure(struct text_coder *c)
{
	const struct vv_text_tokens *t = c->t;

	for (size_t i = c->first; i < t->n; i++) {
		const struct vv_text_entry *e = &t->entry[t->id[i]];
		struct text_column *col = &c->column[t->at[i]];

		col->n++;
		if (!e->number)
			continue;
		col->numbers++;
		for (unsigned from = 0; from < (c->has_base ? VV_TEXT_FROMS : VV_TEXT_FROM_BASE); from++) {
			uint64_t z = zigzag((uint64_t)t->value[i] - (uint64_t)expected_number(c, i, col, from));

			col->bits[from] += 64 - (unsigned)__builtin_clzll(z | 1) - !z;
			col->used[from] |= z;
		}
		note_number(col, t->value[i], e->decimals);
	}
}

static void choose_from(struct text_coder *c)
{
	size_t at = 0, number_at = 0;

	while (c->n_columns < VV_TEXT_COLUMNS && c->column[c->n_columns].n)
		c->n_columns++;
	for (size_t k = 0; k < c->n_columns; k++) {
		struct text_column *col = &c->column[k];

		for (unsigned from = 1; from < (c->has_base ? VV_TEXT_FROMS : VV_TEXT_FROM_BASE); from++)
			if ((double)col->bits[from] < (double)col->bits[col->from] * clear_gain)
				col->from = from;
		col->before = (struct vv_text_number){ 0 };
		col->at = at;
		col->number_at = number_at;
		at += col->n;
		number_at += col->numbers;
	}
}

/* With a base, 0 is the entry of the token there. */
static unsigned code_of_entry(const struct text_coder *c, size_t i)
{
	size_t like;

	if (!c->has_base)
		return c->t->id[i];
	return has_like(c, i, &like) && c->t->id[like] == c->t->id[i] ? 0 : c->t->id[i] + 1u;
}

static void gather(struct text_coder *c)
{
	const struct vv_text_tokens *t = c->t;

	for (size_t i = c->first; i < t->n; i++) {
		const struct vv_text_entry *e = &t->entry[t->id[i]];
		struct text_column *col = &c->column[t->at[i]];

		put_little(c->ids + ENTRY * col->at++, code_of_entry(c, i), ENTRY);
		if (!e->number)
			continue;
		put_little(c->numbers + WORD * col->number_at++,
			   zigzag((uint64_t)t->value[i] - (uint64_t)expected_number(c, i, col, col->from)), WORD);
		note_number(col, t->value[i], e->decimals);
	}
}

/* ---- streams ---- */

/* Stores n items by their low bytes, of which there are `width`. */
static int put_low(struct vv_stream_out *o, const uint8_t *p, size_t n, unsigned item, unsigned width)
{
	uint8_t *plane = vv_context_pool_room(n * item);
	int rc;

	if (!plane)
		return VV_ENOMEM;
	vv_split_apart(p, n, item, plane, n);
	rc = vv_stream_put_planes(o, plane, width, n);
	vv_context_pool_room_back(plane);
	return rc;
}

static unsigned bytes_of(uint64_t used)
{
	return used ? (71 - (unsigned)__builtin_clzll(used)) / 8 : 1;
}

static int put_column(struct vv_stream_out *o, const struct text_coder *c, const struct text_column *col)
{
	const uint8_t *ids = c->ids + ENTRY * (col->at - col->n);
	unsigned wide = 0, width = bytes_of(col->used[col->from]);
	uint8_t head;
	int rc;

	for (size_t i = 0; i < col->n; i++)
		wide |= ids[ENTRY * i + 1];
	head = (uint8_t)(col->from | (wide ? 1u : 0u) << 2 | width << 3);
	vv_stream_put(o, &head, 1);
	rc = put_low(o, ids, col->n, ENTRY, wide ? ENTRY : 1);
	return rc ? rc : put_low(o, c->numbers + WORD * (col->number_at - col->numbers), col->numbers, WORD, width);
}

static int put_all(struct vv_stream_out *o, const struct text_coder *c, size_t known)
{
	uint8_t head = (uint8_t)(o->how.coder | (c->has_base ? VV_TEXT_HAS_BASE : 0)), columns = (uint8_t)(c->n_columns - 1);
	int rc;

	vv_stream_put(o, &head, 1);
	rc = vv_stream_put_planes(o, c->t->dictionary.p + known, 1, c->t->dictionary.n - known);
	if (rc == 0 && c->has_base)
		rc = vv_stream_put_items(o, c->jumps, LINE * c->n_jumps, LINE);
	vv_stream_put(o, &columns, 1);
	for (size_t k = 0; rc == 0 && !o->full && k < c->n_columns; k++)
		rc = put_column(o, c, &c->column[k]);
	return rc;
}

static int code(struct text_coder *c, struct vv_stream_out *o, size_t known)
{
	size_t n = c->t->n - c->first;
	int rc = 0;

	c->like = (void *)vv_context_pool_room((sizeof(*c->like) + LINE) * (c->has_base ? n : 0));
	c->ids = c->like ? vv_context_pool_room((ENTRY + WORD) * n) : NULL;
	if (!c->ids)
		rc = VV_ENOMEM;
	if (rc == 0 && c->has_base) {
		c->jumps = (uint8_t *)(c->like + n);
		rc = vv_text_columns_lines(&c->lines, c->t, c->first);
		if (rc == 0)
			rc = find_lines(c);
	}
	if (rc == 0) {
		c->numbers = c->ids + ENTRY * n;
		measure(c);
		choose_from(c);
		gather(c);
		rc = put_all(o, c, known);
	}
	vv_context_pool_room_back((uint8_t *)c->like);
	vv_context_pool_room_back(c->ids);
	vv_mem_free(c->lines.start);
	return rc;
}

/* ---- the codec ---- */

/* VV_TEXT_DIFFERS, if one of the texts is none. */
static int scan(struct text_coder *c, const void *before, size_t n_before, const void *from, size_t n, size_t *known)
{
	int rc = vv_text_tokens_init(c->t, n + n_before);

	if (rc == 0)
		rc = vv_text_tokens_scan(c->t, before, n_before);
	c->first = c->t->n;
	*known = c->t->dictionary.n;
	return rc ? rc : vv_text_tokens_scan(c->t, from, n);
}

static int encode_after(const void *before, size_t n_before, const void *from, size_t n, void *to, size_t cap, int level, size_t *out)
{
	struct vv_stream_out o = { .to = to, .cap = cap, .how = { .width = WORD, .record = 1, .coder = VV_CODEC_ZSTD, .level = (int8_t)level } };
	struct text_coder *c;
	size_t known;
	int rc = VV_ENOMEM;

	*out = 0;
	if (!n || n > VV_TEXT_LARGEST || n_before > VV_TEXT_LARGEST)
		return 0;
	c = vv_mem_new(1, sizeof(*c));
	if (c)
		c->t = vv_mem_new(1, sizeof(*c->t));
	if (c && c->t) {
		c->has_base = n_before > 0;
		rc = scan(c, before, n_before, from, n, &known);
		if (rc == 0)
			rc = code(c, &o, known);
		if (rc == 0 && !o.full && o.at < n)
			*out = o.at;
		vv_text_tokens_fini(c->t);
		vv_mem_free(c->t);
	}
	vv_mem_free(c);
	return rc == VV_TEXT_DIFFERS ? 0 : rc;
}

static size_t bound(size_t n)
{
	return n + VV_STREAM_HEADER;
}

/* A block of the file that is no table. */
static int encode_plain(const void *from, size_t n, const struct vv_recipe *how, void *to, size_t cap, size_t *out)
{
	struct vv_stream_out o = { .to = to, .cap = cap, .how = { .width = 1, .record = 1, .coder = VV_CODEC_ZSTD } };
	uint8_t head = VV_CODEC_ZSTD | VV_TEXT_PLAIN;
	int rc;

	o.how.level = how->level > WORDS ? how->level : WORDS;
	vv_stream_put(&o, &head, 1);
	rc = vv_stream_put_planes(&o, from, 1, n);
	if (rc == 0 && !o.full && o.at < n)
		*out = o.at;
	return rc;
}

static int encode(const void *from, size_t n, const struct vv_recipe *how, void *to, size_t cap, int level, size_t *out)
{
	int rc;

	*out = 0;
	if (!how || how->predictor != VV_PREDICT_TEXT)
		return 0;
	rc = encode_after(NULL, 0, from, n, to, cap, how->level ? how->level : level, out);
	return rc || *out ? rc : encode_plain(from, n, how, to, cap, out);
}

static int decode(const void *from, size_t n, void *to, size_t raw_len)
{
	return vv_text_columns_back_decode_after(NULL, 0, from, n, to, raw_len);
}

static struct vv_recipe recipe_of(const void *coded, size_t n)
{
	return (struct vv_recipe){ .width = 1, .record = 1, .predictor = VV_PREDICT_TEXT, .coder = n ? *(const uint8_t *)coded & 3 : 0 };
}

extern const struct vv_codec vv_codec_text;
const struct vv_codec vv_codec_text = {
	.name = "text",
	.number = VV_CODEC_TEXT,
	.min_level = 1,
	.max_level = 19,
	.usual_level = 3,
	.bound = bound,
	.encode = encode,
	.decode = decode,
	.encode_after = encode_after,
	.decode_after = vv_text_columns_back_decode_after,
	.decode_takes = vv_text_columns_back_takes,
	.recipe = recipe_of,
};
