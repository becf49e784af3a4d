#include "codec/text_tokens.h"
#include "base/err.h"
#include "base/mem.h"
#include "codec/context_pool.h"
#include <string.h>

enum { SLOTS = 4 * VV_TEXT_ENTRIES };

const uint64_t vv_text_power[] = {
	1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000, 10000000000, 100000000000, 1000000000000, 10000000000000,
	100000000000000, 1000000000000000, 10000000000000000, 100000000000000000, 1000000000000000000,
};

enum { OTHER, SEPARATOR, DIGIT, NEWLINE };

static const uint8_t kind[256] = {
	['0'] = DIGIT, ['1'] = DIGIT, ['2'] = DIGIT, ['3'] = DIGIT, ['4'] = DIGIT, ['5'] = DIGIT, ['6'] = DIGIT, ['7'] = DIGIT, ['8'] = DIGIT, ['9'] = DIGIT,
	[' '] = SEPARATOR, ['\t'] = SEPARATOR, [','] = SEPARATOR, [';'] = SEPARATOR, ['|'] = SEPARATOR, ['\n'] = NEWLINE,
};

int vv_text_tokens_init(struct vv_text_tokens *t, size_t bytes)
{
	size_t cap = vv_text_tokens_most(bytes) + vv_text_tokens_most(0);

	t->slot = vv_mem_new(SLOTS, sizeof(*t->slot));
	t->value = (void *)vv_context_pool_room(cap * (sizeof(*t->value) + sizeof(*t->id) + sizeof(*t->at)));
	if (!t->slot || !t->value)
		return VV_ENOMEM;
	t->id = (uint16_t *)(void *)(t->value + cap);
	t->at = t->id + cap;
	return 0;
}

void vv_text_tokens_fini(struct vv_text_tokens *t)
{
	vv_buf_fini(&t->dictionary);
	vv_mem_free(t->slot);
	vv_context_pool_room_back((uint8_t *)t->value);
}

/* ---- scanning ---- */

static bool is_digit(const uint8_t *p, size_t n, size_t i)
{
	return i < n && kind[p[i]] == DIGIT;
}

/* The length of the prefix. A word after a separator begins a new token, but a word before it does
 * not. */
static size_t scan_prefix(const uint8_t *p, size_t n, bool *number)
{
	bool word = false;
	size_t i;

	*number = false;
	for (i = 0; i < n && i < VV_TEXT_PREFIX; i++) {
		unsigned k = kind[p[i]];

		if (k == DIGIT) {
			*number = true;
			return i;
		}
		if (k == NEWLINE)
			return i + 1;
		if (k == OTHER && word && kind[p[i - 1]] == SEPARATOR && !(p[i] == '-' && is_digit(p, n, i + 1)))
			return i;
		word |= k == OTHER;
	}
	return i;
}

struct text_number {
	uint64_t digits;
	unsigned whole, decimals; /* digits before and after the point */
	size_t len;
};

static struct text_number scan_number(const uint8_t *p, size_t n)
{
	struct text_number x = { 0 };
	size_t i;

	for (i = 0; i < VV_TEXT_DIGITS && is_digit(p, n, i); i++)
		x.digits = 10 * x.digits + (p[i] - '0');
	x.whole = (unsigned)i;
	if (i < VV_TEXT_DIGITS && i < n && p[i] == '.' && is_digit(p, n, i + 1)) {
		for (i++; i <= VV_TEXT_DIGITS && is_digit(p, n, i); i++)
			x.digits = 10 * x.digits + (p[i] - '0');
		x.decimals = (unsigned)i - x.whole - 1;
	}
	x.len = i;
	return x;
}

/* ---- the dictionary ---- */

static uint64_t load(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	memcpy(&v, p, n < sizeof(v) ? n : sizeof(v));
	return v;
}

static size_t hash_of(const struct vv_text_entry *e, const uint8_t *prefix)
{
	uint64_t h = e->len | (uint64_t)e->number << 8 | (uint64_t)e->decimals << 16 | (uint64_t)e->zeros << 24 | (uint64_t)e->field << 32;

	for (size_t i = 0; i < e->len; i += sizeof(h)) {
		h = (h ^ load(prefix + i, e->len - i)) * 0x9e3779b97f4a7c15;
		h ^= h >> 32;
	}
	return (size_t)(h * 0x9e3779b97f4a7c15 >> 40) % SLOTS;
}

/* Most prefixes are too short for a call. */
static inline bool same_bytes(const uint8_t *a, const uint8_t *b, size_t n)
{
	size_t i = 0;

	if (n > sizeof(uint64_t))
		return memcmp(a, b, n) == 0;
	while (i < n && a[i] == b[i])
		i++;
	return i == n;
}

static bool is_entry(const struct vv_text_tokens *t, const struct vv_text_entry *a, const struct vv_text_entry *b, const uint8_t *prefix)
{
	return a->len == b->len && a->number == b->number && a->decimals == b->decimals && a->zeros == b->zeros && a->field == b->field &&
	       same_bytes(t->dictionary.p + a->prefix, prefix, a->len);
}

