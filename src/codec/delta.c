#include "codec/delta.h"
#include "base/err.h"
#include "base/wire.h"
#include "core/format/digest.h"
#include <string.h>

enum { HEADER = 10, WIDTH = 1, SWAPPED = 3, MATCH = 4, USED = 4 };

/* One loop for each width and order of bytes, for the compiler's vector units. */
#define LOOPS(bits, name, swap)                                                                              \
	static void apart##name(const uint8_t *restrict x, uint8_t *restrict base, size_t m)                  \
	{                                                                                                     \
		for (size_t i = 0; i < m; i++) {                                                              \
			uint##bits##_t a, b;                                                                  \
                                                                                                              \
			memcpy(&a, x + i * sizeof(a), sizeof(a));                                             \
			memcpy(&b, base + i * sizeof(b), sizeof(b));                                          \
			a = (uint##bits##_t)(swap(a) - swap(b));                                              \
			a = (uint##bits##_t)((uint##bits##_t)(a << 1) ^ (uint##bits##_t)(0 - (a >> (bits - 1)))); \
			memcpy(base + i * sizeof(a), &a, sizeof(a));                                          \
		}                                                                                             \
	}                                                                                                     \
	static void together##name(uint8_t *restrict x, const uint8_t *restrict base, size_t m)               \
	{                                                                                                     \
		for (size_t i = 0; i < m; i++) {                                                              \
			uint##bits##_t a, b;                                                                  \
                                                                                                              \
			memcpy(&a, x + i * sizeof(a), sizeof(a));                                             \
			memcpy(&b, base + i * sizeof(b), sizeof(b));                                          \
			a = (uint##bits##_t)((uint##bits##_t)(a >> 1) ^ (uint##bits##_t)(0 - (a & 1)));      \
			a = (uint##bits##_t)(a + swap(b));                                                    \
			a = (uint##bits##_t)swap(a);                                                          \
			memcpy(x + i * sizeof(a), &a, sizeof(a));                                             \
		}                                                                                             \
	}

#define SAME(a) (a)
LOOPS(8, 8, SAME)
LOOPS(16, 16, SAME)
LOOPS(32, 32, SAME)
LOOPS(64, 64, SAME)
LOOPS(16, 16_swapped, __builtin_bswap16)
LOOPS(32, 32_swapped, __builtin_bswap32)
LOOPS(64, 64_swapped, __builtin_bswap64)

/* By log2 of the width, and whether the high byte comes first. */
static void (*const apart_of[4][2])(const uint8_t *, uint8_t *, size_t) = {
	{ apart8, apart8 }, { apart16, apart16_swapped }, { apart32, apart32_swapped }, { apart64, apart64_swapped }
};
static void (*const together_of[4][2])(uint8_t *, const uint8_t *, size_t) = {
	{ together8, together8 }, { together16, together16_swapped }, { together32, together32_swapped }, { together64, together64_swapped }
};

static void xor_bytes(uint8_t *restrict x, const uint8_t *restrict y, size_t n)
{
	for (size_t i = 0; i < n; i++)
		x[i] ^= y[i];
}

/* The numbers that are subtracted; the bytes behind them are combined by XOR. */
static size_t count_numbers(const struct vv_delta *how, size_t n)
{
	return how->op == VV_DELTA_DIFFERENCE ? n / how->width : 0;
}

void vv_delta_apart(const struct vv_delta *how, const uint8_t *x, uint8_t *base, size_t n)
{
	size_t m = count_numbers(how, n), done = m * how->width;

	if (m)
		apart_of[__builtin_ctz(how->width)][how->swapped](x, base, m);
	xor_bytes(base + done, x + done, n - done);
}

/* Turns the difference into the bytes that it was made of. */
static void together(const struct vv_delta *how, uint8_t *x, const uint8_t *base, size_t n)
{
	size_t m = count_numbers(how, n), done = m * how->width;

	if (m)
		together_of[__builtin_ctz(how->width)][how->swapped](x, base, m);
	xor_bytes(x + done, base + done, n - done);
}

size_t vv_delta_bound(size_t n)
{
	const struct vv_codec *c = vv_codec_numbered(VV_CODEC_TYPED);

	return c ? HEADER + c->bound(n) : 0;
}

bool vv_delta_has_match(void)
{
	const struct vv_codec *c = vv_codec_numbered(VV_CODEC_ZSTD);

	return c && c->encode_after;
}

static uint32_t match_codec(const struct vv_delta *how)
{
	return how->recipe.predictor == VV_PREDICT_TEXT ? VV_CODEC_TEXT : VV_CODEC_ZSTD;
}

static int encode_match(const struct vv_delta *how, const uint8_t *x, size_t n, const uint8_t *base, size_t n_base, uint8_t *to, size_t cap, size_t *out)
{
	const struct vv_codec *c = vv_codec_numbered(match_codec(how));

	return c && c->encode_after ? c->encode_after(base, n_base, x, n, to, cap, how->recipe.level, out) : 0;
}

static int encode_difference(const struct vv_delta *how, const uint8_t *x, size_t n, uint8_t *base, uint8_t *to, size_t cap, size_t *out)
{
	const struct vv_codec *c = vv_codec_numbered(VV_CODEC_TYPED);

	vv_delta_apart(how, x, base, n);
	return c->encode(base, n, &how->recipe, to, cap, c->usual_level, out);
}

static void put_header(const struct vv_delta *how, const uint8_t *x, size_t n, struct vv_buf *header)
{
	bool match = how->op == VV_DELTA_MATCH;

	vv_wire_put_u64(header, vv_digest_check(x, n));
	vv_wire_put_u8(header, (uint8_t)(match ? 1 << MATCH : how->op | __builtin_ctz(how->width) << WIDTH | how->swapped << SWAPPED));
	vv_wire_put_u8(header, (uint8_t)(match ? match_codec(how) : VV_CODEC_TYPED));
}

int vv_delta_encode(const struct vv_delta *how, const uint8_t *x, size_t n, uint8_t *base, size_t n_base, uint8_t *to, size_t cap, size_t *out)
{
	struct vv_buf header = { 0 };
	size_t got = 0;
	int rc;

	*out = 0;
	if (!vv_delta_bound(n) || cap < vv_delta_bound(n) || (how->op != VV_DELTA_MATCH && n_base != n))
		return 0;
	rc = how->op == VV_DELTA_MATCH ? encode_match(how, x, n, base, n_base, to + HEADER, cap - HEADER, &got)
				       : encode_difference(how, x, n, base, to + HEADER, cap - HEADER, &got);
	if (rc || got == 0 || got + HEADER >= n)
		return rc;
	put_header(how, x, n, &header);
	rc = vv_buf_check(&header);
	if (rc == 0) {
		memcpy(to, header.p, HEADER);
		*out = got + HEADER;
	}
	vv_buf_fini(&header);
	return rc;
}

/* Reads the header; false: it is not valid. */
static bool get_header(struct vv_wire *w, struct vv_delta *how, uint64_t *check, unsigned *codec)
{
	unsigned bits;

	*check = vv_wire_u64(w);
	bits = vv_wire_u8(w);
	*codec = vv_wire_u8(w);
	*how = (struct vv_delta){ .op = bits & 1, .width = (uint8_t)(1u << (bits >> WIDTH & 3)), .swapped = bits >> SWAPPED & 1 };
	if (bits >> MATCH & 1) {
		how->op = VV_DELTA_MATCH;
		return !w->bad && bits == 1 << MATCH && (*codec == VV_CODEC_ZSTD || *codec == VV_CODEC_TEXT);
	}
	return !w->bad && bits >> USED == 0 && *codec < VV_CODEC_DELTA && (how->op != VV_DELTA_XOR || bits == VV_DELTA_XOR) &&
	       (how->width > 1 || !how->swapped);
}

static int decode_match(unsigned codec, const struct vv_wire *w, const uint8_t *base, size_t n_base, uint8_t *x, size_t n)
{
	const struct vv_codec *c = vv_codec_numbered(codec);

	if (!c || !c->decode_after)
		return vv_err_set(VV_ENOTSUP, "a block is compressed with zstd, which this varve was built without");
	return c->decode_after(base, n_base, w->p, vv_wire_left(w), x, n);
}

int vv_delta_decode(const uint8_t *from, size_t stored, const uint8_t *base, size_t n_base, uint8_t *x, size_t n)
{
	struct vv_wire w = vv_wire_over(from, stored);
	struct vv_delta how;
	uint64_t check;
	unsigned codec;
	int rc;

	if (!get_header(&w, &how, &check, &codec) || (how.op != VV_DELTA_MATCH && n_base != n))
		return vv_err_set(VV_EDAMAGED, "a block of differences does not decode: its header is none");
	if (how.op == VV_DELTA_MATCH)
		rc = decode_match(codec, &w, base, n_base, x, n);
	else
		rc = vv_codec_decode(codec, w.p, vv_wire_left(&w), x, n);
	if (rc)
		return rc;
	if (how.op != VV_DELTA_MATCH)
		together(&how, x, base, n);
	if (vv_digest_check(x, n) != check)
		return vv_err_set(VV_EDAMAGED, "a block is a difference to other bytes than those that its base has now");
	return 0;
}
