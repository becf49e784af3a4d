/* Islam 2012's coders: every first pass with and without the second, every tail, every bit pattern; streams of fpzip that are the library's; and
 * blocks that lie. */
#include "base/err.h"
#include "base/mem.h"
#include "codec/codec.h"
#include "codec/fpc.h"
#include "codec/fpzip.h"
#include "core/format/digest.h"
#include "support/gen.h"
#include "support/snug.h"
#include "vv_test.h"
#include <math.h>

enum { LARGEST = 200000, KINDS = 5 };

static const struct vv_codec *paper;
static uint8_t from[LARGEST];

static void put_number(uint8_t *p, size_t i, unsigned width, double v)
{
	float f = (float)v;

	if (width == 8)
		memcpy(p + i * 8, &v, 8);
	else
		memcpy(p + i * 4, &f, 4);
}

/* Smooth; smooth with NaN, infinities, -0 and denormals here and there; noise; zeros; words. */
static void fill(uint64_t *state, int kind, unsigned width, size_t n)
{
	static const double odd[] = { NAN, INFINITY, -INFINITY, -0.0, 4e-320, -1e-42 };
	unsigned w = width == 4 ? 4 : 8;

	memset(from, 0, n);
	if (kind == 2)
		gen_bytes(state, from, n);
	else if (kind == 4)
		gen_text(state, from, n);
	for (size_t i = 0; kind < 2 && (i + 1) * w <= n; i++)
		put_number(from, i, w, kind && i % 7 == 3 ? odd[gen_below(state, 6)] : 3 + sin((double)i * 1e-3));
	for (size_t i = 5; kind == 1 && i + 8 < n; i += 997) /* NaNs of any payload, quiet or not */
		from[i / 8 * 8 + 7] = from[i / 8 * 8 + 6] = 0xff;
}

static uint8_t *encode(const struct vv_recipe *how, size_t n, size_t *out)
{
	return snug_encode(paper, from, n, how, paper->usual_level, out);
}

static int decode(const uint8_t *coded, size_t n, const uint8_t *want, size_t raw_len)
{
	return snug_decode(paper, coded, n, want, raw_len);
}

static const struct vv_recipe recipes[] = {
	{ .width = 8, .record = 1, .predictor = VV_PREDICT_FPC, .real = true },
	{ .width = 8, .record = 1, .predictor = VV_PREDICT_FPC, .real = true, .level = 12 },
	{ .width = 8, .record = 1, .predictor = VV_PREDICT_FPC, .real = true, .swapped = true },
	{ .width = 8, .record = 1, .predictor = VV_PREDICT_FPZIP, .real = true },
	{ .width = 4, .record = 1, .predictor = VV_PREDICT_FPZIP, .real = true },
	{ .width = 4, .record = 1, .predictor = VV_PREDICT_FPZIP, .real = true, .swapped = true },
	{ .width = 4, .record = 1, .predictor = VV_PREDICT_LZ },
	{ .width = 2, .record = 1, .predictor = VV_PREDICT_NONE },
};
enum { RECIPES = sizeof(recipes) / sizeof(recipes[0]) };

static void check_recipe(struct vv_recipe got, struct vv_recipe want)
{
	CHECK_EQ(got.width, want.width);
	CHECK_EQ(got.coder == VV_CODEC_NONE, want.coder == VV_CODEC_NONE);
	if (got.predictor != VV_PREDICT_NONE) {
		CHECK_EQ(got.predictor, want.predictor);
		CHECK_EQ(got.swapped, want.swapped);
		CHECK_EQ(got.level, want.level || want.predictor != VV_PREDICT_FPC ? want.level : 2);
	}
}

static void round_trip(const struct vv_recipe *how, int kind, size_t n)
{
	size_t got = 0;
	uint8_t *coded = encode(how, n, &got);

	CHECK(got || kind == 2 || kind == 4 || n < 400 || how->coder == VV_CODEC_NONE || kind == 1);
	if (got) {
		CHECK_EQ(decode(coded, got, from, n), 0);
		CHECK_EQ(decode(coded, got, NULL, n - 1), VV_EDAMAGED);
		CHECK_EQ(decode(coded, got, NULL, n + 1), VV_EDAMAGED);
		check_recipe(paper->recipe(coded, got), *how);
	}
	free(coded);
}

static void test_round_trips(void)
{
	uint64_t state = 1;

	for (size_t r = 0; r < RECIPES * 2; r++)
		for (int kind = 0; kind < KINDS; kind++)
			for (size_t n = 0; n < LARGEST; n = n < 80 ? n + 1 : n * 4 + (size_t)gen_below(&state, 7)) {
				struct vv_recipe how = recipes[r / 2];

				how.coder = r % 2 ? VV_CODEC_PAPER : VV_CODEC_NONE;
				fill(&state, kind, how.width, n);
				if (how.swapped && kind < 2)
					for (size_t i = 0; i < n / 2; i++) {
						uint8_t low = from[i];

						from[i] = from[n - 1 - i];
						from[n - 1 - i] = low;
					}
				round_trip(&how, kind, n);
			}
}

