/* Coded tables: there and back, none that is not worth it, and none that a few bytes could make a gigabyte of. */
#include "base/err.h"
#include "base/mem.h"
#include "base/wire.h"
#include "codec/codec.h"
#include "codec/section.h"
#include "support/gen.h"
#include "vv_test.h"

enum { LARGE = 5 << 20 };

/* From an exact copy, so that a sanitizer sees a read beyond it. */
static int decode(const uint8_t *p, size_t n, const uint8_t *want, size_t len)
{
	uint8_t *copy = malloc(n + !n), *raw = NULL;
	size_t got = 0;
	int rc;

	CHECK(copy);
	memcpy(copy, p, n);
	rc = vv_section_decode(copy, n, &raw, &got);
	CHECK(rc == 0 || raw == NULL);
	if (rc == 0 && want)
		CHECK(got == len && memcmp(raw, want, len) == 0);
	vv_mem_free(raw);
	free(copy);
	return rc;
}

static void test_round_trips(void)
{
	uint8_t *from = malloc(LARGE);
	uint64_t state = 1;

	CHECK(from);
	for (size_t n = 1; n <= LARGE; n = n * 2 + gen_below(&state, 3)) {
		struct vv_buf b = { 0 };

		gen_text(&state, from, n);
		vv_buf_add(&b, "before", 6);
		CHECK_EQ(vv_section_encode(from, n, &b), 0);
		CHECK(memcmp(b.p, "before", 6) == 0);
		CHECK(b.n == 6 || b.n - 6 <= n - n / 8 + 10);
		CHECK(n < 1000 || b.n > 6);
		CHECK(n >= 128 || b.n == 6);
		if (b.n > 6)
			CHECK_EQ(decode(b.p + 6, b.n - 6, from, n), 0);
		b.n = 6;
		gen_bytes(&state, from, n);
		CHECK_EQ(vv_section_encode(from, n, &b), 0);
		CHECK_EQ(b.n, 6);
		vv_buf_fini(&b);
	}
	free(from);
}

/* A table of one step: the coder could do it in a few bytes, the limit does not let it. */
static void test_limit(void)
{
	uint8_t *from = malloc(LARGE);
	struct vv_buf b = { 0 };

	CHECK(from);
	memset(from, 1, LARGE);
	CHECK_EQ(vv_section_encode(from, LARGE, &b), 0);
	CHECK_EQ(b.n, LARGE / 1024);
	CHECK_EQ(b.p[b.n - 1], 0);
	CHECK_EQ(decode(b.p, b.n, from, LARGE), 0);
	CHECK_EQ(decode(b.p, b.n - 1, NULL, 0), VV_EDAMAGED);
	b.p[b.n - 1] = 1;
	CHECK_EQ(decode(b.p, b.n, NULL, 0), VV_EDAMAGED);
	CHECK(strstr(vv_err_last(), "left over"));
	vv_buf_fini(&b);
	free(from);
}

/* Lengths as they are given around a right frame; fill bytes of 0 behind it. */
static int forged(uint64_t len, uint64_t frame_len, size_t fill)
{
	const struct vv_codec *c = vv_codec_numbered(VV_CODEC_ZSTD);
	uint8_t raw[2000] = { 0 }, frame[2000];
	struct vv_buf b = { 0 };
	size_t n = 0;
	int rc;

	CHECK(c && c->encode(raw, sizeof(raw), NULL, frame, sizeof(frame), 3, &n) == 0 && n);
	vv_wire_put_var(&b, len);
	vv_wire_put_var(&b, frame_len ? frame_len - 1 + n : 0);
	vv_buf_add(&b, frame, n);
	for (size_t i = 0; i < fill; i++)
		vv_wire_put_u8(&b, 0);
	rc = decode(b.p, b.n, raw, sizeof(raw));
	vv_buf_fini(&b);
	return rc;
}