static bool add_entry(struct vv_text_tokens *t, struct vv_text_entry e, const uint8_t *prefix)
{
	struct vv_buf *d = &t->dictionary;

	if (t->n_entries == VV_TEXT_ENTRIES)
		return false;
	vv_wire_put_u8(d, e.len);
	vv_wire_put_u8(d, (uint8_t)(e.number ? 1 + e.decimals : 0));
	if (e.number) {
		vv_wire_put_u8(d, e.zeros);
		vv_wire_put_u8(d, e.field);
	}
	e.prefix = (uint32_t)d->n;
	vv_buf_add(d, prefix, e.len);
	t->entry[t->n_entries++] = e;
	return vv_buf_check(d) == 0;
}

/* The number of an entry, which may be new or that of the token before in its column (likely, plus
 * 1); VV_TEXT_ENTRIES: there are too many. */
static size_t find_entry(struct vv_text_tokens *t, const struct vv_text_entry *e, const uint8_t *prefix, unsigned likely)
{
	size_t h;

	if (likely && is_entry(t, &t->entry[likely - 1], e, prefix))
		return likely - 1;
	h = hash_of(e, prefix);
	for (; t->slot[h]; h = (h + 1) % SLOTS)
		if (is_entry(t, &t->entry[t->slot[h] - 1], e, prefix))
			return t->slot[h] - 1u;
	if (!add_entry(t, *e, prefix))
		return VV_TEXT_ENTRIES;
	t->slot[h] = (uint16_t)t->n_entries;
	return t->n_entries - 1;
}

bool vv_text_tokens_read(struct vv_text_tokens *t, const uint8_t *p, size_t n)
{
	struct vv_wire w = vv_wire_over(p, n);

	while (!w.bad && vv_wire_left(&w)) {
		struct vv_text_entry e = { .len = vv_wire_u8(&w) };
		unsigned number = vv_wire_u8(&w);
		const uint8_t *prefix;

		e.number = number > 0;
		e.decimals = (uint8_t)(number ? number - 1 : 0);
		e.zeros = e.number ? vv_wire_u8(&w) : 0;
		e.field = e.number ? vv_wire_u8(&w) : 0;
		prefix = vv_wire_bytes(&w, e.len);
		if (w.bad || number > VV_TEXT_DIGITS || e.zeros > VV_TEXT_DIGITS || !add_entry(t, e, prefix))
			return false;
	}
	return !w.bad;
}

/* ---- tokens ---- */

/* The format of a number is that of the number before it in its column, if that fits. */
static void format(const struct text_number *x, bool zero_first, bool negative, size_t blanks, const struct vv_text_entry *last, struct vv_text_entry *e)
{
	size_t field = blanks + negative + x->len;

	e->decimals = (uint8_t)x->decimals;
	if ((zero_first && x->whole > 1) || (last && last->zeros == x->whole))
		e->zeros = (uint8_t)x->whole;
	if (field <= UINT8_MAX && ((last && last->field == field) || blanks > 1)) {
		e->field = (uint8_t)field;
		e->len -= (uint8_t)blanks;
	}
}

/* The entry and the number of the token at p. Returns the bytes of the token. */
static size_t scan_token(const uint8_t *p, size_t n, const struct vv_text_entry *last, struct vv_text_entry *e, int64_t *value)
{
	struct text_number x;
	bool negative;
	size_t len = scan_prefix(p, n, &e->number), blanks = 0;

	e->len = (uint8_t)len;
	*value = 0;
	if (!e->number)
		return len;
	x = scan_number(p + len, n - len);
	negative = len && p[len - 1] == '-' && x.digits;
	*value = negative ? -(int64_t)x.digits : (int64_t)x.digits;
	e->len -= negative;
	while (blanks < e->len && p[e->len - 1 - blanks] == ' ')
		blanks++;
	format(&x, p[len] == '0', negative, blanks, last, e);
	return len + x.len;
}

int vv_text_tokens_scan(struct vv_text_tokens *t, const uint8_t *p, size_t n)
{
	uint16_t last[VV_TEXT_COLUMNS] = { 0 }; /* entry of the token before, plus 1 */
	size_t at = 0, most = t->n + vv_text_tokens_most(n);

	for (size_t i = 0, len; i < n; i += len) {
		struct vv_text_entry e = { 0 };
		size_t id;

		if (t->n == most)
			return VV_TEXT_DIFFERS;
		len = scan_token(p + i, n - i, last[at] ? &t->entry[last[at] - 1] : NULL, &e, &t->value[t->n]);
		id = find_entry(t, &e, p + i, last[at]);
		if (id == VV_TEXT_ENTRIES)
			return t->dictionary.failed ? VV_ENOMEM : VV_TEXT_DIFFERS;
		t->id[t->n] = (uint16_t)id;
		t->at[t->n++] = (uint16_t)at;
		last[at] = (uint16_t)(id + 1);
		at = vv_text_ends_line(t, &t->entry[id]) ? 0 : at + 1 < VV_TEXT_COLUMNS ? at + 1 : at;
	}
	return 0;
}
