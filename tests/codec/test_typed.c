/* Numbers by recipes: every recipe, every kind of number, every tail comes back; what is stored says how; golden blocks; and blocks that lie.
 * `test_codec_typed make DIR` writes golden blocks, once for every version of the format: see tests/codec/golden/README.md. */
// ctest: TIMEOUT 300 COST 2
#include "base/err.h"
#include "base/mem.h"
#include "codec/codec.h"
#include "core/format/digest.h"
#include "support/gen.h"
#include "support/numbers.h"
#include "support/snug.h"
#include "vv_test.h"

enum { LARGEST = 3 << 20 };

#define ZSTD1 .coder = VV_CODEC_ZSTD, .level = 1

static const struct vv_codec *typed;
static uint8_t raw[LARGEST + 16];

static uint8_t *encode(const uint8_t *from, size_t n, const struct vv_recipe *how, size_t *out)
{
	return snug_encode(typed, from, n, how, 1, out);
}

static int decode(const uint8_t *coded, size_t n, const uint8_t *want, size_t raw_len)
{
	int rc = snug_decode(typed, coded, n, want, raw_len);

	CHECK(rc == 0 || rc == VV_EDAMAGED || (rc == VV_ENOTSUP && !vv_codec_numbered(VV_CODEC_LZ4)));
	return rc;
}

/* The length that it is coded to, 0 if not. */
static size_t check(const uint8_t *from, size_t n, const struct vv_recipe *how)
{
	size_t got, again;
	uint8_t *coded = encode(from, n, how, &got), *recoded;

	if (got) {
		struct vv_recipe said = typed->recipe(coded, got);

		CHECK_EQ(decode(coded, got, from, n), 0);
		CHECK(how->width * how->record == 1 || (decode(coded, got, NULL, n - 1) && decode(coded, got, NULL, n + 1)));
		CHECK(vv_recipe_same(&said, how));
		recoded = encode(from, n, &said, &again);
		CHECK(again == got && memcmp(coded, recoded, got) == 0);
		free(recoded);
	}
	free(coded);
	return got;
}

static const struct vv_recipe *with_coder(struct vv_recipe *how, size_t i)
{
	static const struct {
		uint8_t coder;
		int8_t level;
		uint8_t window;
	} coders[] = { { VV_CODEC_ZSTD, 1, 0 }, { VV_CODEC_LZ4, 1, 0 }, { VV_CODEC_NONE, 1, 0 }, { VV_CODEC_ZSTD, 3, 20 }, { VV_CODEC_ZSTD, -5, 0 } };

	how->coder = coders[i % 5].coder;
	how->level = coders[i % 5].level;
	how->window = coders[i % 5].window;
	return how;
}

static void test_round_trips(void)
{
	struct vv_recipe how;
	uint64_t state = 1;
	size_t turn = 0;

	for (size_t i = 0; numbers_recipe(i, &how); i++) {
		size_t bytes = (size_t)how.width * how.record, shrunk = 0;
		size_t sizes[] = { 0, 1, how.width - 1u, how.width, bytes - 1, bytes, bytes + 1, 3 * bytes + 2, 5003, 20000 + i, 70001 };

		for (unsigned kind = 0; kind < NUMBERS_KINDS; kind++) {
			size_t n = kind == NUMBERS_CONSTANT ? 100000 : sizes[turn % 11], off = turn % 9;

			numbers_fill(&state, kind, &how, raw + off, n);
			shrunk = check(raw + off, n, with_coder(&how, turn++));
			CHECK(n >= bytes || !shrunk);
			CHECK(kind != NUMBERS_CONSTANT || how.predictor || !vv_codec_numbered(how.coder) || (shrunk && shrunk < n / 10));
		}
	}
	CHECK(turn > 1000);
}

/* Longer than any buffer inside. */
static void test_large(void)
{
	static const struct vv_recipe recipes[] = {
		{ .width = 8, .record = 1, .predictor = VV_PREDICT_LORENZO, .real = true, .n_strides = 3, .stride = { 1, 40, 1200 }, ZSTD1 },
		{ .width = 4, .record = 1, .predictor = VV_PREDICT_REAL, .real = true, .n_strides = 3, .stride = { 1, 40, 1200 }, ZSTD1 },
		{ .width = 8, .record = 1, .predictor = VV_PREDICT_REAL, .real = true, .swapped = true, .n_strides = 2, .stride = { 1, 40 }, ZSTD1 },
		{ .width = 2, .record = 5, .predictor = VV_PREDICT_LORENZO, .n_strides = 1, .stride = { 5 }, ZSTD1 },
		{ .width = 1, .record = 1, .coder = VV_CODEC_ZSTD, .level = 3, .window = 24 },
	};
	uint64_t state = 2;

	for (size_t i = 0; i < sizeof(recipes) / sizeof(recipes[0]); i++)
		for (unsigned kind = 0; kind < NUMBERS_KINDS; kind++) {
			size_t n = LARGEST - gen_below(&state, 20), got;

			numbers_fill(&state, kind, &recipes[i], raw, n);
			got = check(raw, n, &recipes[i]);
			CHECK(kind != NUMBERS_RANDOM || got == 0);
			CHECK(kind != NUMBERS_SMOOTH || !recipes[i].real || (got && got < n * 2 / 3));
		}
}

