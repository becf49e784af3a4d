/* Words on trails: every size and tail, images of memory that were moved, records; smaller than zstd there; and blocks that lie. */
#include "base/err.h"
#include "base/mem.h"
#include "base/wire.h"
#include "codec/codec.h"
#include "support/gen.h"
#include "support/snug.h"
#include "vv_test.h"

enum { LARGEST = 1 << 20 };

static const struct vv_codec *trail;

static struct vv_recipe recipe(unsigned coder)
{
	return (struct vv_recipe){ .width = 8, .record = 1, .predictor = VV_PREDICT_TRAIL, .coder = (uint8_t)coder, .level = 3 };
}

/* Memory as a process has it: structures of pointers into itself, counters and numbers, at `base`. */
static void image(uint64_t *state, uint64_t *p, size_t words, uint64_t base)
{
	for (size_t i = 0; i < words; i++)
		switch (i % 7) {
		case 0:
			p[i] = base + 8 * (i + 7);
			break;
		case 1:
			p[i] = base + 8 * gen_below(state, words);
			break;
		case 2:
			p[i] = 0x1000000 + i / 7;
			break;
		case 3:
			p[i] = i % 5 ? 0 : 1;
			break;
		default:
			p[i] = i % 3 ? 0x3ff0000000000000 + i * 0x123456789 : 0x3ff0000000000000;
		}
}

static size_t encode(const void *from, size_t n, const struct vv_recipe *how, uint8_t **to)
{
	size_t out;

	*to = snug_encode(trail, from, n, how, 3, &out);
	return out;
}

static int decode(const uint8_t *coded, size_t n, const void *want, size_t raw_len)
{
	return snug_decode(trail, coded, n, want, raw_len);
}

/* The bytes of the streams that are decompressed. */
static size_t streams_of(const uint8_t *coded, size_t n)
{
	struct vv_wire w = vv_wire_over(coded, n);
	size_t sum = 0;

	vv_wire_u8(&w);
	for (int k = 0; k < 5; k++) {
		size_t len, stored;

		if (k == 4)
			vv_wire_u8(&w); /* the width of new words */
		len = (size_t)vv_wire_var(&w);
		stored = (size_t)vv_wire_var(&w);
		vv_wire_bytes(&w, stored);
		sum += stored < len ? len : 0;
	}
	CHECK(!w.bad);
	return sum;
}

static size_t check_round_trip(const void *from, size_t n, unsigned coder)
{
	struct vv_recipe how = recipe(coder), told;
	uint8_t *coded;
	size_t got = encode(from, n, &how, &coded);

	if (got) {
		CHECK_EQ(decode(coded, got, from, n), 0);
		CHECK_EQ(decode(coded, got, NULL, n + 1), VV_EDAMAGED);
		CHECK_EQ(decode(coded, got, NULL, n - 1), VV_EDAMAGED);
		CHECK_EQ(decode(coded, got - 1, NULL, n), VV_EDAMAGED);
		CHECK(streams_of(coded, got) <= trail->decode_takes(got, n));
		told = trail->recipe(coded, got);
		CHECK(told.predictor == VV_PREDICT_TRAIL && told.coder == coder);
	}
	free(coded);
	return got;
}

static void test_round_trips(void)
{
	static uint64_t words[LARGEST / 8];
	uint64_t state = 1;

	for (size_t n = 0; n < LARGEST; n = n < 100 ? n + 1 : n * 2 + gen_below(&state, 9))
		for (int what = 0; what < 5; what++) {
			uint8_t *p = (uint8_t *)words;
			size_t got;

			if (what == 0)
				gen_bytes(&state, p, n);
			else if (what == 1)
				memset(p, 0, n);
			else if (what == 2)
				gen_text(&state, p, n);
			else
				image(&state, words, LARGEST / 8, UINT64_C(0xffff80000000) * (uint64_t)what);
			if (what == 4 && n > 4000) /* the same once more, a little moved */
				memmove(p + n / 2 + 8 * gen_below(&state, 9) + gen_below(&state, 2), p, n / 3);
			got = check_round_trip(p, n, VV_CODEC_ZSTD);
			CHECK(what == 0 ? got == 0 || n < 100 : n < 200 || got > 0);
			check_round_trip(p, n, VV_CODEC_NONE);
			if (vv_codec_numbered(VV_CODEC_LZ4))
				check_round_trip(p, n, VV_CODEC_LZ4);
		}
}

