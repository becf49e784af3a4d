/* Blocks as differences to a base, or as matches in one of another length: round trips by each width, order and operation; another base, and damaged input, never give other bytes. */
#include "base/err.h"
#include "codec/delta.h"
#include "support/gen.h"
#include "vv_test.h"
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 100003 };

static uint8_t x[LARGEST], base[LARGEST], room[LARGEST], back[LARGEST];

static struct vv_delta how_of(unsigned op, unsigned width, bool swapped)
{
	return (struct vv_delta){ .op = (uint8_t)op,
				  .width = (uint8_t)width,
				  .swapped = swapped,
				  .recipe = { .width = (uint8_t)width, .record = 1, .coder = VV_CODEC_ZSTD, .level = 1 } };
}

/* Some numbers of the base are a little larger or smaller. */
static void make(uint64_t *state, size_t n, size_t width)
{
	gen_bytes(state, base, n);
	memcpy(x, base, n);
	for (size_t i = 0; i + width <= n; i += width * (1 + gen_below(state, 20)))
		x[i + gen_below(state, width)] += (uint8_t)(gen_below(state, 5) - 2);
	if (n)
		x[n - 1] ^= 1;
}

static size_t encode(const struct vv_delta *how, size_t n, uint8_t **to)
{
	size_t got = 12345, cap = vv_delta_bound(n);

	*to = malloc(cap + 1);
	CHECK(*to);
	memcpy(room, base, n);
	CHECK_EQ(vv_delta_encode(how, x, n, room, n, *to, cap, &got), 0);
	CHECK(got == 0 || got < n);
	return got;
}

/* Memory of exactly that length, for a sanitizer. */
static int decode(const uint8_t *from, size_t stored, const uint8_t *by, size_t n)
{
	uint8_t *exact = malloc(stored ? stored : 1);
	int rc;

	CHECK(exact);
	memcpy(exact, from, stored);
	rc = vv_delta_decode(exact, stored, by, n, back, n);
	free(exact);
	return rc;
}

static void there_and_back(uint64_t *state, const struct vv_delta *how, size_t n)
{
	uint8_t *to;
	size_t got;

	make(state, n, how->width);
	got = encode(how, n, &to);
	CHECK(n < 4096 || (got && got < n / 2)); /* few numbers differ */
	if (got) {
		CHECK_EQ(decode(to, got, base, n), 0);
		CHECK(memcmp(back, x, n) == 0);
		base[gen_below(state, n)] ^= 4;
		CHECK_EQ(decode(to, got, base, n), VV_EDAMAGED);
		CHECK(strstr(vv_err_last(), "base") != NULL);
	}
	free(to);
}

static void damaged(uint64_t *state, const struct vv_delta *how, size_t n)
{
	uint8_t *to;
	size_t got;

	make(state, n, how->width);
	got = encode(how, n, &to);
	CHECK(got);
	for (int i = 0; i < 300; i++) {
		size_t at = gen_below(state, i % 2 ? 24 : got);
		uint8_t was = to[at];
		int rc;

		to[at] ^= (uint8_t)(1 << gen_below(state, 8));
		rc = decode(to, got, base, n);
		CHECK(rc == VV_EDAMAGED || rc == VV_ENOTSUP || (rc == 0 && memcmp(back, x, n) == 0));
		to[at] = was;
		CHECK_EQ(decode(to, gen_below(state, got), base, n), VV_EDAMAGED);
	}
	CHECK_EQ(decode(to, got, base, n - 1), VV_EDAMAGED);
	to[9] = VV_CODEC_DELTA; /* a difference of a difference */
	CHECK_EQ(decode(to, got, base, n), VV_EDAMAGED);
	free(to);
}

/* The block: pieces of the base at other places, and some bytes of its own. */
static size_t move_pieces(uint64_t *state, size_t n_base, size_t most)
{
	size_t n = 0;

	gen_bytes(state, base, n_base);
	while (n + 700 < most) {
		size_t len = 200 + gen_below(state, 500), at = gen_below(state, n_base - len);

		memcpy(x + n, base + at, len);
		n += len;
		x[n++] = (uint8_t)gen_below(state, 256);
	}
	return n;
}

