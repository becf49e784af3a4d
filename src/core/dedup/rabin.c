#include "core/dedup/rabin.h"
#include "base/err.h"

enum {
	DEGREE = 53,
	SHIFT = DEGREE - 8, /* the byte at the top of a fingerprint */
};

static const uint64_t polynomial = VV_RABIN_POLYNOMIAL, below = (1ull << DEGREE) - 1;

/* x times 2, modulo the polynomial. */
static uint64_t twice(uint64_t x)
{
	x <<= 1;
	return x >> DEGREE ? x ^ polynomial : x;
}

int vv_rabin_init(struct vv_rabin *r, size_t min, size_t avg, size_t max)
{
	if (min < VV_RABIN_WINDOW || avg <= min || max <= avg || max > 1u << 30)
		return vv_err_set(VV_EINVAL, "chunks of %zu to %zu bytes, on average %zu: they must ascend, from %d on", min, max, avg, VV_RABIN_WINDOW);
	if (avg & (avg - 1))
		return vv_err_set(VV_EINVAL, "chunks of %zu bytes on average: a Rabin fingerprint cuts at powers of two", avg);
	*r = (struct vv_rabin){ .min = min, .max = max, .mask = avg - 1 };
	for (unsigned byte = 0; byte < 256; byte++) {
		uint64_t top = byte, old = byte;

		for (unsigned i = 0; i < DEGREE; i++)
			top = twice(top);
		for (unsigned i = 0; i < 8 * (VV_RABIN_WINDOW - 1); i++)
			old = twice(old);
		r->in[byte] = top;
		r->out[byte] = old;
	}
	return 0;
}

static uint64_t push(const struct vv_rabin *r, uint64_t print, uint8_t byte)
{
	return ((print << 8 | byte) & below) ^ r->in[print >> SHIFT];
}

/* Zeros have the fingerprint 0, and make chunks of the maximum length. */
size_t vv_rabin_next(const struct vv_rabin *r, const uint8_t *p, size_t n, bool last)
{
	size_t end = n < r->max ? n : r->max;
	uint64_t print = 0;

	if (n <= r->min)
		return last ? n : 0;
	for (size_t i = r->min - VV_RABIN_WINDOW; i < r->min; i++)
		print = push(r, print, p[i]);
	for (size_t i = r->min; i < end; i++) {
		print = push(r, print ^ r->out[p[i - VV_RABIN_WINDOW]], p[i]);
		if ((print & r->mask) == r->mask)
			return i + 1;
	}
	return end == r->max || last ? end : 0;
}
