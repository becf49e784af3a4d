/* Numbers and strings on the wire: one encoding per value, nothing read past the end, the first bad read sticks. */
#include "base/mem.h"
#include "base/wire.h"
#include "support/gen.h"
#include "vv_test.h"

static void test_fixed(void)
{
	static const uint8_t want[] = { 0xab, 0xcd, 0xab, 4, 3, 2, 1, 8, 7, 6, 5, 4, 3, 2, 1 };
	struct vv_buf b = { 0 };
	struct vv_wire w;

	vv_wire_put_u8(&b, 0xab);
	vv_wire_put_u16(&b, 0xabcd);
	vv_wire_put_u32(&b, 0x01020304);
	vv_wire_put_u64(&b, 0x0102030405060708);
	CHECK_EQ(b.n, sizeof(want));
	CHECK(memcmp(b.p, want, sizeof(want)) == 0);
	w = vv_wire_over(b.p, b.n);
	CHECK_EQ(vv_wire_u8(&w), 0xab);
	CHECK_EQ(vv_wire_u16(&w), 0xabcd);
	CHECK_EQ(vv_wire_u32(&w), 0x01020304);
	CHECK_EQ(vv_wire_left(&w), 8);
	CHECK_EQ(vv_wire_u64(&w), 0x0102030405060708);
	CHECK(!w.bad && vv_wire_left(&w) == 0);
	vv_buf_fini(&b);
}

/* bytes of the shortest form */
static size_t var_len(uint64_t v)
{
	size_t n = 1;

	while (v >>= 7)
		n++;
	return n;
}

static void check_var(uint64_t v)
{
	struct vv_buf b = { 0 };
	struct vv_wire w;

	vv_wire_put_var(&b, v);
	CHECK_EQ(b.n, var_len(v));
	w = vv_wire_over(b.p, b.n);
	CHECK_EQ(vv_wire_var(&w), v);
	CHECK(!w.bad && vv_wire_left(&w) == 0);
	for (size_t cut = 0; cut < b.n; cut++) {
		w = vv_wire_over(b.p, cut);
		CHECK_EQ(vv_wire_var(&w), 0);
		CHECK(w.bad);
	}
	b.n = 0;
	vv_wire_put_signed(&b, (int64_t)v);
	w = vv_wire_over(b.p, b.n);
	CHECK_EQ(vv_wire_signed(&w), (int64_t)v);
	CHECK(!w.bad && vv_wire_left(&w) == 0);
	vv_buf_fini(&b);
}

static void test_var_values(void)
{
	uint64_t state = 1;

	for (unsigned bit = 0; bit < 64; bit++)
		for (int d = -2; d <= 2; d++)
			check_var((1ull << bit) + (uint64_t)(int64_t)d);
	for (int i = 0; i < 20000; i++)
		check_var(gen_next(&state) >> gen_below(&state, 64));
}

static void test_zigzag(void)
{
	static const struct {
		int64_t v;
		uint8_t byte;
	} pairs[] = { { 0, 0 }, { -1, 1 }, { 1, 2 }, { -2, 3 }, { 63, 126 }, { -64, 127 } };
	struct vv_buf b = { 0 };

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		vv_wire_put_signed(&b, pairs[i].v);
	CHECK_EQ(b.n, sizeof(pairs) / sizeof(pairs[0]));
	for (size_t i = 0; i < b.n; i++)
		CHECK_EQ(b.p[i], pairs[i].byte);
	vv_buf_fini(&b);
}

static void refuse_var(const void *p, size_t n)
{
	struct vv_wire w = vv_wire_over(p, n);

	CHECK_EQ(vv_wire_var(&w), 0);
	CHECK(w.bad);
}

/* Longer forms of a number, more than 64 bits, more than ten bytes. */
static void test_var_forms(void)
{
	uint8_t long_zero[11] = { 0 }, top[10];

	for (size_t n = 2; n <= sizeof(long_zero); n++) {
		memset(long_zero, 0x80, n - 1);
		long_zero[n - 1] = 0;
		refuse_var(long_zero, n);
	}
	memset(top, 0xff, sizeof(top));
	for (unsigned last = 0; last < 256; last++) {
		struct vv_wire w = vv_wire_over(top, sizeof(top));

		top[9] = (uint8_t)last;
		if (last != 1) {
			refuse_var(top, sizeof(top));
			continue;
		}
		CHECK_EQ(vv_wire_var(&w), UINT64_MAX);
		CHECK(!w.bad);
	}
}

