#include "codec/fpzip.h"
#include "base/err.h"
#include <stdbool.h>
#include <string.h>

/* ---- entropy stage: range compression -------------------------------------------------------- */

/* The interval [low, low + range) without carries. If both of its ends have the same first byte,
 * that byte is final. If they differ and the interval becomes too narrow, it is cut at the border
 * between them. The range is at least 2^16 between two symbols, whatever the symbols are. */
struct coder {
	uint32_t low, range;
	uint32_t code;     /* decoder: the stream at the position of low */
	uint8_t *to;       /* encoder */
	const uint8_t *from;
	size_t n, at;
	bool bad;          /* the end was passed, or the bytes are no symbol */
};

static void shift(struct coder *c, unsigned bytes)
{
	for (; bytes; bytes--, c->low <<= 8, c->at++) {
		if (c->at >= c->n)
			c->bad = true;
		else if (c->to)
			c->to[c->at] = (uint8_t)(c->low >> 24);
		c->code = c->code << 8 | (c->from && c->at < c->n ? c->from[c->at] : 0);
	}
}

static void settle(struct coder *c)
{
	while ((c->low ^ (c->low + c->range)) >> 24 == 0) {
		shift(c, 1);
		c->range <<= 8;
	}
	if (c->range >> 16 == 0) {
		shift(c, 2);
		c->range = -c->low;
	}
}

/* Narrows the interval to part `at` .. `at + width` of 2^bits. */
static void narrow(struct coder *c, unsigned bits, uint32_t at, uint32_t width)
{
	c->range >>= bits;
	c->low += c->range * at;
	c->range *= width;
	settle(c);
}

/* The part, of 2^bits, that the stream is in. */
static uint32_t part(struct coder *c, unsigned bits)
{
	uint32_t at = (c->code - c->low) / (c->range >> bits);

	if (at >> bits == 0)
		return at;
	c->bad = true;
	return 0;
}

static void put_bits(struct coder *c, uint64_t v, unsigned n)
{
	for (; n > 16; n -= 16, v >>= 16)
		narrow(c, 16, v & 0xffff, 1);
	narrow(c, n, (uint32_t)v, 1);
}

static uint64_t get_bits(struct coder *c, unsigned n)
{
	uint64_t v = 0;

	for (unsigned done = 0;; done += 16, n -= 16) {
		unsigned now = n > 16 ? 16 : n;
		uint32_t some = part(c, now);

		narrow(c, now, some, 1);
		v |= (uint64_t)some << done;
		if (n <= 16)
			return v;
	}
}

/* ---- the model ------------------------------------------------------------------------------- */

/* Schindler's quasi-static model: frequencies are those of the symbols before. They are updated
 * after a period, which is short at first. */
enum { BITS = 16, TOTAL = 1 << BITS, PERIOD = 1 << 10, SYMBOLS = 2 * 64 + 1, COARSE = 9 };

struct model {
	unsigned symbols;
	uint32_t left, more; /* symbols until the next update; then so many with one more each */
	uint32_t step, every;
	uint32_t count[SYMBOLS];
	uint32_t below[SYMBOLS + 1];
	uint8_t first[TOTAL >> COARSE]; /* the symbol of every 512th part */
};

static void renew(struct model *m)
{
	uint32_t at = TOTAL, rest = TOTAL;

	if (m->more) {
		m->left = m->more;
		m->more = 0;
		m->step++;
		return;
	}
	m->every = m->every * 2 < PERIOD ? m->every * 2 : PERIOD;
	for (unsigned s = m->symbols; s-- > 0;) {
		at -= m->count[s];
		m->below[s] = at;
		m->count[s] = m->count[s] >> 1 | 1;
		rest -= m->count[s];
	}
	m->step = rest / m->every;
	m->more = rest % m->every;
	m->left = m->every - m->more;
	for (unsigned k = 0, s = 0; k < TOTAL >> COARSE; k++) {
		while (m->below[s + 1] <= k << COARSE)
			s++;
		m->first[k] = (uint8_t)s;
	}
}

static void model_init(struct model *m, unsigned symbols)
{
	m->symbols = symbols;
	m->every = symbols >> 4 | 2;
	m->more = 0;
	for (unsigned s = 0; s < symbols; s++)
		m->count[s] = TOTAL / symbols + (s < TOTAL % symbols);
	m->below[symbols] = TOTAL;
	renew(m);
}