/* A window that reaches back finds what is far away, whatever samples say. */
static void test_far_back(void)
{
	struct vv_recipe how = { .width = 1, .record = 1, .coder = VV_CODEC_ZSTD, .level = 1, .window = 24 };
	uint64_t state = 3;

	gen_bytes(&state, raw, LARGEST / 2);
	memcpy(raw + LARGEST / 2, raw, LARGEST / 2);
	CHECK(check(raw, LARGEST, &how) < LARGEST * 6 / 10);
}

/* Planes of noise stay as they are. What only looks as if each value were as frequent as any other does not. */
static void test_noise(void)
{
	struct vv_recipe words = { .width = 8, .record = 1, ZSTD1 }, bytes = { .width = 1, .record = 1, ZSTD1 };
	uint64_t state = 12;

	for (size_t n = 1 << 10; n <= LARGEST / 8; n *= 2) {
		gen_bytes(&state, raw, 8 * n);
		CHECK_EQ(check(raw, 8 * n, &words), 0);
		for (size_t i = 0; i < n; i++) /* the upper half of each */
			memcpy(raw + 8 * i + 4, "\0\1\2\3", 4);
		CHECK(check(raw, 8 * n, &words) < 4 * n + 64);
		for (uint64_t i = 0; i < n; i++)
			memcpy(raw + 8 * i, &i, 8);
		CHECK(check(raw, 8 * n, &words) < n);
	}
	for (size_t n = 2 << 10; n < 32 << 10; n *= 2) {
		gen_bytes(&state, raw, n);
		memcpy(raw + n / 2, raw, n / 2);
		CHECK(check(raw, n, &bytes) < n * 6 / 10);
		gen_bytes(&state, raw, n);
		memset(raw + n / 4, 0, n / 4);
		CHECK(check(raw, n, &bytes) < n * 8 / 10);
	}
}

/* The level of the call where the recipe has none; strides that are not used are not stored. */
static void test_recipe(void)
{
	struct vv_recipe how = { .width = 4, .record = 1, .coder = VV_CODEC_ZSTD, .n_strides = 2, .stride = { 9, 9 } }, said;
	uint64_t state = 4;
	uint8_t *coded;
	size_t got;

	numbers_fill(&state, NUMBERS_COUNTS, &how, raw, 5000);
	coded = encode(raw, 5000, &how, &got);
	CHECK(got);
	said = typed->recipe(coded, got);
	CHECK_EQ(said.level, 1);
	CHECK_EQ(said.n_strides, 0);
	CHECK_EQ(said.coder, VV_CODEC_ZSTD);
	free(coded);
	for (size_t n = 0; n < 4; n++)
		CHECK_EQ(typed->recipe("\7\7\7\7", n).width, 1);
}

/* Recipes that are none, and room that does not suffice: stored as it is. */
static void test_not_for_it(void)
{
	static const struct vv_recipe bad[] = {
		{ .width = 0, .record = 1, .coder = VV_CODEC_ZSTD },
		{ .width = 3, .record = 1, .coder = VV_CODEC_ZSTD },
		{ .width = 17, .record = 1, .coder = VV_CODEC_ZSTD },
		{ .width = 4, .record = 0, .coder = VV_CODEC_ZSTD },
		{ .width = 4, .record = 257, .coder = VV_CODEC_ZSTD },
		{ .width = 4, .record = 65535, .coder = VV_CODEC_ZSTD },
		{ .width = 4, .record = 1, .coder = VV_CODEC_PLANES },
		{ .width = 4, .record = 1, .coder = 77 },
		{ .width = 4, .record = 1, .coder = VV_CODEC_ZSTD, .window = 9 },
		{ .width = 4, .record = 1, .coder = VV_CODEC_ZSTD, .window = 28 },
		{ .width = 4, .record = 1, .coder = VV_CODEC_ZSTD, .predictor = VV_PREDICT_FPC, .n_strides = 1, .stride = { 1 } },
	};
	struct vv_recipe how = { .width = 2, .record = 1, .coder = VV_CODEC_ZSTD };
	uint8_t to[5000];
	size_t got = 99;

	memset(raw, 0, 4096);
	CHECK_EQ(typed->encode(raw, 256, NULL, to, sizeof(to), 1, &got), 0);
	CHECK_EQ(got, 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		got = 99;
		CHECK_EQ(typed->encode(raw, 4096, &bad[i], to, sizeof(to), 1, &got), 0);
		CHECK_EQ(got, 0);
	}
	for (size_t cap = 0; cap < 300; cap++) {
		memset(to, 0x5a, sizeof(to));
		CHECK_EQ(typed->encode(raw, 256, &how, to, cap, 1, &got), 0);
		CHECK(got <= cap);
		for (size_t i = cap; i < sizeof(to); i++)
			CHECK_EQ(to[i], 0x5a);
	}
	how.coder = VV_CODEC_LZ4;
	CHECK_EQ(typed->encode(raw, 256, &how, to, sizeof(to), 1, &got), 0);
	CHECK_EQ(got != 0, vv_codec_numbered(VV_CODEC_LZ4) != NULL);
}

