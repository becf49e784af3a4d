// ctest: COST 2
/* A plane whose values are unequal but recur by chance is coded without matches; one whose bytes recur keeps its matches. Each frame is an
 * ordinary one. */
#include "codec/codec.h"
#include "codec/plane_frame.h"
#include "codec/zstd.h"
#include "support/gen.h"
#include "vv_test.h"
#include <string.h>

enum { N = 256 << 10 };

static uint8_t x[N], back[N], to[N];

static size_t size_of(size_t n, unsigned width, int level)
{
	struct vv_recipe r = { .width = (uint8_t)width, .record = 1, .coder = VV_CODEC_ZSTD, .level = (int8_t)level };
	size_t got = 0;

	CHECK_EQ(vv_plane_frame_encode(x, n, &r, to, sizeof(to), &got), 0);
	CHECK(got > 0 && got < n);
	memset(back, 0, n);
	CHECK_EQ(vv_codec_decode(VV_CODEC_ZSTD, to, got, back, n), 0);
	CHECK(memcmp(x, back, n) == 0);
	return got;
}

static size_t matched(size_t n, unsigned least, int level)
{
	size_t got = 0;

	CHECK_EQ(vv_zstd_encode(x, n, to, sizeof(to), &(struct vv_zstd_how){ .level = level, .least = least }, &got), 0);
	return got;
}

static size_t literals(size_t n)
{
	size_t got = 0;

	CHECK_EQ(vv_zstd_encode(x, n, to, sizeof(to), &(struct vv_zstd_how){ .level = 1, .literals = true }, &got), 0);
	return got;
}

/* Few values, the first ones most often. */
static void make_skewed(uint64_t *state)
{
	for (size_t i = 0; i < N; i++)
		x[i] = (uint8_t)__builtin_ctzll(gen_next(state) | UINT64_C(1) << 40);
}

static void test_chance(void)
{
	uint64_t state = 7;

	make_skewed(&state);
	CHECK(literals(N) < matched(N, 7, 1));
	CHECK_EQ(size_of(N, 8, 1), literals(N));
	CHECK_EQ(size_of(N, 8, 3), literals(N));
	CHECK(size_of(5000, 8, 1) <= matched(5000, 7, 1));
}

static void test_matches_stay(void)
{
	uint64_t state = 8;

	make_skewed(&state);
	for (size_t at = 4096; at < N; at += 4096)
		memcpy(x + at, x, 4096);
	CHECK(size_of(N, 8, 1) < 8192);
}

int main(void)
{
	test_chance();
	test_matches_stay();
	return 0;
}
