// Filters undone: what comes out, and what is said of bytes that no filter made.
#include "reader/filter.h"
#include "base/deflate.h"
#include "base/err.h"
#include "support/gen.h"
#include "vv_test.h"

enum { N = 23 };

static struct vv_variable filtered(unsigned n, const uint16_t *id, uint32_t value)
{
	static char name[] = "/x";
	struct vv_variable v = { .name = name, .width = 1, .n_filters = (uint8_t)n };

	for (unsigned i = 0; i < n; i++) {
		v.filter[i].id = id[i];
		v.filter[i].n_values = 1;
		v.filter[i].value[0] = value;
	}
	return v;
}

static void make(uint8_t plain[N])
{
	for (int i = 0; i < N; i++)
		plain[i] = (uint8_t)(i * 37 + 11);
}

static void test_shuffle(void)
{
	static const uint16_t id[] = { VV_FILTER_SHUFFLE };
	uint8_t plain[N], coded[N], out[N];
	struct vv_variable v = filtered(1, id, 4);

	make(plain);
	for (int i = 0; i < N; i++)
		coded[i < 20 ? i % 4 * 5 + i / 4 : i] = plain[i];
	CHECK_EQ(vv_filter_undo(&v, 0, coded, N, out, N), 0);
	CHECK(memcmp(out, plain, N) == 0);
	CHECK_EQ(vv_filter_undo(&v, 1, plain, N, out, N), 0); // left out for this chunk
	CHECK(memcmp(out, plain, N) == 0);
	CHECK_EQ(vv_filter_undo(&v, 0, coded, N - 1, out, N), VV_EDAMAGED);
	for (int i = 0; i < 3; i++) { // widths that make no sense: nothing moves, and it does not take an hour
		v.filter[0].value[0] = (uint32_t[]){ 0, 1, UINT32_MAX }[i];
		CHECK_EQ(vv_filter_undo(&v, 0, plain, N, out, N), 0);
		CHECK(memcmp(out, plain, N) == 0);
	}
	v.filter[0].n_values = 0;
	CHECK_EQ(vv_filter_undo(&v, 0, plain, N, out, N), 0);
}

// The sum of 1, 2, 3, 4 as words 0x0102, 0x0304: 0x0406, and 0x0102 + 0x0406 = 0x0508.
static void test_sum(void)
{
	static const uint16_t id[] = { VV_FILTER_FLETCHER32 };
	uint8_t coded[8] = { 1, 2, 3, 4, 0x06, 0x04, 0x08, 0x05 }, out[4];
	struct vv_variable v = filtered(1, id, 0);

	CHECK_EQ(vv_filter_undo(&v, 0, coded, 8, out, 4), 0);
	CHECK(memcmp(out, coded, 4) == 0);
	memcpy(coded + 4, "\x04\x06\x05\x08", 4); // as written long ago
	CHECK_EQ(vv_filter_undo(&v, 0, coded, 8, out, 4), 0);
	for (int i = 0; i < 8; i++) {
		coded[i] ^= 0x10;
		CHECK_EQ(vv_filter_undo(&v, 0, coded, 8, out, 4), VV_EDAMAGED);
		coded[i] ^= 0x10;
	}
	CHECK_EQ(vv_filter_undo(&v, 0, coded, 3, out, 4), VV_EDAMAGED);
	CHECK_EQ(vv_filter_undo(&v, 0, coded, 0, out, 4), VV_EDAMAGED);
}

