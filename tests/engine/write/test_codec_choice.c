/* The codec of a block follows from the form of its numbers, each tried by itself, and not at every turn. */
#include "base/clock.h"
#include "base/mem.h"
#include "core/format/head.h"
#include "engine/write/codec_choice.h"
#include "engine/write/block_writer.h"
#include "support/gen.h"
#include "vv_test.h"

enum { N = 1 << 20 };

static uint8_t numbers[N], text[N];
static const struct vv_form words = { .type = VV_TYPE_U32 }, longs = { .type = VV_TYPE_I64 }, bytes = { 0 };

static void fill(void)
{
	uint64_t state = 1;

	for (size_t i = 0; i < N; i += 4)
		numbers[i] = (uint8_t)gen_below(&state, 200);
	gen_text(&state, text, N);
}

static void test_none(void)
{
	struct vv_codec_choice c;
	struct vv_recipe how;

	vv_codec_choice_init(&c, NULL, 0);
	CHECK(!vv_codec_choice_is_due(&c, &words, 0) && !vv_codec_choice_codec(&c, &words, &how) && vv_codec_choice_bound(&c, N, false) == 0);
	if (!vv_codec_numbered(VV_CODEC_LZ4))
		return;
	vv_codec_choice_init(&c, vv_codec_numbered(VV_CODEC_LZ4), 0);
	CHECK(!vv_codec_choice_is_due(&c, &words, 0) && vv_codec_choice_codec(&c, &words, &how) == c.codec);
	CHECK_EQ(vv_codec_choice_bound(&c, N, false), c.codec->bound(N));
}

/* Bytes that the choice makes of them, and of which the same come back. */
static size_t coded_len(const struct vv_codec_choice *c, const struct vv_form *form, const uint8_t *p, size_t n)
{
	struct vv_recipe how;
	const struct vv_codec *codec = vv_codec_choice_codec(c, form, &how);
	size_t cap = vv_codec_choice_bound(c, n, false), got = 0;
	uint8_t *to = malloc(cap), *back = malloc(n);

	CHECK(to && back && codec && codec->bound(n) <= cap);
	CHECK_EQ(codec->encode(p, n, &how, to, cap, c->level, &got), 0);
	if (got) {
		CHECK_EQ(codec->decode(to, got, back, n), 0);
		CHECK(memcmp(p, back, n) == 0);
	}
	free(to);
	free(back);
	return got ? got : n;
}

static void test_tries(void)
{
	struct vv_codec_choice c;
	struct vv_recipe how;
	size_t plain, chosen;

	vv_codec_choice_init(&c, vv_codec_numbered(VV_CODEC_ZSTD), 1);
	CHECK(!vv_codec_choice_is_due(&c, &bytes, 0) && vv_codec_choice_is_due(&c, &words, 0) && vv_codec_choice_is_due(&c, &longs, 0));
	CHECK(vv_codec_choice_codec(&c, &words, &how) == c.codec);
	plain = coded_len(&c, &words, numbers, N);
	vv_codec_choice_try(&c, &words, 0, numbers, N);
	chosen = coded_len(&c, &words, numbers, N);
	CHECK(chosen < plain - plain / 20);
	CHECK(vv_codec_choice_codec(&c, &longs, &how) == c.codec && vv_codec_choice_codec(&c, &bytes, &how) == c.codec);
	CHECK(!vv_codec_choice_is_due(&c, &words, 0) && !vv_codec_choice_is_due(&c, &words, N) && vv_codec_choice_is_due(&c, &words, 64 * N));
	CHECK(vv_codec_choice_is_due(&c, &longs, 0));
	plain = coded_len(&c, &bytes, text, N);
	vv_codec_choice_try(&c, &words, 64 * N, text, N);
	CHECK(coded_len(&c, &words, text, N) <= plain + plain / 50);
	CHECK(!vv_codec_choice_is_due(&c, &words, 64 * N));
	for (size_t n = 1; n < N; n = n * 2 + 1) { /* any length */
		vv_codec_choice_try(&c, &longs, 0, numbers, n);
		coded_len(&c, &longs, numbers, n);
	}
}

/* More forms than are remembered. */
static void test_many(void)
{
	struct vv_codec_choice c;

	vv_codec_choice_init(&c, vv_codec_numbered(VV_CODEC_ZSTD), 1);
	for (uint64_t i = 0; i < 2 * VV_CODEC_CHOICE_FORMS; i++) {
		struct vv_form form = { .type = VV_TYPE_F64, .row = i + 2 };

		vv_codec_choice_try(&c, &form, i * 100, numbers, 8192);
		CHECK(!vv_codec_choice_is_due(&c, &form, i * 100));
	}
	CHECK(vv_codec_choice_is_due(&c, &(struct vv_form){ .type = VV_TYPE_F64, .row = 2 }, 0));
	CHECK(!vv_codec_choice_is_due(&c, &(struct vv_form){ .type = VV_TYPE_F64, .row = 2 * VV_CODEC_CHOICE_FORMS }, 200 * VV_CODEC_CHOICE_FORMS));
}

