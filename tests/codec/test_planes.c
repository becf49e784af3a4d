/* Byte planes: every width, every tail; smaller than zstd where numbers are alike; and headers that lie. */
#include "base/err.h"
#include "codec/codec.h"
#include "support/gen.h"
#include "support/snug.h"
#include "vv_test.h"

enum { LARGEST = 300000, HEADER = 65 };

static const unsigned widths[] = { 2, 4, 8, 16 };
static const struct vv_codec *planes, *zstd;

/* Numbers up to a few thousand, as counters are: the first byte differs, the second little, the rest not. */
static void count(uint64_t *state, uint8_t *p, size_t n, unsigned width)
{
	memset(p, 0, n);
	for (size_t i = 0; i + 1 < n; i += width) {
		uint64_t v = gen_below(state, gen_below(state, 8) ? 300 : 5000);

		p[i] = (uint8_t)v;
		p[i + 1] = (uint8_t)(v >> 8);
	}
}

static uint8_t *encode(const uint8_t *from, size_t n, unsigned width, size_t *out)
{
	struct vv_recipe how = vv_recipe_plain(width);

	return snug_encode(planes, from, n, &how, 1, out);
}

static int decode(const uint8_t *coded, size_t n, const uint8_t *want, size_t raw_len)
{
	return snug_decode(planes, coded, n, want, raw_len);
}

static void test_round_trips(void)
{
	static uint8_t from[LARGEST];
	uint64_t state = 1;

	for (size_t w = 0; w < 4; w++)
		for (size_t n = 0; n < LARGEST; n = n < 150 ? n + 1 : n * 3 + gen_below(&state, 7)) {
			size_t got = 0;
			uint8_t *coded;

			for (int how = 0; how < 3; how++) {
				if (how == 0)
					count(&state, from, n, widths[w]);
				else if (how == 1)
					memset(from, 7, n);
				else
					gen_bytes(&state, from, n);
				coded = encode(from, n, widths[w], &got);
				CHECK(how == 2 || n < (how ? 5 : 100) * widths[w] || got);
				if (got) {
					CHECK_EQ(decode(coded, got, from, n), 0);
					CHECK_EQ(planes->recipe(coded, got).width, widths[w]);
				}
				free(coded);
			}
		}
}

/* A plane that cannot shrink stays as it is between others that can, wherever it lies, and even where its ends could. */
static void test_mixed_planes(void)
{
	static uint8_t from[LARGEST];
	uint64_t state = 2;

	for (size_t w = 0; w < 4; w++)
		for (unsigned noise = 0; noise < widths[w]; noise++) {
			size_t got = 0, n = LARGEST - noise;
			uint8_t *coded;

			count(&state, from, n, widths[w]);
			for (size_t i = noise; i < n; i += widths[w])
				from[i] = i > n / 2 ? (uint8_t)gen_next(&state) : 1;
			coded = encode(from, n, widths[w], &got);
			CHECK(got && got < n - n / 8);
			CHECK_EQ(decode(coded, got, from, n), 0);
			free(coded);
		}
}

static void test_is_smaller(void)
{
	static uint8_t from[LARGEST], to[2 * LARGEST];
	uint64_t state = 3;

	for (size_t w = 0; w < 4; w++) {
		size_t got = 0, plain = 0;

		count(&state, from, LARGEST, widths[w]);
		free(encode(from, LARGEST, widths[w], &got));
		CHECK_EQ(zstd->encode(from, LARGEST, NULL, to, sizeof(to), 1, &plain), 0);
		CHECK(got && plain && got < plain - plain / 20);
	}
	memset(from, 3, LARGEST);
	for (size_t w = 0; w < 4; w++) {
		size_t got = 0;

		free(encode(from, LARGEST, widths[w], &got));
		CHECK(got <= 1 + 2 * widths[w] + LARGEST % widths[w]);
	}
}