static void test_deflate(void)
{
	static const uint16_t id[] = { VV_FILTER_FLETCHER32, VV_FILTER_DEFLATE, VV_FILTER_FLETCHER32 }, twice[] = { 1, 1 };
	static const uint8_t summed[8] = { 1, 2, 3, 4, 0x06, 0x04, 0x08, 0x05 };
	uint8_t coded[64], out[8];
	struct vv_variable v = filtered(2, id, 0);
	size_t n;

	CHECK_EQ(vv_deflate_pack(summed, 8, 6, coded, sizeof(coded), &n), 0);
	CHECK_EQ(vv_filter_undo(&v, 0, coded, n, out, 4), 0);
	CHECK(memcmp(out, summed, 4) == 0);
	CHECK_EQ(vv_filter_undo(&v, 0, coded, n, out, 5), VV_EDAMAGED);
	CHECK_EQ(vv_filter_undo(&v, 0, coded, n - 1, out, 4), VV_EDAMAGED);
	CHECK_EQ(vv_filter_undo(&v, 2, summed, 8, out, 4), 0); // not deflated, for it was not worth it
	CHECK_EQ(vv_filter_undo(&v, 3, summed, 4, out, 4), 0);
	v = filtered(3, id, 0); // and a sum around it, which is wrong
	CHECK_EQ(vv_filter_undo(&v, 0, coded, n, out, 4), VV_EDAMAGED);
	CHECK_EQ(vv_filter_undo(&v, 0, coded, 2, out, 4), VV_EDAMAGED);
	CHECK_EQ(vv_filter_undo(&v, 4, coded, n, out, 4), 0);
	v = filtered(2, twice, 6);
	CHECK_EQ(vv_filter_undo(&v, 0, coded, n, out, 4), VV_EDAMAGED);
}

static void test_unknown(void)
{
	static const uint16_t id[] = { 32015 };
	uint8_t out[4];
	struct vv_variable v = filtered(1, id, 0);

	CHECK_EQ(vv_filter_undo(&v, 0, "abcd", 4, out, 4), VV_ENOTSUP);
	CHECK_EQ(vv_filter_undo(&v, 1, "abcd", 4, out, 4), 0);
	v.n_filters = 0;
	CHECK_EQ(vv_filter_undo(&v, 0, "abcd", 4, out, 4), 0);
	CHECK(memcmp(out, "abcd", 4) == 0);
	CHECK_EQ(vv_filter_undo(&v, 0, "abcd", 3, out, 4), VV_EDAMAGED);
}

static struct vv_variable with_values(uint16_t id, unsigned n, const uint32_t *value)
{
	struct vv_variable v = filtered(1, &id, 0);

	v.filter[0].n_values = (uint8_t)n;
	for (unsigned i = 0; i < n; i++)
		v.filter[0].value[i] = value[i];
	return v;
}

static void test_lzf(void)
{
	static const uint16_t id[] = { VV_FILTER_LZF };
	static const uint8_t coded[] = { 2, 'a', 'b', 'c', 0x20, 2, 0xe0, 1, 0 }; // three bytes, three from 3 before, ten times the last one
	uint8_t out[16], far[] = { 0, 'a', 0x20, 1 };
	struct vv_variable v = filtered(1, id, 0);

	CHECK_EQ(vv_filter_undo(&v, 0, coded, sizeof(coded), out, 16), 0);
	CHECK(memcmp(out, "abcabccccccccccc", 16) == 0);
	for (size_t n = 0; n < sizeof(coded); n++)
		CHECK_EQ(vv_filter_undo(&v, 0, coded, n, out, 16), VV_EDAMAGED);
	CHECK_EQ(vv_filter_undo(&v, 0, coded, sizeof(coded), out, 15), VV_EDAMAGED);
	CHECK_EQ(vv_filter_undo(&v, 0, far, sizeof(far), out, 4), VV_EDAMAGED); // from before the beginning
}

// Numbers of 16 bits, 5 of them from bit 2 on; the high byte first.
static void test_nbit(void)
{
	static const uint32_t value[] = { 8, 0, 3, 1, 2, 1, 5, 2 };
	static const uint8_t coded[] = { 0xf8, 0x3e }; // 31, 0, 31
	struct vv_variable v = with_values(VV_FILTER_NBIT, 8, value);
	uint8_t out[6];

	CHECK_EQ(vv_filter_undo(&v, 0, coded, 2, out, 6), 0);
	CHECK(memcmp(out, "\0\x7c\0\0\0\x7c", 6) == 0);
	CHECK_EQ(vv_filter_undo(&v, 0, coded, 1, out, 6), VV_EDAMAGED);
	CHECK_EQ(vv_filter_undo(&v, 0, coded, 2, out, 5), VV_EDAMAGED);
	v.filter[1] = v.filter[0];
	v.filter[0] = (struct vv_reader_filter){ .id = VV_FILTER_FLETCHER32 };
	v.n_filters = 2;
	CHECK_EQ(vv_filter_undo(&v, 1, coded, 2, out, 6), 0); // without the sum for this chunk
	CHECK(memcmp(out, "\0\x7c\0\0\0\x7c", 6) == 0);
	for (unsigned i = 4; i < 8; i++) { // sizes, bits and places that cannot be
		v = with_values(VV_FILTER_NBIT, 8, value);
		v.filter[0].value[i] = UINT32_MAX;
		CHECK_EQ(vv_filter_undo(&v, 0, coded, 2, out, 6), i == 5 ? 0 : VV_EDAMAGED);
	}
	for (unsigned n = 0; n < 8; n++) {
		v = with_values(VV_FILTER_NBIT, n, value);
		CHECK(vv_filter_undo(&v, 0, coded, 2, out, 6) < 0);
	}
}