static void test_no_memory(void)
{
	struct vv_codec_choice c;

	vv_codec_choice_init(&c, vv_codec_numbered(VV_CODEC_ZSTD), 1);
	for (long k = 1; k < 30; k++) {
		vv_mem_fail_at(k);
		vv_codec_choice_try(&c, &words, 0, numbers, N);
		vv_mem_fail_at(0);
		coded_len(&c, &words, numbers, N);
	}
}

static int encode_slowly(const void *from, size_t n, const struct vv_recipe *how, void *to, size_t cap, int level, size_t *out)
{
	(void)from, (void)how, (void)to, (void)cap, (void)level;
	vv_clock_sleep(0.1);
	*out = n / 4;
	return 0;
}

static size_t bound_of(size_t n)
{
	return n;
}

/* What a sample costs is the processor's time: that of waiting for a processor is not in it. */
static void test_sample(void)
{
	const struct vv_codec waits = { .encode = encode_slowly, .bound = bound_of };
	const struct vv_recipe how = vv_recipe_plain(1);
	struct vv_costs c = { 0 };

	CHECK(vv_codec_choice_sample(&c, &waits, &how, 1, text, 4096, 1) == 0.75);
	CHECK_EQ(c.coded_bytes, 4096);
	CHECK(c.coded_ns > 0 && c.coded_ns < 50000000);
	for (int i = 0; i < 5; i++) { /* what is old counts less and less */
		c.coded_bytes = 64 << 20;
		c.coded_ns = 64u << 20;
		vv_codec_choice_sample(&c, &waits, &how, 1, text, 4096, 1);
		CHECK(c.coded_bytes < 33 << 20);
	}
	vv_mem_fail_at(1);
	CHECK(vv_codec_choice_sample(&c, &waits, &how, 1, text, 4096, 1) == 0);
	vv_mem_fail_at(0);
}

/* Coding that saves s of a byte pays if the store's time for s bytes is more than the coder's for one. The price does not follow every breath. */
static void test_price(void)
{
	struct vv_costs c = { 0 };

	CHECK(!vv_codec_choice_pays(&c, 0.9));
	vv_codec_choice_set_price(&c, 0, 0, 100, 100); /* no store was measured */
	vv_codec_choice_set_price(&c, 100, 100, 0, 0);
	CHECK(c.price == 0 && !vv_codec_choice_pays(&c, 0.9));
	vv_codec_choice_set_price(&c, 200e6, 1e9, 800e6, 1e9); /* 200 MB/s, 800 MB/s */
	CHECK(c.price > 0.249 && c.price < 0.251 && vv_codec_choice_pays(&c, 0.26) && !vv_codec_choice_pays(&c, 0.24));
	vv_codec_choice_set_price(&c, 230e6, 1e9, 800e6, 1e9);
	vv_codec_choice_set_price(&c, 170e6, 1e9, 800e6, 1e9);
	CHECK(c.price > 0.249 && c.price < 0.251);
	vv_codec_choice_set_price(&c, 400e6, 1e9, 800e6, 1e9);
	CHECK(c.price > 0.49 && !vv_codec_choice_pays(&c, 0.45));
	vv_codec_choice_set_price(&c, 1e6, 1e9, 800e6, 1e9);
	CHECK(!vv_codec_choice_pays(&c, 0.04) && vv_codec_choice_pays(&c, 0.06)); /* never for next to nothing */
	vv_codec_choice_set_price(&c, 4e9, 1e9, 800e6, 1e9);
	CHECK(!vv_codec_choice_pays(&c, 1));
}

/* The words of the option. */
static void test_parse(void)
{
	struct vv_block_writer_options o = { 0 };

	CHECK_EQ(vv_codec_choice_parse("none", &o), 0);
	CHECK(!o.codec && !o.automatic);
	CHECK_EQ(vv_codec_choice_parse("auto", &o), 0);
	CHECK(o.automatic);
	CHECK(vv_codec_choice_parse("zstd:99", &o) < 0 && vv_codec_choice_parse("brotli", &o) < 0);
}

int main(void)
{
	fill();
	test_none();
	test_parse();
	test_sample();
	test_price();
	if (!vv_codec_numbered(VV_CODEC_ZSTD))
		return 0;
	test_tries();
	test_many();
	test_no_memory();
	return 0;
}
