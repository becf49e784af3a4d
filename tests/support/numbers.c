#include "support/numbers.h"
#include "support/gen.h"
#include <string.h>

static uint64_t bits_of(double d, unsigned width)
{
	float f = (float)d;
	uint64_t v = 0;
	uint32_t u = 0;

	if (width == 8)
		memcpy(&v, &d, 8);
	else
		memcpy(&u, &f, 4);
	return width == 8 ? v : width == 4 ? u : u >> 16;
}

/* Where a real number of so many bytes has its exponent. */
static uint64_t exponent(unsigned width)
{
	return width == 8 ? 0x7ff0000000000000 : width == 4 ? 0x7f800000 : 0x7c00;
}

static double field(uint64_t *state, size_t i)
{
	double x = (double)(i % 40) / 40, y = (double)(i / 40 % 30) / 30, z = (double)(i / 1200) / 50;

	return 3 + x * (1 - x) * 4 + y * y - z * x + (double)gen_below(state, 16) * 1e-7;
}

static uint64_t number(uint64_t *state, enum numbers kind, const struct vv_recipe *how, size_t i)
{
	uint64_t r = gen_next(state), top = 1ull << (8 * how->width - 1), exp = exponent(how->width);

	switch (kind) {
	case NUMBERS_NAN:
		return r % 3 ? bits_of(field(state, i), how->width) : gen_next(state) | exp;
	case NUMBERS_TINY:
		return r % 4 == 0 ? 0 : r % 4 == 1 ? top : gen_next(state) & ~exp & ~(gen_next(state) % 2 ? top : 0);
	case NUMBERS_HUGE:
		return r % 4 == 0 ? exp : r % 4 == 1 ? exp | top : r % 4 == 2 ? exp - 1 : (exp - 1) | top;
	case NUMBERS_SMOOTH:
		return how->real ? bits_of(field(state, i), how->width) : (uint64_t)(field(state, i) * 1e9);
	case NUMBERS_CONSTANT:
		return bits_of(1.0 / 3, how->width);
	case NUMBERS_RAMP:
		return how->real ? bits_of(0.1 * (double)i, how->width) : 3 * i;
	case NUMBERS_COUNTS:
		return r % 8 ? r >> 32 & 255 : r >> 32 & 4095;
	default:
		return r;
	}
}

void numbers_fill(uint64_t *state, enum numbers kind, const struct vv_recipe *how, void *p, size_t n)
{
	struct vv_recipe one = *how;

	one.width = how->width > 8 ? 8 : how->width;
	for (size_t at = 0, i = 0; at < n; at += one.width, i++) {
		uint64_t v = number(state, kind, &one, i);

		for (size_t k = 0; k < one.width && at + k < n; k++)
			((uint8_t *)p)[at + k] = (uint8_t)(v >> 8 * (one.swapped ? one.width - 1 - k : k));
	}
}

bool numbers_recipe(size_t i, struct vv_recipe *out)
{
	static const uint8_t widths[] = { 1, 2, 4, 8, 16 };
	static const uint16_t records[] = { 1, 3, 12, 64 };
	static const struct {
		uint8_t n;
		uint32_t stride[3];
	} strides[] = { { 1, { 1 } }, { 1, { 3 } }, { 1, { 17 } }, { 1, { UINT32_MAX } }, { 2, { 1, 1 } }, { 2, { 1, 40 } }, { 2, { 2, 7 } },
			{ 3, { 1, 40, 1200 } }, { 3, { 1, 1, 1 } }, { 3, { 3, 3, 70 } }, { 3, { 20, 300, 6000 } }, { 3, { 1, 2, 4294967295 } } };
	enum { WIDTHS = 5, RECORDS = 4, STRIDES = sizeof(strides) / sizeof(strides[0]) };

	for (size_t w = 0; w < WIDTHS; w++)
		for (size_t r = 0; r < RECORDS; r++)
			for (unsigned flags = 0; flags < 4; flags++)
				for (unsigned predictor = VV_PREDICT_NONE; predictor <= VV_PREDICT_REAL; predictor++)
					for (size_t s = 0; s < (predictor ? STRIDES : 1); s++) {
						*out = (struct vv_recipe){ .width = widths[w], .record = records[r], .predictor = (uint8_t)predictor,
									   .real = flags & 1, .swapped = flags >> 1 };
						if (predictor) {
							out->n_strides = strides[s].n;
							memcpy(out->stride, strides[s].stride, sizeof(out->stride));
						}
						if ((predictor && out->width > 8) || (out->real && out->width < 2) ||
						    (predictor == VV_PREDICT_REAL && (!out->real || out->width < 4)))
							continue;
						if (i-- == 0)
							return true;
					}
	return false;
}