static void match(uint64_t *state, size_t n_base, size_t most)
{
	static const struct vv_delta how = { .op = VV_DELTA_MATCH, .width = 1, .recipe = { .width = 1, .level = 3 } };
	size_t n = move_pieces(state, n_base, most), cap = vv_delta_bound(n), got = 0, at;
	uint8_t *to = malloc(cap), was;

	CHECK(to);
	CHECK_EQ(vv_delta_encode(&how, x, n, base, n_base, to, cap, &got), 0);
	CHECK(got && got < n / 8);
	CHECK_EQ(vv_delta_decode(to, got, base, n_base, back, n), 0);
	CHECK(memcmp(back, x, n) == 0);
	for (int i = 0; i < 100; i++) {
		at = i == 0 ? 8 : i == 1 ? 9 : gen_below(state, i % 2 ? 24 : got);
		was = to[at];
		to[at] ^= (uint8_t)(1 << gen_below(state, 8));
		CHECK(vv_delta_decode(to, got, base, n_base, back, n) < 0 || memcmp(back, x, n) == 0);
		to[at] = was;
		CHECK_EQ(vv_delta_decode(to, gen_below(state, got), base, n_base, back, n), VV_EDAMAGED);
		CHECK(vv_delta_decode(to, got, base, gen_below(state, n_base), back, n) < 0 || memcmp(back, x, n) == 0);
	}
	CHECK_EQ(vv_delta_decode(to, got, base, n_base, back, n - 1), VV_EDAMAGED);
	memset(base, 0, n_base);
	CHECK_EQ(vv_delta_decode(to, got, base, n_base, back, n), VV_EDAMAGED);
	free(to);
}

/* The difference of what is alike is small, whichever is larger. */
static void check_sign(void)
{
	static const uint16_t a[2] = { 0x1234, 0x00ff }, b[2] = { 0x1236, 0x00fe };
	struct vv_delta how = how_of(VV_DELTA_DIFFERENCE, 2, false);
	uint16_t d[2];

	memcpy(d, b, sizeof(d));
	vv_delta_apart(&how, (const uint8_t *)a, (uint8_t *)d, sizeof(d));
	CHECK_EQ(d[0], 3); /* -2 */
	CHECK_EQ(d[1], 2); /* +1 */
}

int main(void)
{
	static const size_t sizes[] = { 0, 1, 7, 8, 100, 4096, 65543, LARGEST };
	uint64_t state = 11;

	check_sign();
	CHECK_EQ(vv_codec_decode(VV_CODEC_DELTA, x, 10, back, 10), VV_EDAMAGED);
	if (!vv_codec_numbered(VV_CODEC_TYPED)) {
		uint8_t *to;

		CHECK_EQ(encode(&(struct vv_delta){ .width = 1 }, 0, &to), 0);
		free(to);
		return 0;
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct vv_delta by_bytes = how_of(VV_DELTA_XOR, 1, false);

		for (unsigned width = 1; width <= 8; width *= 2)
			for (unsigned swapped = 0; swapped < (width > 1 ? 2 : 1); swapped++) {
				struct vv_delta how = how_of(VV_DELTA_DIFFERENCE, width, swapped);

				there_and_back(&state, &how, sizes[i]);
			}
		there_and_back(&state, &by_bytes, sizes[i]);
	}
	CHECK(vv_delta_has_match());
	match(&state, LARGEST, 60000);
	match(&state, 5000, LARGEST);
	match(&state, 1000, 1500);
	damaged(&state, &(struct vv_delta){ .op = VV_DELTA_DIFFERENCE, .width = 4, .recipe = how_of(0, 4, false).recipe }, 65543);
	damaged(&state, &(struct vv_delta){ .op = VV_DELTA_XOR, .width = 1, .recipe = how_of(0, 2, false).recipe }, 4096);
	return 0;
}
