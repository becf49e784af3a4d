// Filters undone: what comes out, and what is said of bytes that no filter made.
#include "reader/filter.h"
#include "base/deflate.h"
#include "base/err.h"
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
	CHECK_EQ(vv_filter_undo(&v, 0, coded, n, out, 4), VV_ENOTSUP);
}

static void test_unknown(void)
{
	static const uint16_t id[] = { 32000 };
	uint8_t out[4];
	struct vv_variable v = filtered(1, id, 0);

	CHECK_EQ(vv_filter_undo(&v, 0, "abcd", 4, out, 4), VV_ENOTSUP);
	CHECK_EQ(vv_filter_undo(&v, 1, "abcd", 4, out, 4), 0);
	v.n_filters = 0;
	CHECK_EQ(vv_filter_undo(&v, 0, "abcd", 4, out, 4), 0);
	CHECK(memcmp(out, "abcd", 4) == 0);
	CHECK_EQ(vv_filter_undo(&v, 0, "abcd", 3, out, 4), VV_EDAMAGED);
}

int main(void)
{
	test_shuffle();
	test_sum();
	test_unknown();
	if (vv_deflate_built())
		test_deflate();
	return 0;
}