/* New words of few values in each byte: they are compressed to much less than half. */
static void test_narrow(void)
{
	static uint64_t words[20000];
	uint64_t state = 6;

	for (size_t i = 0; i < 20000; i++)
		words[i] = gen_next(&state) & UINT64_C(0x0101010101010101) << 6;
	CHECK(check_round_trip(words, sizeof(words), VV_CODEC_ZSTD) > 0);
}

/* Distances shorter than what is copied: one word, two words, over and over. */
static void test_short_periods(void)
{
	static uint64_t words[5000];
	uint64_t state = 2;

	for (size_t period = 1; period < 40; period++) {
		for (size_t i = 0; i < 5000; i++)
			words[i] = i < period ? gen_next(&state) : words[i - period] + (i % 97 == 0);
		CHECK(check_round_trip(words, sizeof(words), VV_CODEC_ZSTD) > 0);
		for (size_t i = period; i < 5000; i++)
			words[i] = words[i - period];
		CHECK(check_round_trip(words, sizeof(words), VV_CODEC_ZSTD) < 100 + 9 * period);
	}
}

/* Noise, long enough for patience to run out or just not, and between it what was there before: that is found again, wherever it lies in blocks of whatever
 * length, and costs hardly anything. */
static void test_between_noise(void)
{
	static uint64_t words[(1 << 17) + 1];
	static const size_t sizes[] = { 1023, 1024, 1025, 4097, 65535, 65536, 65537, (1 << 17) - 1, 1 << 17, (1 << 17) + 1 };
	uint64_t state = 4;

	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		size_t n = 0, fresh = 0, pieces = 0;

		while (n < sizes[k]) {
			size_t noise = 1 + gen_below(&state, 150), again = 20 + gen_below(&state, 300), back;

			for (; noise && n < sizes[k]; noise--, fresh++)
				words[n++] = gen_next(&state);
			back = 4 * (1 + gen_below(&state, (n + 3) / 4));
			for (; n >= back && again && n < sizes[k]; again--, n++)
				words[n] = words[n - back];
			pieces++;
		}
		CHECK(check_round_trip(words, 8 * n, VV_CODEC_ZSTD) < 8 * fresh + 8 * 12 * pieces + n / 8);
		check_round_trip(words, 8 * n, VV_CODEC_NONE);
	}
}

/* Two processes that differ in where their memory lies, and a few numbers in their last digits. */
static void test_moved_images(void)
{
	enum { WORDS = 40000 };
	static uint64_t words[2 * WORDS];
	struct vv_recipe how = recipe(VV_CODEC_ZSTD);
	const struct vv_codec *zstd = vv_codec_numbered(VV_CODEC_ZSTD);
	uint64_t state = 3, other = 3;
	uint8_t *coded, *to = malloc(zstd->bound(sizeof(words)));
	size_t one, both, plain = 0;

	CHECK(to);
	image(&state, words, WORDS, 0xaaaa12340000);
	image(&other, words + WORDS, WORDS, 0xaaab56780000);
	for (size_t i = WORDS; i < 2 * WORDS; i += 50)
		words[i] += gen_below(&state, 1000);
	one = encode(words, sizeof(words) / 2, &how, &coded);
	free(coded);
	both = encode(words, sizeof(words), &how, &coded);
	free(coded);
	CHECK_EQ(zstd->encode(words, sizeof(words), NULL, to, zstd->bound(sizeof(words)), 9, &plain), 0);
	CHECK(one > 0 && both > 0 && both - one < one / 3);
	CHECK(both < plain * 3 / 4);
	free(to);
}