static void test_hostile(void)
{
	static const uint64_t lengths[] = { 0, 1, 1999, 2001, 30000, 1 << 20, 1ull << 32, (1ull << 32) + 1, 1ull << 40, UINT64_MAX };
	uint8_t noise[100];
	uint64_t state = 3;

	CHECK_EQ(forged(2000, 1, 0), 0);
	CHECK_EQ(forged(2000, 1, 100), 0);
	CHECK_EQ(forged(2000, 0, 0), VV_EDAMAGED);
	CHECK_EQ(forged(2000, 2, 0), VV_EDAMAGED);
	CHECK_EQ(forged(2000, UINT64_MAX - 100, 0), VV_EDAMAGED);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		vv_mem_fail_at(0);
		CHECK_EQ(forged(lengths[i], 1, 0), VV_EDAMAGED);
		CHECK(lengths[i] < 30000 || vv_mem_asked() == 1); /* the forger's own: beyond the limit nothing is allocated */
	}
	for (int i = 0; i < 5000; i++) {
		size_t n = (size_t)gen_below(&state, sizeof(noise));
		int rc;

		gen_bytes(&state, noise, n);
		rc = decode(noise, n, NULL, 0);
		CHECK(rc == 0 || rc == VV_EDAMAGED);
	}
}

/* A table that the memory cannot hold is refused before anything is allocated for it. */
static void test_too_large(void)
{
	enum { N = 65 << 20 };
	uint8_t *from = calloc(N, 1);
	struct vv_buf b = { 0 };

	CHECK(from);
	CHECK_EQ(vv_section_encode(from, N, &b), 0);
	vv_mem_pretend_available(N - 1);
	vv_mem_fail_at(0);
	CHECK_EQ(decode(b.p, b.n, from, N), VV_ENOMEM);
	CHECK_EQ(vv_mem_asked(), 0);
	CHECK_STR(vv_err_last(), "a compressed table: out of memory (65 MiB wanted, 64 MiB available)");
	vv_mem_pretend_available(N);
	CHECK_EQ(decode(b.p, b.n, from, N), 0);
	vv_mem_pretend_available(0);
	vv_buf_fini(&b);
	free(from);
}

static void test_damage(void)
{
	uint8_t from[900];
	struct vv_buf b = { 0 };
	uint64_t state = 4;

	gen_text(&state, from, sizeof(from));
	CHECK_EQ(vv_section_encode(from, sizeof(from), &b), 0);
	CHECK(b.n > 0);
	for (size_t n = 0; n < b.n; n++)
		CHECK_EQ(decode(b.p, n, NULL, 0), VV_EDAMAGED);
	for (size_t i = 0; i < b.n * 8; i++) {
		int rc;

		b.p[i / 8] ^= (uint8_t)(1 << i % 8);
		rc = decode(b.p, b.n, NULL, 0);
		CHECK(rc == 0 || rc == VV_EDAMAGED);
		b.p[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	vv_buf_fini(&b);
}

static void test_no_memory(void)
{
	uint8_t from[5000];
	uint64_t state = 5;
	int rc = -1;

	gen_text(&state, from, sizeof(from));
	for (long k = 1; rc != 0; k++) {
		struct vv_buf b = { 0 };
		uint8_t *raw = NULL;
		size_t n = 0;

		vv_mem_fail_at(k);
		rc = vv_section_encode(from, sizeof(from), &b);
		if (rc == 0)
			rc = vv_section_decode(b.p, b.n, &raw, &n);
		CHECK(rc == 0 ? k > 3 : rc == VV_ENOMEM);
		vv_mem_free(raw);
		vv_buf_fini(&b);
	}
	vv_mem_fail_at(0);
}

/* A build without zstd codes nothing, and says what it lacks. */
static void test_without(void)
{
	uint8_t from[5000] = { 0 };
	struct vv_buf b = { 0 };

	CHECK_EQ(vv_section_encode(from, sizeof(from), &b), 0);
	CHECK_EQ(b.n, 0);
	CHECK_EQ(decode((const uint8_t *)"\2\2xx", 4, NULL, 0), VV_ENOTSUP);
	CHECK(strstr(vv_err_last(), "zstd") && strstr(vv_err_last(), "built without"));
}

int main(void)
{
	if (!vv_codec_numbered(VV_CODEC_ZSTD)) {
		test_without();
		return 0;
	}
	test_round_trips();
	test_limit();
	test_hostile();
	test_too_large();
	test_damage();
	test_no_memory();
	return 0;
}
