/* Records and rows that nobody told of: found where they are, and not where there are none. */
#include "codec/period.h"
#include "support/gen.h"
#include "vv_test.h"
#include <math.h>

enum { LARGEST = 64 << 10 };

static uint8_t bytes[LARGEST];

/* Records of a few fields that change, among others that do not. */
static void fill_records(uint64_t *state, size_t n, size_t record)
{
	uint8_t fixed[VV_PERIOD_RECORD];

	gen_bytes(state, fixed, record);
	for (size_t i = 0; i < n; i++)
		bytes[i] = i % record < record / 2 ? fixed[i % record] : (uint8_t)gen_next(state);
}

static void test_records(void)
{
	uint64_t state = 1;

	for (size_t record = 9; record < VV_PERIOD_RECORD; record += record < 100 ? 1 : 61) {
		fill_records(&state, LARGEST, record);
		CHECK_EQ(vv_period_record(bytes, LARGEST), record);
		CHECK_EQ(vv_period_record(bytes + record / 3, LARGEST - record / 3), record);
	}
}

static void test_no_records(void)
{
	uint64_t state = 2;
	double *x = (double *)(void *)bytes;

	gen_bytes(&state, bytes, LARGEST);
	CHECK_EQ(vv_period_record(bytes, LARGEST), 0);
	memset(bytes, 7, LARGEST);
	CHECK_EQ(vv_period_record(bytes, LARGEST), 0);
	gen_text(&state, bytes, LARGEST);
	CHECK_EQ(vv_period_record(bytes, LARGEST), 0);
	for (size_t i = 0; i < LARGEST / 8; i++)
		x[i] = 300 + (double)i * 1e-4 + (double)gen_below(&state, 1000) * 1e-7;
	CHECK_EQ(vv_period_record(bytes, LARGEST), 0);
	for (size_t n = 0; n < 300; n++) /* whatever it says */
		CHECK(vv_period_record(bytes, n) <= n / 4);
}

/* A field of rows and planes, of one of the two kinds of numbers. */
static void fill_field(uint64_t *state, unsigned width, bool swapped, size_t row, size_t plane)
{
	for (size_t i = 0; i < LARGEST / width; i++) {
		double a = (double)(i % row), b = (double)(i % plane / row), c = (double)(i / plane);
		double v = 20 + 7 * sin(3 * a / (double)row) + 5 * sin(b / 3) + c / 2 + (double)gen_below(state, 1000) * 1e-9;
		float f = (float)v;
		uint64_t u = 0;
		uint32_t w;

		memcpy(&u, &v, 8);
		memcpy(&w, &f, 4);
		u = swapped ? __builtin_bswap64(u) : u;
		w = swapped ? __builtin_bswap32(w) : w;
		memcpy(bytes + width * i, width == 8 ? (void *)&u : (void *)&w, width);
	}
}

static void test_strides(void)
{
	static const size_t rows[] = { 12, 24, 50, 64, 100 };
	uint64_t state = 3;

	for (unsigned kind = 0; kind < 4; kind++)
		for (size_t k = 0; k < 5; k++) {
			unsigned width = kind & 1 ? 4 : 8;
			struct vv_period_numbers x = { .p = bytes, .n = LARGEST / width, .width = width, .real = true, .swapped = kind > 1 };
			size_t row, plane;

			fill_field(&state, width, x.swapped, rows[k], rows[k] * 9);
			vv_period_strides(&x, &row, &plane);
			CHECK(row + 1 >= rows[k] && row <= rows[k] + 1);
			CHECK(plane == 0 || plane > row);
		}
}

static void test_no_strides(void)
{
	struct vv_period_numbers x = { .p = bytes, .n = LARGEST / 8, .width = 8 };
	uint64_t state = 4, v;
	size_t row = 1, plane = 1;

	gen_bytes(&state, bytes, LARGEST);
	vv_period_strides(&x, &row, &plane);
	CHECK(row == 0 && plane == 0);
	for (size_t i = 0; i < LARGEST / 8; i++) {
		v = i * 1000;
		memcpy(bytes + 8 * i, &v, 8);
	}
	vv_period_strides(&x, &row, &plane);
	CHECK(row == 0 && plane == 0);
	memset(bytes, 0, LARGEST);
	for (x.n = 0; x.n < 100; x.n++) {
		vv_period_strides(&x, &row, &plane);
		CHECK(row == 0 && plane == 0);
	}
}

int main(void)
{
	test_records();
	test_no_records();
	test_strides();
	test_no_strides();
	return 0;
}
