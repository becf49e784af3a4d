#include "reader/guess.h"
#include "reader/peek.h"

enum {
	FURTHEST = 1024, /* longest row to search, in numbers */
	FEWEST = 128,    /* numbers needed to distinguish rows from chance */
};

static bool is_between(uint64_t v, uint64_t lo, uint64_t hi)
{
	return v >= lo && v <= hi;
}

/* Numbers in checkpoints are seldom beyond 2^+-40, or for doubles 2^+-100. */
unsigned vv_guess_add(struct vv_guess *g, const uint8_t *p, size_t n, bool swapped)
{
	unsigned changes = 0;
	uint32_t before = 0;

	for (size_t i = 0; i + 4 <= n; i += 4) {
		uint32_t v = (uint32_t)vv_peek_number(p + i, 4, swapped);

		g->words += v != 0;
		g->f32 += is_between(v >> 23 & 0xff, 127 - 40, 127 + 40);
		g->i32 += v != 0 && !is_between(v, 1u << 23, -(1u << 23));
		changes += v != before;
		before = v;
	}
	for (size_t i = 0; i + 8 <= n; i += 8) {
		uint64_t v = vv_peek_number(p + i, 8, swapped);

		g->doubles += v != 0;
		g->f64 += is_between(v >> 52 & 0x7ff, 1023 - 100, 1023 + 100);
		g->low_words += (uint32_t)v != 0;
	}
	return changes;
}

/* Doubles with few digits have zeros in their lower halves, and their upper halves look like
 * floats. */
unsigned vv_guess_type(const struct vv_guess *g)
{
	bool doubles = g->doubles && g->f64 * 10 >= g->doubles * 9;

	if (g->words == 0)
		return VV_TYPE_BYTES;
	if (doubles && g->low_words * 2 < g->doubles)
		return VV_TYPE_F64;
	if (g->f32 * 10 >= g->words * 9)
		return VV_TYPE_F32;
	if (doubles)
		return VV_TYPE_F64;
	return g->i32 * 10 >= g->words * 9 ? VV_TYPE_I32 : VV_TYPE_BYTES;
}

struct numbers {
	const uint8_t *p;
	size_t n, from; /* numbers from here on are compared with earlier ones */
	unsigned width;
	bool swapped;
};

/* Maps a number to an unsigned one in the order of values, as floating point or two's
 * complement. */
static uint64_t ordered(const struct numbers *x, size_t i)
{
	uint64_t v = vv_peek_number(x->p + i * x->width, x->width, x->swapped), sign = 1ull << (8 * x->width - 1);

	return v & sign ? ~v & (sign | (sign - 1)) : v | sign;
}

/* Sums the bits of the differences between steps at distance `lag`: the jump at the end of a row
 * recurs a row later. */
static uint64_t distance(const struct numbers *x, size_t lag)
{
	uint64_t bits = 0;

	for (size_t i = x->from; i < x->n; i++) {
		int64_t step = (int64_t)(ordered(x, i) - ordered(x, i - 1)), earlier = (int64_t)(ordered(x, i - lag) - ordered(x, i - lag - 1));
		uint64_t d = step > earlier ? (uint64_t)step - (uint64_t)earlier : (uint64_t)earlier - (uint64_t)step;

		bits += d ? 64 - (unsigned)__builtin_clzll(d) : 0;
	}
	return bits;
}

uint64_t vv_guess_row(const uint8_t *p, size_t n, unsigned width, bool swapped, uint64_t count)
{
	struct numbers x = { .p = p, .n = n / width, .width = width, .swapped = swapped };
	uint64_t row = 0, best = UINT64_MAX;

	x.from = x.n / 2 < FURTHEST ? x.n / 2 : FURTHEST;
	for (size_t lag = 2; x.n >= FEWEST && lag + 2 < x.from && lag <= count / 2; lag++) {
		uint64_t bits, clear;

		if (count % lag)
			continue;
		bits = distance(&x, lag);
		clear = bits + bits / 50;
		if (clear >= best || clear >= distance(&x, lag - 1) || clear >= distance(&x, lag + 1))
			continue;
		best = bits;
		row = lag;
	}
	return row;
}
