/* Planes where they are smaller, for each width by itself, and not tried at every turn. */
#include "base/mem.h"
#include "engine/choice.h"
#include "support/gen.h"
#include "vv_test.h"

enum { N = 1 << 20 };

static uint8_t numbers[N], text[N];

static void fill(void)
{
	uint64_t state = 1;

	for (size_t i = 0; i < N; i += 4)
		numbers[i] = (uint8_t)gen_below(&state, 200);
	gen_text(&state, text, N);
}

static void test_none(void)
{
	struct vv_choice c;

	vv_choice_init(&c, NULL, 0);
	CHECK(!vv_choice_is_due(&c, 4, 0) && !vv_choice_codec(&c, 4) && vv_choice_bound(&c, N) == 0);
	if (!vv_codec_numbered(VV_CODEC_LZ4))
		return;
	vv_choice_init(&c, vv_codec_numbered(VV_CODEC_LZ4), 0);
	CHECK(!vv_choice_is_due(&c, 4, 0) && vv_choice_codec(&c, 4) == c.codec);
	CHECK_EQ(vv_choice_bound(&c, N), c.codec->bound(N));
}

static void test_tries(void)
{
	struct vv_choice c;

	vv_choice_init(&c, vv_codec_numbered(VV_CODEC_ZSTD), 1);
	CHECK(c.planes && vv_choice_bound(&c, N) >= c.planes->bound(N) && vv_choice_bound(&c, N) >= c.codec->bound(N));
	for (unsigned width = 0; width < 40; width++) {
		CHECK_EQ(vv_choice_is_due(&c, width, 0), width > 1 && width <= VV_CHOICE_WIDEST);
		CHECK(vv_choice_codec(&c, width) == c.codec);
	}
	vv_choice_try(&c, 4, 0, numbers, N);
	CHECK(vv_choice_codec(&c, 4) == c.planes && vv_choice_codec(&c, 8) == c.codec && vv_choice_codec(&c, 1) == c.codec);
	CHECK(!vv_choice_is_due(&c, 4, 0) && !vv_choice_is_due(&c, 4, N) && vv_choice_is_due(&c, 4, 64 * N));
	CHECK(vv_choice_is_due(&c, 8, 0));
	vv_choice_try(&c, 4, 64 * N, text, N);
	CHECK(vv_choice_codec(&c, 4) == c.codec && !vv_choice_is_due(&c, 4, 64 * N));
	for (size_t n = 1; n < N; n = n * 2 + 1) { /* any length */
		vv_choice_try(&c, 16, 0, numbers, n);
		CHECK(n < 1000 || vv_choice_codec(&c, 16) == c.planes);
	}
}

/* Numbers anywhere in a block are seen, not only at its beginning. */
static void test_places(void)
{
	static uint8_t block[N];
	struct vv_choice c;

	vv_choice_init(&c, vv_codec_numbered(VV_CODEC_ZSTD), 1);
	memcpy(block, numbers, N);
	memcpy(block, text, 4096);
	vv_choice_try(&c, 4, 0, block, N);
	CHECK(vv_choice_codec(&c, 4) == c.planes);
	memcpy(block, text, N);
	memcpy(block, numbers, 4096);
	vv_choice_try(&c, 4, 0, block, N);
	CHECK(vv_choice_codec(&c, 4) == c.codec);
}

static void test_no_memory(void)
{
	struct vv_choice c;

	vv_choice_init(&c, vv_codec_numbered(VV_CODEC_ZSTD), 1);
	for (long k = 1; k < 8; k++) {
		vv_mem_fail_at(k);
		vv_choice_try(&c, 4, 0, numbers, N);
		CHECK(k > 1 || vv_choice_codec(&c, 4) == c.codec);
	}
	vv_mem_fail_at(0);
}

int main(void)
{
	fill();
	test_none();
	if (!vv_codec_numbered(VV_CODEC_ZSTD))
		return 0;
	test_tries();
	test_places();
	test_no_memory();
	return 0;
}