/* It is for its own recipe, and for no other. */
static void test_other_recipes(void)
{
	static uint64_t words[1000];
	struct vv_recipe how = vv_recipe_plain(8);
	uint8_t to[9000];
	size_t got = 1;

	CHECK(trail->bound(sizeof(words)) <= sizeof(to));
	CHECK_EQ(trail->encode(words, sizeof(words), NULL, to, sizeof(to), 3, &got), 0);
	CHECK_EQ(got, 0);
	got = 1;
	CHECK_EQ(trail->encode(words, sizeof(words), &how, to, sizeof(to), 3, &got), 0);
	CHECK_EQ(got, 0);
	how = recipe(VV_CODEC_ZSTD);
	for (size_t cap = 0; cap < 200; cap++) {
		uint8_t *small = malloc(cap + 1);

		CHECK(small);
		small[cap] = 0x5a;
		CHECK_EQ(trail->encode(words, sizeof(words), &how, small, cap, 3, &got), 0);
		CHECK(got <= cap && small[cap] == 0x5a);
		free(small);
	}
}

/* Whatever is changed: an error, or other bytes, but never beyond them. */
static void test_damage(void)
{
	static uint64_t words[3000];
	uint64_t state = 5;

	for (int round = 0; round < 3; round++) {
		struct vv_recipe how = recipe(round ? VV_CODEC_NONE : VV_CODEC_ZSTD);
		uint8_t *coded;
		size_t n = round == 2 ? 800 : sizeof(words), got;

		image(&state, words, 3000, 0x700000000000);
		for (size_t i = 50; round && i < 3000; i++)
			words[i] = words[i - 50] + (i % 50 == 3 ? 8 : i % 50 == 7 ? gen_below(&state, 1000) : 0);
		got = encode(words, n, &how, &coded);
		CHECK(got > 0);
		for (size_t k = 0; k < 4000; k++) {
			size_t at = k < got && k < 200 ? k : gen_below(&state, got);
			uint8_t old = coded[at];

			coded[at] = (uint8_t)(k % 3 ? gen_next(&state) : coded[at] ^ (1u << gen_below(&state, 8)));
			decode(coded, got, NULL, n);
			coded[at] = old;
		}
		for (size_t len = 0; len < got; len += len < 100 ? 1 : 37)
			CHECK_EQ(decode(coded, len, NULL, n), VV_EDAMAGED);
		free(coded);
	}
}

struct made { /* a block by hand, nothing coded */
	const char *codes, *starts, *distances, *close;
	size_t n_codes, n_starts, n_distances, n_close, n_new;
	uint8_t coder, width;
};

static size_t make(const struct made *b, uint8_t *to)
{
	static const char new[] = "first wosecond wthird wo";
	const char *stream[] = { b->codes, b->starts, b->distances, b->close, new };
	const size_t len[] = { b->n_codes, b->n_starts, b->n_distances, b->n_close, b->n_new };
	size_t at = 0;

	to[at++] = b->coder;
	for (int k = 0; k < 5; k++) {
		if (k == 4)
			to[at++] = b->width;
		to[at++] = (uint8_t)len[k];
		to[at++] = (uint8_t)len[k];
		memcpy(to + at, stream[k], len[k]);
		at += len[k];
	}
	return at;
}

