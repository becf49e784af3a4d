/* The codec of a block follows from the form of its numbers, each tried by itself, and not at every turn. */
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

	vv_codec_choice_init(&c, NULL, 0, NULL);
	CHECK(!vv_codec_choice_is_due(&c, &words, 0) && !vv_codec_choice_codec(&c, &words, &how) && vv_codec_choice_bound(&c, N, false) == 0);
	if (!vv_codec_numbered(VV_CODEC_LZ4))
		return;
	vv_codec_choice_init(&c, vv_codec_numbered(VV_CODEC_LZ4), 0, NULL);
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

	vv_codec_choice_init(&c, vv_codec_numbered(VV_CODEC_ZSTD), 1, NULL);
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

	vv_codec_choice_init(&c, vv_codec_numbered(VV_CODEC_ZSTD), 1, NULL);
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

	vv_codec_choice_init(&c, vv_codec_numbered(VV_CODEC_ZSTD), 1, NULL);
	for (long k = 1; k < 30; k++) {
		vv_mem_fail_at(k);
		vv_codec_choice_try(&c, &words, 0, numbers, N);
		vv_mem_fail_at(0);
		coded_len(&c, &words, numbers, N);
	}
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
	if (!vv_codec_numbered(VV_CODEC_ZSTD))
		return 0;
	test_tries();
	test_many();
	test_no_memory();
	return 0;
}