static void learn(struct model *m, unsigned s)
{
	if (!m->left)
		renew(m);
	m->left--;
	m->count[s] += m->step;
}

static void put_symbol(struct coder *c, struct model *m, unsigned s)
{
	narrow(c, BITS, m->below[s], m->below[s + 1] - m->below[s]);
	learn(m, s);
}

static unsigned get_symbol(struct coder *c, struct model *m)
{
	uint32_t at = part(c, BITS);
	unsigned s = m->first[at >> COARSE];

	while (m->below[s + 1] <= at)
		s++;
	narrow(c, BITS, m->below[s], m->below[s + 1] - m->below[s]);
	learn(m, s);
	return s;
}

/* ---- numbers --------------------------------------------------------------------------------- */

struct format {
	uint64_t sign, infinity, quiet; /* bits of a number */
};

static struct format format_of(unsigned width)
{
	return width == 4 ? (struct format){ 1ull << 31, 0x7f800000, 1ull << 22 } :
			    (struct format){ 1ull << 63, 0x7ffull << 52, 1ull << 51 };
}

static uint64_t load(const uint8_t *p, unsigned width)
{
	uint32_t single;
	uint64_t v;

	if (width == 8)
		return memcpy(&v, p, 8), v;
	memcpy(&single, p, 4);
	return single;
}

/* Maps the bits to integers that ascend as the numbers do. */
static uint64_t order(const struct format *f, uint64_t v)
{
	return v & f->sign ? ~v & (f->sign | (f->sign - 1)) : v | f->sign;
}

static uint64_t unorder(const struct format *f, uint64_t v)
{
	return v & f->sign ? v ^ f->sign : ~v & (f->sign | (f->sign - 1));
}

/* The effect of adding zeros to the number before: -0 becomes 0, a signalling NaN a quiet one. */
static uint64_t predict(const struct format *f, uint64_t before)
{
	uint64_t magnitude = before & ~f->sign;

	if (!magnitude)
		before = 0;
	return order(f, magnitude > f->infinity ? before | f->quiet : before);
}

size_t vv_fpzip_encode(const void *from, size_t count, unsigned width, uint8_t *to, size_t cap)
{
	struct coder c = { .range = UINT32_MAX, .to = to, .n = cap };
	struct format f = format_of(width);
	unsigned middle = width * 8;
	struct model m;
	uint64_t before = 0;

	model_init(&m, 2 * middle + 1);
	for (size_t i = 0; i < count && !c.bad; i++) {
		uint64_t v = load((const uint8_t *)from + i * width, width), p = predict(&f, before), is = order(&f, v);
		uint64_t d = is < p ? p - is : is - p;
		unsigned log = d ? 63 - (unsigned)__builtin_clzll(d) : 0;

		put_symbol(&c, &m, !d ? middle : is < p ? middle - 1 - log : middle + 1 + log);
		if (d)
			put_bits(&c, d - (1ull << log), log);
		before = v;
	}
	shift(&c, 4);
	return c.bad ? 0 : c.at;
}

int vv_fpzip_decode(const uint8_t *from, size_t n, unsigned width, void *to, size_t count)
{
	struct coder c = { .range = UINT32_MAX, .from = from, .n = n };
	struct format f = format_of(width);
	unsigned middle = width * 8;
	struct model m;
	uint64_t before = 0;

	model_init(&m, 2 * middle + 1);
	shift(&c, 4);
	for (size_t i = 0; i < count && !c.bad; i++) {
		uint64_t is = predict(&f, before);
		unsigned s = get_symbol(&c, &m);

		if (s > middle)
			is += (1ull << (s - middle - 1)) + get_bits(&c, s - middle - 1);
		else if (s < middle)
			is -= (1ull << (middle - 1 - s)) + get_bits(&c, middle - 1 - s);
		before = unorder(&f, is & (f.sign | (f.sign - 1)));
		memcpy((uint8_t *)to + i * width, &before, width);
	}
	return !c.bad && c.at == n ? 0 : vv_err_set(VV_EDAMAGED, "a stream of fpzip does not decode");
}