static void test_scaleoffset(void)
{
	static const uint32_t value[] = { 2, 0, 4, 0, 2, 1, 0, 1, 99 };
	uint8_t coded[22] = { 2, 0, 0, 0, 8, 10, [21] = 0x1b }, out[8]; // 0, 1, 2, 3 and 10; the last is the fill value
	struct vv_variable v = with_values(VV_FILTER_SCALEOFFSET, 9, value);

	CHECK_EQ(vv_filter_undo(&v, 0, coded, 22, out, 8), 0);
	CHECK(memcmp(out, "\x0a\0\x0b\0\x0c\0\x63\0", 8) == 0);
	for (size_t n = 0; n < 22; n++)
		CHECK_EQ(vv_filter_undo(&v, 0, coded, n, out, 8), VV_EDAMAGED);
	CHECK_EQ(vv_filter_undo(&v, 0, coded, 22, out, 7), VV_EDAMAGED);
	coded[0] = 17; // bits of 16
	CHECK_EQ(vv_filter_undo(&v, 0, coded, 22, out, 8), VV_EDAMAGED);
	coded[0] = 2;
	v.filter[0].value[0] = 1; // a kind that nobody writes
	CHECK_EQ(vv_filter_undo(&v, 0, coded, 22, out, 8), VV_ENOTSUP);
	v = with_values(VV_FILTER_SCALEOFFSET, 9, value);
	v.filter[0].value[4] = 3;
	CHECK_EQ(vv_filter_undo(&v, 0, coded, 22, out, 8), VV_EDAMAGED);
	v = with_values(VV_FILTER_SCALEOFFSET, 7, value);
	CHECK_EQ(vv_filter_undo(&v, 0, coded, 22, out, 8), VV_EDAMAGED);
}

// Anything as parameters and bytes: no more is read or written than there is.
static void test_any(void)
{
	static const uint16_t id[] = { VV_FILTER_SZIP, VV_FILTER_NBIT, VV_FILTER_SCALEOFFSET, VV_FILTER_LZF };
	uint64_t state = 3;

	for (int k = 0; k < 20000; k++) {
		struct vv_variable v = filtered(1, &id[k % 4], 0);
		size_t n = gen_below(&state, 80), len = 1 + gen_below(&state, 200);
		uint8_t *from = malloc(n + 1), *to = malloc(len);

		CHECK(from && to);
		gen_bytes(&state, from, n);
		if (n > 4 && k % 3)
			from[0] = (uint8_t)(k % 4 ? gen_below(&state, 65) : len), from[1] = from[2] = from[3] = 0;
		v.filter[0].n_values = (uint8_t)gen_below(&state, VV_READER_FILTER_VALUES + 1);
		for (unsigned i = 0; i < VV_READER_FILTER_VALUES; i++)
			v.filter[0].value[i] = (uint32_t)(gen_below(&state, 20) ? gen_below(&state, 40) : gen_next(&state));
		(void)vv_filter_undo(&v, 0, from, n, to, len);
		free(from);
		free(to);
	}
}

int main(void)
{
	test_shuffle();
	test_sum();
	test_unknown();
	test_lzf();
	test_nbit();
	test_scaleoffset();
	test_any();
	if (vv_deflate_built())
		test_deflate();
	return 0;
}
