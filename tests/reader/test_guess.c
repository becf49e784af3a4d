// What bytes are guessed to be: right for plain cases, "I do not know" for others.
#include "reader/guess.h"
#include "support/gen.h"
#include "vv_test.h"
#include <math.h>

enum { N = 4096 };

static double field(size_t i, size_t row)
{
	double x = (double)(i % row), y = (double)(i / row);

	return 280 + 10 * sin(0.2 * x + 0.02 * y) + 3 * cos(0.05 * y) * (1 + 0.01 * x);
}

static unsigned type_of(const void *p, size_t n)
{
	struct vv_guess g = { 0 };

	vv_guess_add(&g, p, n, false);
	return vv_guess_type(&g);
}

static void guesses_types(void)
{
	static float f[N];
	static double d[N], few[N];
	static int32_t k[N];
	static uint8_t noise[N * 8], zeros[N * 8], text[N * 8];
	uint64_t state = 2;
	struct vv_guess g = { 0 };

	for (size_t i = 0; i < N; i++) {
		d[i] = field(i, 50) * (i % 3 ? 1 : -1);
		f[i] = (float)d[i] * 1e-6f;
		few[i] = (double)(i % 100) * 0.5;
		k[i] = (int32_t)(i * i % 100000) - 20000;
	}
	gen_bytes(&state, noise, sizeof(noise));
	gen_text(&state, text, sizeof(text));
	CHECK_EQ(type_of(f, sizeof(f)), VV_TYPE_F32);
	CHECK_EQ(type_of(d, sizeof(d)), VV_TYPE_F64);
	CHECK_EQ(type_of(few, sizeof(few)), VV_TYPE_F64);
	CHECK_EQ(type_of(k, sizeof(k)), VV_TYPE_I32);
	CHECK_EQ(type_of(noise, sizeof(noise)), VV_TYPE_BYTES);
	CHECK_EQ(type_of(zeros, sizeof(zeros)), VV_TYPE_BYTES);
	CHECK_EQ(type_of("", 0), VV_TYPE_BYTES);
	memset(f, 0, sizeof(f) / 2); // many zeros say nothing
	CHECK_EQ(type_of(f, sizeof(f)), VV_TYPE_F32);
	CHECK_EQ(vv_guess_add(&g, zeros, sizeof(zeros), false), 0);
	CHECK(vv_guess_add(&g, noise, sizeof(noise), false) > N);
}

static void swap(uint8_t *p, size_t n, size_t width)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < width / 2; k++) {
			uint8_t x = p[i * width + k];

			p[i * width + k] = p[i * width + width - 1 - k];
			p[i * width + width - 1 - k] = x;
		}
}

static void guesses_rows(void)
{
	static const size_t rows[] = { 8, 24, 25, 50, 100, 128, 400 };
	static double d[N];
	static float f[N];
	uint64_t state = 3;

	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		for (size_t i = 0; i < N; i++) {
			d[i] = field(i, rows[r]);
			f[i] = (float)d[i];
		}
		CHECK_EQ(vv_guess_row((uint8_t *)d, sizeof(d), 8, false, rows[r] * 1000), rows[r]);
		CHECK_EQ(vv_guess_row((uint8_t *)f, sizeof(f), 4, false, rows[r] * 1000), rows[r]);
		CHECK(vv_guess_row((uint8_t *)f, sizeof(f), 4, false, rows[r] * 1000 + 1) != rows[r]); // not a row of that many
		swap((uint8_t *)d, N, 8);
		CHECK_EQ(vv_guess_row((uint8_t *)d, sizeof(d), 8, true, rows[r] * 1000), rows[r]);
	}
	for (size_t i = 0; i < N; i++)
		d[i] = (double)i; // a line has no rows
	CHECK_EQ(vv_guess_row((uint8_t *)d, sizeof(d), 8, false, N), 0);
	gen_bytes(&state, d, sizeof(d));
	CHECK_EQ(vv_guess_row((uint8_t *)d, sizeof(d), 8, false, N), 0);
	memset(d, 0, sizeof(d));
	CHECK_EQ(vv_guess_row((uint8_t *)d, sizeof(d), 8, false, N), 0);
	CHECK_EQ(vv_guess_row((uint8_t *)d, 0, 8, false, 0), 0);
	CHECK_EQ(vv_guess_row((uint8_t *)d, 40, 8, false, 5), 0);
}

int main(void)
{
	guesses_types();
	guesses_rows();
	return 0;
}