/* A recipe that does not suit, a codec that was asked for without one, and the other codecs' recipes. */
static void test_any_recipe(void)
{
	static const struct vv_recipe odd[] = {
		{ .width = 3, .record = 1, .predictor = VV_PREDICT_FPC, .coder = VV_CODEC_ZSTD },
		{ .width = 16, .record = 9, .predictor = VV_PREDICT_FPZIP, .coder = VV_CODEC_ZSTD },
		{ .width = 8, .record = 1, .predictor = VV_PREDICT_LORENZO, .coder = VV_CODEC_ZSTD, .n_strides = 1, .stride = { 1 } },
		{ .width = 0, .predictor = 200, .coder = VV_CODEC_ZSTD },
		{ .width = 8, .record = 1, .predictor = VV_PREDICT_FPC, .level = -9, .coder = VV_CODEC_ZSTD },
		{ .width = 8, .record = 1, .predictor = VV_PREDICT_FPC, .level = 127, .coder = VV_CODEC_ZSTD },
	};
	uint64_t state = 2;

	for (size_t i = 0; i <= sizeof(odd) / sizeof(odd[0]); i++) {
		const struct vv_recipe *how = i ? &odd[i - 1] : NULL;
		size_t got = 0;
		uint8_t *coded;

		fill(&state, 0, 8, 30001);
		coded = encode(how, 30001, &got);
		CHECK(got > 0);
		CHECK_EQ(decode(coded, got, from, 30001), 0);
		free(coded);
	}
}

/* What the paper says of them: one pass is good, two are better; and neither is without the first where numbers are smooth. */
static void test_ratios(void)
{
	struct vv_recipe single = { .width = 8, .record = 1, .predictor = VV_PREDICT_FPC, .real = true }, twice = single;
	size_t one = 0, two = 0, gzip = 0;
	uint64_t state = 3;

	twice.coder = VV_CODEC_PAPER;
	fill(&state, 0, 8, LARGEST);
	free(encode(&single, LARGEST, &one));
	free(encode(&twice, LARGEST, &two));
	free(encode(NULL, LARGEST, &gzip));
	CHECK(two > 0 && two < one && two < gzip);
	single.predictor = twice.predictor = VV_PREDICT_FPZIP;
	free(encode(&single, LARGEST, &one));
	CHECK(one > 0 && one < gzip);
}

/* Worked out apart from the code, with tables of two entries. The third number is what DFCM expects; of the last one FCM leaves out
 * four bytes, which count as three. */
static void test_fpc_example(void)
{
	static const uint64_t v[] = { 5, 10, 15, 0x0002030405060708, 0x0002030415060708 };
	static const uint8_t want[] = { 0xf6, 0x1f, 0x03, 5, 7, 7, 6, 5, 4, 3, 2, 0, 0, 0, 16, 0 };
	uint8_t to[64];
	uint64_t back[5];
	size_t n = 0;

	CHECK(vv_fpc_bound(5) <= sizeof(to));
	CHECK_EQ(vv_fpc_encode(v, 5, 1, to, &n), 0);
	CHECK_EQ(n, sizeof(want));
	CHECK(memcmp(to, want, n) == 0);
	CHECK_EQ(vv_fpc_decode(to, n, 1, back, 5), 0);
	CHECK(memcmp(v, back, sizeof(v)) == 0);
	CHECK_EQ(vv_fpc_decode(to, n, 0, back, 5), VV_EDAMAGED);
	CHECK_EQ(vv_fpc_decode(to, n, 21, back, 5), VV_EDAMAGED);
	CHECK_EQ(vv_fpc_decode(to, n, 1, back, 4), VV_EDAMAGED);
	CHECK_EQ(vv_fpc_decode(to, 0, 1, back, 5), VV_EDAMAGED);
}

/* Bit patterns for the streams below: made from integers alone, so that they are the same everywhere. */
static void make_golden(unsigned width, size_t count)
{
	uint64_t state = 77, walk = width == 8 ? 0x4010000000000000 : 0x40800000;

	for (size_t i = 0; i < count; i++) {
		uint64_t v;

		walk += gen_below(&state, width == 8 ? 1ull << 40 : 1 << 12) - (width == 8 ? 1ull << 39 : 1 << 11);
		v = gen_below(&state, 50) ? walk : gen_next(&state);
		v = gen_below(&state, 40) ? v : 1ull << (width * 8 - 1);
		memcpy(from + i * width, &v, width);
	}
}

