/* Every codec that was built in: round trips, a bound that holds, and damaged input that never leaves its buffer. */
#include "base/err.h"
#include "codec/codec.h"
#include "support/gen.h"
#include "vv_test.h"

enum { LARGEST = 1 << 20, GUARD = 64 };

typedef void (*filler)(uint64_t *state, void *p, size_t n);

static void zeros(uint64_t *state, void *p, size_t n)
{
	(void)state;
	memset(p, 0, n);
}

static const filler fillers[] = { gen_bytes, zeros, gen_text };
static const size_t sizes[] = { 0, 1, 2, 15, 16, 17, 255, 4096, 65537, LARGEST };

/* Memory with guard bytes behind it; a sanitizer guards it better, but not every build has one. */
static uint8_t *guarded(size_t n)
{
	uint8_t *p = malloc(n + GUARD);

	CHECK(p);
	memset(p, 0x5a, n + GUARD);
	return p;
}

static void check_guard(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < GUARD; i++)
		CHECK_EQ(p[n + i], 0x5a);
}

/* Planes are for numbers; whatever it is, it can be read as some. */
static const struct vv_recipe *recipe_for(const struct vv_codec *c)
{
	static const struct vv_recipe words = { .width = 4, .record = 1, .coder = VV_CODEC_ZSTD };
	static const struct vv_recipe trail = { .width = 8, .record = 1, .predictor = VV_PREDICT_TRAIL, .coder = VV_CODEC_ZSTD };
	static const struct vv_recipe columns = { .width = 1, .record = 1, .predictor = VV_PREDICT_TEXT, .coder = VV_CODEC_ZSTD };

	return c->number == VV_CODEC_TRAIL ? &trail : c->number == VV_CODEC_TEXT ? &columns : c->recipe ? &words : NULL;
}

/* Encodes into exactly the bound; the coded length. */
static size_t encode(const struct vv_codec *c, const uint8_t *from, size_t n, int level, uint8_t **to)
{
	size_t cap = c->bound(n), out = 12345;

	CHECK(cap >= n);
	*to = guarded(cap);
	CHECK_EQ(c->encode(from, n, recipe_for(c), *to, cap, level, &out), 0);
	check_guard(*to, cap);
	CHECK(out == 0 || out < n);
	return out;
}

static int decode_guarded(uint32_t number, const uint8_t *from, size_t n, size_t raw_len, uint8_t **back)
{
	int rc;

	*back = guarded(raw_len);
	rc = vv_codec_decode(number, from, n, *back, raw_len);
	check_guard(*back, raw_len);
	return rc;
}

static size_t check_round_trip(const struct vv_codec *c, const uint8_t *from, size_t n, int level)
{
	uint8_t *coded, *back;
	size_t out = encode(c, from, n, level, &coded);

	if (out) {
		CHECK_EQ(decode_guarded(c->number, coded, out, n, &back), 0);
		CHECK(memcmp(from, back, n) == 0);
		free(back);
		CHECK_EQ(decode_guarded(c->number, coded, out, n - 1, &back), VV_EDAMAGED);
		free(back);
		CHECK_EQ(decode_guarded(c->number, coded, out, n + 1, &back), VV_EDAMAGED);
		free(back);
	}
	free(coded);
	return out;
}

static void test_round_trips(const struct vv_codec *c)
{
	static uint8_t from[LARGEST];
	uint64_t state = 1;

	for (size_t f = 0; f < 3; f++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			size_t out;

			fillers[f](&state, from, sizes[i]);
			out = check_round_trip(c, from, sizes[i], c->usual_level);
			CHECK(fillers[f] != gen_bytes || out == 0);
			CHECK(fillers[f] == gen_bytes || sizes[i] < 4096 || (out > 0 && (c->recipe || out < sizes[i] / 2)));
		}
}

static void test_levels(const struct vv_codec *c)
{
	static uint8_t from[30000];
	uint64_t state = 2;

	CHECK(c->min_level <= c->usual_level && c->usual_level <= c->max_level);
	gen_text(&state, from, sizeof(from));
	for (int level = c->min_level; level <= c->max_level; level++)
		CHECK(check_round_trip(c, from, sizeof(from), level) > 0);
}