/* Every one, two and three byte input: what decodes encodes to the same bytes. */
static void test_var_canonical(void)
{
	struct vv_buf b = { 0 };

	for (uint32_t x = 0; x < 1u << 24; x += x < 1u << 17 ? 1 : 251) {
		uint8_t in[3] = { (uint8_t)x, (uint8_t)(x >> 8), (uint8_t)(x >> 16) };
		struct vv_wire w = vv_wire_over(in, sizeof(in));
		uint64_t v = vv_wire_var(&w);

		if (w.bad)
			continue;
		b.n = 0;
		vv_wire_put_var(&b, v);
		CHECK_EQ(b.n, (size_t)(w.p - in));
		CHECK(memcmp(b.p, in, b.n) == 0);
	}
	vv_buf_fini(&b);
}

static void test_var_max(void)
{
	struct vv_buf b = { 0 };

	for (uint64_t v = 0; v < 600; v++)
		for (uint64_t max = v ? v - 1 : 0; max <= v + 1; max++) {
			struct vv_wire w;

			b.n = 0;
			vv_wire_put_var(&b, v);
			w = vv_wire_over(b.p, b.n);
			CHECK_EQ(vv_wire_var_max(&w, max), v <= max ? v : 0);
			CHECK_EQ(w.bad, v > max);
		}
	vv_buf_fini(&b);
}

static void test_sticky(void)
{
	static const uint8_t in[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
	struct vv_wire w = vv_wire_over(in, sizeof(in));
	char s[4] = "xyz";

	CHECK_EQ(vv_wire_u8(&w), 1);
	CHECK(vv_wire_bytes(&w, 10) == NULL);
	CHECK(w.bad);
	CHECK_EQ(vv_wire_left(&w), 0);
	CHECK_EQ(vv_wire_u8(&w), 0);
	CHECK_EQ(vv_wire_u16(&w), 0);
	CHECK_EQ(vv_wire_u32(&w), 0);
	CHECK_EQ(vv_wire_u64(&w), 0);
	CHECK_EQ(vv_wire_var(&w), 0);
	CHECK_EQ(vv_wire_var_max(&w, 9), 0);
	CHECK_EQ(vv_wire_signed(&w), 0);
	CHECK(vv_wire_bytes(&w, 0) == NULL);
	CHECK(vv_wire_bytes(&w, SIZE_MAX) == NULL);
	vv_wire_str(&w, s, sizeof(s));
	CHECK_STR(s, "");
	CHECK(w.bad);
}

/* No bytes at all, and no place where they would be. */
static void test_nothing(void)
{
	struct vv_wire w = vv_wire_over(NULL, 0);

	CHECK_EQ(vv_wire_left(&w), 0);
	CHECK(!w.bad);
	CHECK_EQ(vv_wire_var(&w), 0);
	CHECK(w.bad);
}

static void check_str(const void *p, size_t n, size_t cap, const char *want)
{
	char *out = vv_mem_new(cap, 1);
	struct vv_wire w = vv_wire_over(p, n);

	CHECK(out);
	memset(out, 'Z', cap);
	vv_wire_str(&w, out, cap);
	CHECK_EQ(w.bad, want == NULL);
	CHECK_STR(out, want ? want : "");
	vv_mem_free(out);
}

static void test_str(void)
{
	struct vv_buf b = { 0 };

	vv_wire_put_str(&b, "abc");
	CHECK_EQ(b.n, 4);
	check_str(b.p, 4, 4, "abc");
	check_str(b.p, 4, 100, "abc");
	check_str(b.p, 4, 3, NULL);
	check_str(b.p, 4, 1, NULL);
	check_str(b.p, 3, 4, NULL);
	check_str("", 1, 1, "");
	check_str("\3a\0c", 4, 10, NULL);
	check_str("\1\0", 2, 10, NULL);
	check_str("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, 10, NULL);
	vv_buf_fini(&b);
}

/* A writer over a buffer that cannot grow writes nothing, from the failure on. */
static void test_put_without_memory(void)
{
	struct vv_buf b = { 0 };

	vv_mem_fail_at(1);
	vv_wire_put_var(&b, 300);
	vv_mem_fail_at(0);
	vv_wire_put_u64(&b, 1);
	vv_wire_put_str(&b, "x");
	CHECK(b.failed);
	CHECK_EQ(b.n, 0);
	vv_buf_fini(&b);
}

int main(void)
{
	test_fixed();
	test_var_values();
	test_zigzag();
	test_var_forms();
	test_var_canonical();
	test_var_max();
	test_sticky();
	test_nothing();
	test_str();
	test_put_without_memory();
	return 0;
}