/* Noise is left alone, and so is a plane of it between others. */
static void test_mixed(void)
{
	uint64_t state = 6;

	for (unsigned noise = 0; noise < 8; noise++) {
		struct vv_recipe how = { .width = 8, .record = 1, ZSTD1 };
		size_t n = 800003, got;

		numbers_fill(&state, NUMBERS_COUNTS, &how, raw, n);
		for (size_t i = noise; i < n; i += 8)
			raw[i] = i > n / 2 ? (uint8_t)gen_next(&state) : 1;
		got = check(raw, n, &how);
		CHECK(got && got < n / 3);
	}
}

/* ---- blocks that lie ---- */

static void test_hostile(void)
{
	/* 2-byte integers, differences over 1 and 3, lz4 or none, 10 numbers: two planes as they are */
	static const uint8_t good[] = { 1 | 1 << 3, 0 | 2 << 2, 1, 0, 1, 3, 10, 1 };
	uint8_t p[64] = { 0 };
	size_t n = sizeof(good) + 11;

	memcpy(p, good, sizeof(good));
	CHECK_EQ(decode(p, n, NULL, 20), 0);
	CHECK_EQ(decode(p, n + 1, NULL, 21), 0);
	CHECK(decode(p, n + 1, NULL, 20) && decode(p, n, NULL, 21) && decode(p, n, NULL, 22) && decode(p, n, NULL, 1) && decode(p, n, NULL, 0));
	for (size_t at = 0; at < sizeof(good); at++)
		for (unsigned v = 0; v < 256; v++) {
			int rc;

			memcpy(p, good, sizeof(good));
			p[at] = (uint8_t)v;
			rc = decode(p, n, NULL, 20);
			CHECK(rc || at != 0 || (v & 7) == 1);
			CHECK(rc || at != 0 || v < 128);
			CHECK(rc || at != 1 || v < 16);
			CHECK(rc || at != 3 || v == 0 || (v >= 10 && v <= 27));
			CHECK(rc || at != 4 || (v >= 1 && v <= 3));
			CHECK(rc || at != 5 || (v >= 1 && v < 128));
			CHECK(rc || at < 6 || v == good[at]);
			CHECK((rc == 0) == (v == good[at]) || at < 6);
		}
}

/* Any byte changed, anything cut off: an error, or bytes of the right number. */
static void test_damage(void)
{
	struct vv_recipe how;
	uint64_t state = 7;

	for (size_t i = 0; numbers_recipe(i, &how); i += 7) {
		size_t n = 1500 + i % 13, got;
		uint8_t *coded;

		numbers_fill(&state, NUMBERS_COUNTS, &how, raw, n);
		coded = encode(raw, n, with_coder(&how, i), &got);
		for (size_t cut = 0; cut < got; cut += 1 + got / 40)
			CHECK_EQ(decode(coded, cut, NULL, n), VV_EDAMAGED);
		for (size_t k = 0; got && k < 300; k++) {
			size_t at = k < 64 ? k / 4 % got : gen_below(&state, got);
			uint8_t was = coded[at];

			coded[at] = (uint8_t)gen_next(&state);
			decode(coded, got, NULL, n);
			coded[at] = was;
		}
		free(coded);
	}
}

