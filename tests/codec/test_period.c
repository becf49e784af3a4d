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

static double shared(size_t n, size_t len, unsigned width, bool swapped)
{
	static uint16_t seen[VV_PERIOD_SEEN];
	struct vv_period_numbers x[4];

	for (size_t i = 0; i < n; i++)
		x[i] = (struct vv_period_numbers){ bytes + i * len, len / width, width, width > 1, swapped };
	memset(seen, 0, sizeof(seen));
	return vv_period_shared(x, n, seen);
}

/* What the last of several has in common with those before it, and not with itself. */
static void test_shared(void)
{
	static const uint8_t widths[] = { 1, 4, 8 };
	enum { N = LARGEST / 4 };
	uint64_t state = 4;

	for (size_t w = 0; w < 3; w++) {
		gen_bytes(&state, bytes, LARGEST);
		CHECK(shared(4, N, widths[w], false) < 0.001);
		memcpy(bytes + 3 * N, bytes + N, N);
		CHECK(shared(4, N, widths[w], false) > 0.7);
		memset(bytes + 3 * N, 7, N);
		CHECK(shared(4, N, widths[w], false) == 0);
		memset(bytes, 7, N); /* each is like itself */
		CHECK(shared(4, N, widths[w], false) == 0);
		for (size_t n = 0; n < 40; n++)
			CHECK(shared(2, n, widths[w], false) <= 1);
	}
	gen_bytes(&state, bytes, N);
	memmove(bytes + N + 3, bytes, N - 3); /* elsewhere */
	CHECK(shared(2, N, 1, false) > 0.9);
	for (size_t i = 0; i < N / 8; i++) { /* nearly the same numbers, high byte first */
		double v[2] = { 1 + (double)(gen_next(&state) >> 11) * 0x1p-53 };
		uint64_t u[2];

		v[1] = v[0] * (1 + 1e-13);
		memcpy(u, v, sizeof(u));
		for (size_t k = 0; k < 2; k++) {
			u[k] = __builtin_bswap64(u[k]);
			memcpy(bytes + k * N + 8 * i, &u[k], 8);
		}
	}
	CHECK(shared(2, N, 8, true) > 0.9);
	CHECK(shared(2, N, 8, false) < 0.1);
}

int main(void)
{
	test_records();
	test_no_records();
	test_strides();
	test_no_strides();
	test_shared();
	return 0;
}