/* Lengths and checks of what fpzip_write() of the library fpzip 1.3.0 makes of the same numbers. */
static void test_fpzip_streams(void)
{
	static const struct {
		unsigned width;
		size_t count, n;
		uint64_t check;
	} rows[] = {
		{ 4, 1, 8, 0xeb277e407a50f84f },
		{ 4, 100, 190, 0x40355ab0f3bae7a3 },
		{ 4, 20000, 35705, 0x0f40edf96056586d },
		{ 8, 1, 12, 0x41a2209fb4d51f11 },
		{ 8, 100, 552, 0x54b7109a55845737 },
		{ 8, 20000, 106597, 0x1807d5abbb04da13 },
	};
	static uint8_t to[LARGEST], back[LARGEST];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t n, bytes = rows[i].count * rows[i].width;

		make_golden(rows[i].width, rows[i].count);
		n = vv_fpzip_encode(from, rows[i].count, rows[i].width, to, sizeof(to));
		CHECK_EQ(n, rows[i].n);
		CHECK_EQ(vv_digest_check(to, n), rows[i].check);
		CHECK_EQ(vv_fpzip_decode(to, n, rows[i].width, back, rows[i].count), 0);
		CHECK(memcmp(from, back, bytes) == 0);
		CHECK_EQ(vv_fpzip_encode(from, rows[i].count, rows[i].width, to, n - 1), 0);
		CHECK_EQ(vv_fpzip_encode(from, rows[i].count, rows[i].width, to, n), n);
	}
}

static void test_damage(void)
{
	uint64_t state = 4;
	long refused = 0;

	for (size_t r = 0; r < RECIPES * 2; r++) {
		struct vv_recipe how = recipes[r / 2];
		size_t n = 3000 + r, got = 0;
		uint8_t *coded;

		how.coder = r % 2 ? VV_CODEC_PAPER : VV_CODEC_NONE;
		fill(&state, 0, how.width, n);
		coded = encode(&how, n, &got);
		for (size_t cut = 0; cut < got; cut += 1 + cut / 16)
			CHECK_EQ(decode(coded, cut, NULL, n), VV_EDAMAGED);
		for (size_t i = 0; i < got * 8; i += 1 + i / 256) {
			int rc;

			coded[i / 8] ^= (uint8_t)(1 << i % 8);
			rc = decode(coded, got, NULL, n);
			CHECK(rc == 0 || rc == VV_EDAMAGED || (rc == VV_ENOTSUP && !vv_codec_numbered(VV_CODEC_LZ4)));
			refused += rc != 0;
			coded[i / 8] ^= (uint8_t)(1 << i % 8);
		}
		free(coded);
	}
	CHECK(refused > 100);
}

/* Noise behind a head that is right: each first pass meets bytes that nobody made. */
static void test_noise(void)
{
	uint64_t state = 5;

	for (int i = 0; i < 20000; i++) {
		uint8_t noise[300];
		size_t n = 6 + (size_t)gen_below(&state, sizeof(noise) - 6), raw = (size_t)gen_below(&state, 900);
		static const uint8_t first[] = { VV_PREDICT_FPC, VV_PREDICT_FPZIP, VV_PREDICT_LZ };
		int rc;

		gen_bytes(&state, noise, sizeof(noise));
		noise[0] = first[i % 3];
		noise[1] = 0;
		noise[2] = i % 3 == 1 && i % 2 ? 4 : 8;
		noise[3] = i % 3 ? 0 : 1 + i % 20;
		if (i % 5 == 0)
			memset(noise + 4, i % 2 ? 0xff : 0, sizeof(noise) - 4);
		noise[4] = (uint8_t)(raw % 128 + 128);
		noise[5] = (uint8_t)(raw / 128);
		rc = decode(noise, n, NULL, raw);
		CHECK(rc == 0 || rc == VV_EDAMAGED);
	}
	/* a first pass that would have left more than it can: nothing is allocated for it */
	CHECK_EQ(decode((const uint8_t *)"\3\1\10\2\240\6\377\377\377\377\17xxxx", 15, NULL, 800), VV_EDAMAGED);
}

static void test_memory(void)
{
	struct vv_recipe how = { .width = 8, .record = 1, .predictor = VV_PREDICT_FPC, .swapped = true, .coder = VV_CODEC_PAPER };
	size_t n = 5000, got = 0, again;
	uint64_t state = 6;
	uint8_t *coded, to[6000];
	long asked;

	fill(&state, 3, 8, n);
	vv_mem_fail_at(0);
	coded = encode(&how, n, &got);
	asked = vv_mem_asked();
	for (long i = 1; i <= asked; i++) {
		vv_mem_fail_at(i);
		CHECK_EQ(paper->encode(from, n, &how, to, sizeof(to), 6, &again), VV_ENOMEM);
	}
	for (long i = 1; i <= 2; i++) {
		vv_mem_fail_at(i);
		CHECK_EQ(paper->decode(coded, got, to, n), VV_ENOMEM);
	}
	vv_mem_fail_at(0);
	free(coded);
}

int main(void)
{
	paper = vv_codec_numbered(VV_CODEC_PAPER);
	CHECK(paper);
	test_fpc_example();
	test_fpzip_streams();
	test_round_trips();
	test_any_recipe();
	test_ratios();
	test_damage();
	test_noise();
	test_memory();
	return 0;
}