/* What is no number of these, and room that does not suffice: stored as it is. */
static void test_not_for_it(void)
{
	static const unsigned other[] = { 0, 1, 3, 5, 7, 9, 15, 17, 32, 1000, UINT32_MAX };
	uint8_t from[256] = { 0 }, to[600];
	size_t got = 99;

	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		CHECK_EQ(planes->encode(from, 256, &(struct vv_recipe){ .width = (uint8_t)other[i], .record = 1 }, to, sizeof(to), 1, &got), 0);
		CHECK_EQ(got, 0);
	}
	for (size_t cap = 0; cap < planes->bound(256); cap++) {
		memset(to, 0x5a, sizeof(to));
		CHECK_EQ(planes->encode(from, 256, &(struct vv_recipe){ .width = 2, .record = 1 }, to, cap, 1, &got), 0);
		CHECK(got <= cap);
		for (size_t i = cap; i < sizeof(to); i++)
			CHECK_EQ(to[i], 0x5a);
	}
}

/* w = 4, 100 numbers and a tail: lengths, then planes. */
static int forged(unsigned width, const size_t len[4], size_t body, size_t raw_len)
{
	uint8_t p[1000] = { (uint8_t)width };
	size_t at = 1;

	for (int k = 0; k < 4; k++) {
		p[at++] = (uint8_t)(len[k] % 128 | (len[k] > 127 ? 128 : 0));
		if (len[k] > 127)
			p[at++] = (uint8_t)(len[k] / 128);
	}
	return decode(p, at + body, NULL, raw_len);
}

static void test_hostile(void)
{
	CHECK_EQ(forged(4, (size_t[]){ 100, 100, 1, 1 }, 202, 400), 0);
	CHECK_EQ(forged(4, (size_t[]){ 100, 100, 1, 1 }, 203, 401), 0);
	CHECK_EQ(forged(4, (size_t[]){ 100, 100, 1, 1 }, 203, 400), VV_EDAMAGED);
	CHECK_EQ(forged(4, (size_t[]){ 100, 100, 1, 1 }, 201, 400), VV_EDAMAGED);
	CHECK_EQ(forged(4, (size_t[]){ 100, 100, 1, 0 }, 201, 400), VV_EDAMAGED);
	CHECK_EQ(forged(4, (size_t[]){ 100, 101, 1, 1 }, 203, 400), VV_EDAMAGED);
	CHECK_EQ(forged(4, (size_t[]){ 100, 99, 1, 1 }, 201, 400), VV_EDAMAGED); /* no frame */
	CHECK_EQ(forged(4, (size_t[]){ 16000, 1, 1, 1 }, 103, 400), VV_EDAMAGED);
	CHECK_EQ(forged(4, (size_t[]){ 1, 1, 1, 1 }, 4, 3), VV_EDAMAGED);
	CHECK_EQ(forged(4, (size_t[]){ 1, 1, 1, 1 }, 4, 4), 0);
	for (unsigned width = 0; width < 256; width++)
		CHECK_EQ(forged(width, (size_t[]){ 100, 100, 1, 1 }, 202, 400), width == 4 ? 0 : VV_EDAMAGED);
}

/* Any byte changed, anything cut off: an error, or bytes of the right number. */
static void test_damage(void)
{
	uint8_t from[3000];
	uint64_t state = 5;

	for (size_t w = 0; w < 4; w++) {
		size_t got = 0;
		uint8_t *coded;

		count(&state, from, sizeof(from), widths[w]);
		coded = encode(from, sizeof(from), widths[w], &got);
		CHECK(got);
		for (size_t cut = 0; cut < got; cut++)
			CHECK_EQ(decode(coded, cut, NULL, sizeof(from)), VV_EDAMAGED);
		for (size_t i = 0; i < got; i++)
			for (unsigned bit = 0; bit < 8; bit++) {
				int rc;

				coded[i] ^= (uint8_t)(1 << bit);
				rc = decode(coded, got, NULL, sizeof(from));
				CHECK(rc == 0 || rc == VV_EDAMAGED);
				CHECK(i > 0 || rc);
				coded[i] ^= (uint8_t)(1 << bit);
			}
		free(coded);
	}
}

int main(void)
{
	planes = vv_codec_numbered(VV_CODEC_PLANES);
	zstd = vv_codec_numbered(VV_CODEC_ZSTD);
	CHECK(planes && zstd);
	test_round_trips();
	test_mixed_planes();
	test_is_smaller();
	test_not_for_it();
	test_hostile();
	test_damage();
	return 0;
}