/* A header cannot make it allocate more than what is to be decoded, and want of memory is an ordinary error. */
static void test_memory(void)
{
	struct vv_recipe how = { .width = 8, .record = 1, .predictor = VV_PREDICT_LORENZO, .n_strides = 1, .stride = { 1 }, ZSTD1 };
	static uint8_t to[2 * LARGEST];
	uint64_t state = 8;
	size_t got = 0, none;
	int rc;

	numbers_fill(&state, NUMBERS_SMOOTH, &how, raw, LARGEST);
	CHECK_EQ(typed->encode(raw, LARGEST, &how, to, sizeof(to), 1, &got), 0);
	CHECK(got);
	for (long fail = 1; fail < 4; fail++) {
		static uint8_t back[LARGEST], again[2 * LARGEST];

		vv_mem_fail_at(fail);
		rc = typed->encode(raw, LARGEST, &how, again, sizeof(again), 1, &none);
		CHECK(rc == 0 || rc == VV_ENOMEM);
		vv_mem_fail_at(fail);
		rc = typed->decode(to, got, back, LARGEST);
		CHECK(rc == 0 ? memcmp(back, raw, LARGEST) == 0 : rc == VV_ENOMEM);
		vv_mem_fail_at(0);
	}
	CHECK_EQ(typed->decode(to, got, to, (64u << 20) + 1), VV_EDAMAGED);
	CHECK_EQ(typed->encode(raw, (64u << 20) + 1, &how, to, sizeof(to), 1, &none), 0);
	CHECK_EQ(none, 0);
}

/* ---- golden blocks: the same on every machine, for ever ---- */

enum { GOLDEN_LEN = 3001 };

/* Some of the recipes, of numbers of each kind in turn. */
static bool golden(size_t i, struct vv_recipe *how, uint8_t *p)
{
	uint64_t state = 1000 + i;
	bool more = numbers_recipe(i * 23, how);

	if (more) {
		with_coder(how, i);
		how->level = how->level < 0 ? 19 : how->level;
		numbers_fill(&state, i % 3 ? NUMBERS_SMOOTH : NUMBERS_NAN + (enum numbers)(i / 3 % 3), how, p, GOLDEN_LEN);
	}
	return more;
}

static FILE *open_golden(const char *dir, size_t i, const char *mode)
{
	char path[4096];

	CHECK((size_t)snprintf(path, sizeof(path), "%s/%zu", dir, i) < sizeof(path));
	return fopen(path, mode);
}

/* Per block its number, its decoded length and the digest of what it decodes to. */
static void make_golden(const char *dir)
{
	char path[4096];
	struct vv_recipe how;
	FILE *list;

	snprintf(path, sizeof(path), "%s/list", dir);
	list = fopen(path, "w");
	CHECK(list);
	for (size_t i = 0; golden(i, &how, raw); i++) {
		struct vv_digest digest;
		size_t got;
		uint8_t *coded = encode(raw, GOLDEN_LEN, &how, &got);
		FILE *f = got ? open_golden(dir, i, "wb") : NULL;

		vv_digest_of_kind(VV_DIGEST_SHA256)(raw, GOLDEN_LEN, &digest);
		CHECK(!got || (f && fwrite(coded, 1, got, f) == got && fclose(f) == 0));
		if (got)
			fprintf(list, "%zu %d ", i, GOLDEN_LEN);
		for (size_t k = 0; got && k < sizeof(digest); k++)
			fprintf(list, "%02x%s", ((const uint8_t *)&digest)[k], k + 1 < sizeof(digest) ? "" : "\n");
		free(coded);
	}
	CHECK(fclose(list) == 0);
}

static void test_golden(void)
{
	const char *source = getenv("VARVE_SOURCE");
	static uint8_t coded[GOLDEN_LEN];
	struct vv_recipe how, said;
	char dir[4096];
	size_t found = 0;

	snprintf(dir, sizeof(dir), "%s/tests/codec/golden", source ? source : ".");
	for (size_t i = 0; golden(i, &how, raw); i++) {
		FILE *f = open_golden(dir, i, "rb");
		size_t n = f ? fread(coded, 1, sizeof(coded), f) : 0;

		if (!f)
			continue;
		fclose(f);
		found++;
		said = typed->recipe(coded, n);
		CHECK(vv_recipe_same(&said, &how));
		if (how.coder == VV_CODEC_LZ4 && !vv_codec_numbered(VV_CODEC_LZ4))
			continue;
		CHECK_EQ(decode(coded, n, raw, GOLDEN_LEN), 0);
	}
	CHECK(found > 20);
}

int main(int argc, char **argv)
{
	typed = vv_codec_numbered(VV_CODEC_TYPED);
	CHECK(typed);
	if (argc == 3 && strcmp(argv[1], "make") == 0) {
		make_golden(argv[2]);
		return 0;
	}
	test_round_trips();
	test_large();
	test_far_back();
	test_noise();
	test_recipe();
	test_not_for_it();
	test_mixed();
	test_hostile();
	test_damage();
	test_memory();
	test_golden();
	return 0;
}
