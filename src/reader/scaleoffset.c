/* Parameters: the kind of scale, its factor, elements, class, size, sign, byte order, a flag for a
 * fill value, and that value in words. A chunk begins with the number of bits, the length of the
 * minimum and the minimum. Floating-point numbers were multiplied by a power of ten and rounded. */
#include "reader/scaleoffset.h"
#include "base/err.h"
#include "reader/bits.h"
#include <math.h>
#include <string.h>

enum { KIND, FACTOR, ELEMENTS, CLASS, SIZE, SIGN, ORDER, FILLED, FILL, DECIMAL = 0, INTEGER = 2, HEAD = 21 };

struct scale {
	unsigned size, bits;
	uint64_t minimum, fill;
	double power; /* of ten */
	bool filled, real, high_first;
};

static uint64_t little(const uint8_t *p, unsigned n)
{
	uint64_t v = 0;

	for (unsigned i = n; i-- > 0;)
		v = v << 8 | p[i];
	return v;
}

static int open(const struct vv_reader_filter *f, const uint8_t *from, size_t n, size_t len, struct scale *s)
{
	if (f->n_values < FILL || n < HEAD)
		return vv_err_set(VV_EDAMAGED, "a scale-offset chunk of %zu bytes with %u parameters cannot be", n,
				  f->n_values);
	*s = (struct scale){.size = f->value[SIZE], .real = f->value[CLASS] == 1, .high_first = f->value[ORDER] != 0};
	s->filled = f->value[FILLED] && f->n_values > FILL + (s->size > 4);
	s->fill = s->filled ? f->value[FILL] | (s->size > 4 ? (uint64_t)f->value[FILL + 1] << 32 : 0) : 0;
	s->bits = (unsigned)little(from, 4);
	s->minimum = little(from + 5, 8);
	s->power = pow(10, (int)f->value[FACTOR]);
	if (f->value[KIND] != (s->real ? DECIMAL : INTEGER))
		return vv_err_set(VV_ENOTSUP, "scale-offset of kind %u is not known here", f->value[KIND]);
	if ((s->size != 1 && s->size != 2 && s->size != 4 && s->size != 8) || (s->real && s->size < 4) ||
	    s->bits > 8 * s->size || from[4] > 8 || len % s->size || n - HEAD < (len / s->size * s->bits + 7) / 8)
		return vv_err_set(VV_EDAMAGED, "a scale-offset chunk of %zu bytes does not hold %zu in %u bits each", n,
				  len, s->bits);
	return 0;
}

static uint64_t real_of(const struct scale *s, uint64_t v)
{
	float single;
	double wide;
	uint32_t low = (uint32_t)s->minimum;

	if (s->size == 4) {
		memcpy(&single, &low, sizeof(single));
		single = (float)(int32_t)v / (float)s->power + single;
		memcpy(&low, &single, sizeof(low));
		return low;
	}
	memcpy(&wide, &s->minimum, sizeof(wide));
	wide = (double)(int64_t)v / s->power + wide;
	memcpy(&v, &wide, sizeof(v));
	return v;
}

int vv_scaleoffset_undo(const struct vv_reader_filter *f, const uint8_t *from, size_t n, uint8_t *to, size_t len)
{
	struct vv_bits b = {.p = from + HEAD};
	struct scale s = {0};
	int rc = open(f, from, n, len, &s);

	for (size_t i = 0; rc == 0 && i < len; i += s.size) {
		uint64_t v = vv_bits_take(&b, s.bits), ones = s.bits < 64 ? (1ull << s.bits) - 1 : UINT64_MAX;

		/* no bits were saved: the original numbers, low byte first */
		if (s.bits == 8 * s.size) {
			v = little(from + HEAD + i, s.size);
			vv_bits_put(to + i, s.size, v, s.high_first);
			continue;
		}
		v = s.filled && v == ones ? s.fill : s.real ? real_of(&s, v) : v + s.minimum;
		vv_bits_put(to + i, s.size, v, s.high_first);
	}
	return rc;
}
