#include "codec/period.h"
#include <string.h>

enum {
	LOOKED_AT = 8 << 10,  /* bytes that are compared to find a record */
	PROBES = 256,         /* numbers that are compared to find a row */
	/* a period must have one more equal byte in so many than the average */
	STANDS_OUT = 32,
	NARROW = 8,           /* bytes of a number, not of a record */
};

static size_t count_equal(const uint8_t *restrict p, const uint8_t *restrict q, size_t n)
{
	size_t sum = 0;

	for (size_t i = 0; i < n; i += 128) {
		uint8_t some = 0;

		for (size_t k = i; k < i + 128; k++)
			some = (uint8_t)(some + (p[k] == q[k]));
		sum += some;
	}
	return sum;
}

/* A period must hold after two records as after one: words of a text recur once, but not
 * regularly. */
static bool goes_on(const size_t *equal, size_t lag, size_t longest, size_t mean)
{
	return 2 * lag > longest || equal[2 * lag] >= mean + (equal[lag] - mean) / 2;
}

/* Multiples of a record fit as well as the record: returns the shortest lag that is nearly the
 * best. */
size_t vv_period_record(const uint8_t *p, size_t n)
{
	size_t equal[VV_PERIOD_RECORD + 1], longest = n / 4 < VV_PERIOD_RECORD ? n / 4 : VV_PERIOD_RECORD;
	size_t looked, best = 0, sum = 0, mean;

	if (longest <= NARROW)
		return 0;
	looked = n - longest < LOOKED_AT ? n - longest : LOOKED_AT;
	looked -= looked % 128;
	for (size_t lag = 1; lag <= longest; lag++) {
		equal[lag] = count_equal(p, p + lag, looked);
		sum += equal[lag];
		best = equal[lag] > best ? equal[lag] : best;
	}
	mean = sum / longest;
	if (best - mean < looked / STANDS_OUT || looked == 0)
		return 0;
	for (size_t lag = 1; lag <= longest; lag++)
		if (equal[lag] >= best - (best - mean) / 8)
			return lag > NARROW && goes_on(equal, lag, longest, mean) ? lag : 0;
	return 0;
}

static uint64_t number(const struct vv_period_numbers *x, size_t i)
{
	uint64_t v = 0;
	uint32_t u;

	if (x->width == 4) {
		memcpy(&u, x->p + 4 * i, 4);
		u = x->swapped ? __builtin_bswap32(u) : u;
		v = (uint64_t)u << 32;
	} else {
		memcpy(&v, x->p + 8 * i, 8);
		v = x->swapped ? __builtin_bswap64(v) : v;
	}
	if (x->real && v >> 63)
		v = ~v ^ (UINT64_C(1) << 63);
	return v;
}

/* The distance between numbers `lag` apart: the sum of the bit lengths of their differences. The
 * probes are in the second half. */
static unsigned apart(const struct vv_period_numbers *x, size_t lag)
{
	size_t step = x->n / 2 / PROBES | 1;
	unsigned bits = 0;

	for (size_t i = x->n / 2; i < x->n; i += step) {
		uint64_t d = number(x, i) - number(x, i - lag);

		d = d >> 63 ? 0 - d : d;
		bits += d ? 64 - (unsigned)__builtin_clzll(d) : 0;
	}
	return bits;
}

/* The bottom of the first dip. It is lower by `drop` than the values before it, and by half of that
 * than the values after it. 0: there is none. */
static size_t find_dip(const unsigned *far, size_t from, size_t to, unsigned drop)
{
	unsigned top = far[from];
	size_t bottom = 0;

	for (size_t k = from + 1; k <= to; k++) {
		if (!bottom && far[k] > top)
			top = far[k];
		if (bottom ? far[k] < far[bottom] : far[k] + drop <= top)
			bottom = k;
		if (bottom && far[k] >= far[bottom] + drop / 2)
			return bottom;
	}
	return 0;
}

static unsigned deepest(const unsigned *far, size_t from, size_t to)
{
	unsigned top = far[from], drop = 0;

	for (size_t k = from; k <= to; k++) {
		top = far[k] > top ? far[k] : top;
		drop = top - far[k] > drop ? top - far[k] : drop;
	}
	return drop;
}

void vv_period_strides(const struct vv_period_numbers *x, size_t *row, size_t *plane)
{
	unsigned far[VV_PERIOD_STRIDE + 1], drop;
	size_t longest = x->n / 2 < VV_PERIOD_STRIDE ? x->n / 2 : VV_PERIOD_STRIDE;

	*row = *plane = 0;
	if (longest < 8)
		return;
	for (size_t lag = 1; lag <= longest; lag++)
		far[lag] = apart(x, lag);
	drop = deepest(far, 1, longest);
	/* a bit of each probe */
	if (drop < x->n / 2 / (x->n / 2 / PROBES | 1))
		return;
	*row = find_dip(far, 1, longest, drop / 2 + 1);
	if (*row && *row + *row / 2 <= longest)
		*plane = find_dip(far, *row + *row / 2, longest, deepest(far, *row + *row / 2, longest) * 3 / 4 + 1);
}