/* What each word needs, and is not there. */
static void test_lies(void)
{
	static const struct made good = { "\12\12\0\11\1\10", "\2", "\2", "\2\0\0", 6, 1, 1, 3, 16, 0, 1 };
	struct made bad[15];
	uint8_t block[128], back[48];
	size_t n = make(&good, block);

	CHECK_EQ(trail->decode(block, n, back, sizeof(back)), 0);
	CHECK(memcmp(back, "first wosecond wfirst wotecond wgirst wogirst wo", sizeof(back)) == 0);
	for (size_t i = 0; i < 15; i++)
		bad[i] = good;
	bad[0].codes = "\0\12\0\11\1\10";    /* before there is a trail */
	bad[0].n_new = bad[1].n_new = 8;
	bad[1].codes = "\12\1\0\11\1\10";
	bad[2].codes = "\11\12\0\11\1\10";
	bad[3].codes = "\10\12\0\11\1\10";   /* nothing before it */
	bad[4].codes = "\12\12\0\11\1\13";   /* unknown */
	bad[5].codes = "\12\12\12\11\1\10";  /* words that are not there */
	bad[6].codes = "\12\12\11\11\1\10";
	bad[7].codes = "\12\12\0\0\1\10";    /* or left over */
	bad[8].n_new = 24;
	bad[9].n_new = 12;
	bad[10].starts = "\7";
	bad[11].distances = "\3";
	bad[12].n_distances = 0;
	bad[13].coder = 3;
	bad[14].width = 2;
	for (size_t i = 0; i < 15; i++) {
		n = make(&bad[i], block);
		CHECK_EQ(trail->decode(block, n, back, sizeof(back)), VV_EDAMAGED);
	}
	for (bad[0] = good; bad[0].n_codes-- > 0;) {
		n = make(&bad[0], block);
		CHECK_EQ(trail->decode(block, n, back, sizeof(back)), VV_EDAMAGED);
	}
}

/* Words that repeat, so many at each short distance: what is copied is among what it is copied from, and ends anywhere. */
static void test_every_run(void)
{
	enum { MOST = 100 };
	static const char new[] = "first wosecond wthird wo";

	for (unsigned distance = 1; distance <= 3; distance++)
		for (size_t n = 0; n <= MOST; n++)
			for (unsigned end = 0; end < 2; end++) { /* the last word may be another one */
				char codes[MOST + 4], starts[] = { (char)distance, 0 };
				struct made b = { codes, starts, starts, "", distance + n + end, 1, 1, 0, 8 * (size_t)distance, 0, 1 };
				uint8_t block[256], want[8 * (MOST + 4)];

				memset(codes, 10, distance);
				memset(codes + distance, 0, n);
				codes[distance + n] = 8;
				for (size_t i = 0; i < distance + n; i++)
					memcpy(want + 8 * i, new + 8 * (i % distance), 8);
				memcpy(want + 8 * (distance + n), want + 8 * (distance + n - 1), 8);
				CHECK_EQ(decode(block, make(&b, block), want, 8 * b.n_codes), 0);
			}
}

/* Every allocation that fails is an error, and nothing is lost by it. */
static void test_want_of_memory(void)
{
	static uint64_t words[3000];
	struct vv_recipe how = recipe(VV_CODEC_ZSTD);
	uint64_t state = 6;
	uint8_t *coded, *to;
	size_t got, cap;
	long asked;

	image(&state, words, 3000, 0x700000000000);
	got = encode(words, sizeof(words), &how, &coded);
	cap = trail->bound(sizeof(words));
	to = malloc(cap);
	CHECK(to);
	for (long k = 1; k < 1000; k++) {
		size_t out = 1;
		int rc;

		vv_mem_fail_at(k);
		rc = trail->encode(words, sizeof(words), &how, to, cap, 3, &out);
		asked = vv_mem_asked();
		vv_mem_fail_at(0);
		CHECK(rc == 0 || (rc == VV_ENOMEM && out == 0));
		CHECK(rc || out == got);
		if (asked < k)
			break;
		CHECK(k < 900);
	}
	for (long k = 1; k < 100; k++) {
		vv_mem_fail_at(k);
		CHECK(decode(coded, got, words, sizeof(words)) == 0 || k < 90);
		asked = vv_mem_asked();
		vv_mem_fail_at(0);
		if (asked < k)
			break;
	}
	free(to);
	free(coded);
}

int main(void)
{
	trail = vv_codec_numbered(VV_CODEC_TRAIL);
	CHECK(trail);
	test_round_trips();
	test_narrow();
	test_short_periods();
	test_between_noise();
	test_moved_images();
	test_other_recipes();
	test_damage();
	test_lies();
	test_every_run();
	test_want_of_memory();
	return 0;
}