/* Too small an output is no error: the block is stored as it is. */
static void test_small_output(const struct vv_codec *c)
{
	static uint8_t from[5000];
	uint64_t state = 3;

	gen_text(&state, from, sizeof(from));
	for (size_t cap = 1; cap < 200; cap += 9) {
		uint8_t *to = guarded(cap);
		size_t out = 12345;

		CHECK_EQ(c->encode(from, sizeof(from), recipe_for(c), to, cap, c->usual_level, &out), 0);
		check_guard(to, cap);
		CHECK_EQ(out, 0);
		free(to);
	}
}

/* Decodes an exact copy and does not trust the answer: either damage, or bytes of the right number. */
static int try_damaged(const struct vv_codec *c, const uint8_t *p, size_t n, size_t raw_len)
{
	uint8_t *copy = malloc(n ? n : 1), *back;
	int rc;

	CHECK(copy);
	memcpy(copy, p, n);
	rc = decode_guarded(c->number, copy, n, raw_len, &back);
	CHECK(rc == 0 || rc == VV_EDAMAGED);
	free(back);
	free(copy);
	return rc;
}

static void test_damage(const struct vv_codec *c)
{
	uint8_t from[700], *coded, noise[200];
	uint64_t state = 4;
	long refused = 0;
	size_t n;

	gen_text(&state, from, sizeof(from));
	n = encode(c, from, sizeof(from), c->usual_level, &coded);
	CHECK(n > 0);
	for (size_t cut = 0; cut < n; cut++)
		CHECK_EQ(try_damaged(c, coded, cut, sizeof(from)), VV_EDAMAGED);
	for (size_t i = 0; i < n * 8; i++) {
		coded[i / 8] ^= (uint8_t)(1 << i % 8);
		refused += try_damaged(c, coded, n, sizeof(from)) != 0;
		coded[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	CHECK(refused > 0);
	for (int i = 0; i < 2000; i++) {
		size_t len = (size_t)gen_below(&state, sizeof(noise));

		gen_bytes(&state, noise, len);
		try_damaged(c, noise, len, (size_t)gen_below(&state, 3000));
	}
	free(coded);
}

static void test_names(void)
{
	for (const struct vv_codec *const *c = vv_codec_all(); *c; c++) {
		size_t len = strlen((*c)->name);

		CHECK(vv_codec_named((*c)->name, len) == *c);
		CHECK(vv_codec_named((*c)->name, len - 1) == NULL);
		CHECK(vv_codec_numbered((*c)->number) == *c);
		CHECK_STR(vv_codec_name((*c)->number), (*c)->name);
		CHECK((*c)->number != 0);
		for (const struct vv_codec *const *d = vv_codec_all(); d != c; d++)
			CHECK((*d)->number != (*c)->number && strcmp((*d)->name, (*c)->name) != 0);
	}
	CHECK(vv_codec_named("", 0) == NULL);
	CHECK(vv_codec_named("none", 4) == NULL);
	CHECK(vv_codec_numbered(0) == NULL);
	CHECK_STR(vv_codec_name(0), "none");
	CHECK_STR(vv_codec_name(12345), "?");
}

static void test_none_and_unknown(void)
{
	static const uint32_t unknown[] = { 99, 128, 255, 256, UINT32_MAX };
	uint8_t from[] = { 1, 2, 3, 4, 5 }, *back;

	CHECK_EQ(decode_guarded(0, from, 5, 5, &back), 0);
	CHECK(memcmp(from, back, 5) == 0);
	free(back);
	CHECK_EQ(decode_guarded(0, from, 5, 4, &back), VV_EDAMAGED);
	free(back);
	CHECK_EQ(decode_guarded(0, from, 5, 6, &back), VV_EDAMAGED);
	free(back);
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		CHECK_EQ(decode_guarded(unknown[i], from, 5, 5, &back), VV_ENOTSUP);
		CHECK(strstr(vv_err_last(), "unknown codec"));
		free(back);
	}
	for (uint32_t number = VV_CODEC_LZ4; number <= VV_CODEC_TEXT; number++) {
		if (number == VV_CODEC_DELTA || vv_codec_numbered(number))
			continue;
		CHECK_EQ(decode_guarded(number, from, 5, 5, &back), VV_ENOTSUP);
		CHECK(strstr(vv_err_last(), "built without") && !strstr(vv_err_last(), "unknown"));
		free(back);
	}
}

int main(void)
{
	for (const struct vv_codec *const *c = vv_codec_all(); *c; c++) {
		test_round_trips(*c);
		test_levels(*c);
		test_small_output(*c);
		test_damage(*c);
	}
	test_names();
	test_none_and_unknown();
	return 0;
}
