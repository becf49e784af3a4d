/* Numbers of one width: their first bytes, then their second ones, and so on, each plane coded by itself. The high bytes of numbers are much
 * alike, the low ones are not, and a coder that meets them by turns finds little of it. */
#include "base/err.h"
#include "base/mem.h"
#include "base/wire.h"
#include "codec/codec.h"
#include <string.h>

enum {
	WIDEST = 16,
	HEADER = 1 + WIDEST * 5,  /* at most */
	SAMPLED = 32 << 10,       /* a plane of at least this length is tried first */
	SAMPLE = 4 << 10,
};

extern const struct vv_codec vv_codec_zstd;

/* The width is a constant in each, so that a compiler makes vector code of it. */
#define WIDTH(W)                                                                                    \
	static void split##W(const uint8_t *restrict x, size_t n, uint8_t *restrict plane)          \
	{                                                                                           \
		for (size_t i = 0; i < n; i++)                                                      \
			for (size_t k = 0; k < W; k++)                                              \
				plane[k * n + i] = x[i * W + k];                                    \
	}                                                                                           \
	static void join##W(const uint8_t *restrict const *restrict plane, size_t n, uint8_t *restrict x) \
	{                                                                                           \
		for (size_t i = 0; i < n; i++)                                                      \
			for (size_t k = 0; k < W; k++)                                              \
				x[i * W + k] = plane[k][i];                                         \
	}

WIDTH(2)
WIDTH(4)
WIDTH(8)
WIDTH(16)

static const struct width {
	void (*split)(const uint8_t *restrict x, size_t n, uint8_t *restrict plane);
	void (*join)(const uint8_t *restrict const *restrict plane, size_t n, uint8_t *restrict x);
} widths[WIDEST + 1] = {
	[2] = { split2, join2 },
	[4] = { split4, join4 },
	[8] = { split8, join8 },
	[16] = { split16, join16 },
};

/* While a plane is coded it and those after it lie behind the place of the result. */
static size_t bound(size_t n)
{
	return n + n / 2 + HEADER;
}

static bool is_constant(const uint8_t *p, size_t n)
{
	return memcmp(p, p + 1, n - 1) == 0;
}

/* Does nothing shrink at its beginning, in its middle, at its end? */
static bool is_hopeless(const uint8_t *p, size_t n, int level)
{
	uint8_t to[SAMPLE];
	size_t got = 0;

	for (size_t k = 0; n >= SAMPLED && !got && k < 3; k++)
		if (vv_codec_zstd.encode(p + (n - SAMPLE) / 2 * k, SAMPLE, NULL, to, sizeof(to), level, &got) < 0)
			return false;
	return n >= SAMPLED && !got;
}

/* One plane of n bytes to `to`, in at most n bytes: one byte where all are alike, n as they are, or a zstd frame. */
static int encode_plane(const uint8_t *p, size_t n, uint8_t *to, int level, size_t *out)
{
	size_t got = 0;
	int rc = 0;

	*out = n > 1 && is_constant(p, n) ? 1 : n;
	if (*out == n && n > 1 && !is_hopeless(p, n, level))
		rc = vv_codec_zstd.encode(p, n, NULL, to, n - 1, level, &got);
	if (got)
		*out = got;
	else
		memmove(to, p, *out);
	return rc;
}

static int encode(const void *from, size_t n, const struct vv_recipe *how, void *to, size_t cap, int level, size_t *out)
{
	unsigned width = how && how->predictor == VV_PREDICT_NONE && how->record == 1 && !how->swapped ? how->width : 1;
	const struct width *w = width <= WIDEST && widths[width].split ? &widths[width] : NULL;
	size_t len = w ? n / width : 0, tail = w ? n % width : 0, at = HEADER;
	struct vv_buf header = { 0 };
	uint8_t *planes;
	int rc = 0;

	*out = 0;
	if (!len || cap < HEADER + len + n)
		return 0;
	planes = (uint8_t *)to + cap - (n - tail);
	w->split(from, len, planes);
	vv_wire_put_u8(&header, (uint8_t)width);
	for (unsigned k = 0; rc == 0 && k < width; k++) {
		size_t got = 0;

		rc = encode_plane(planes + k * len, len, (uint8_t *)to + at, level, &got);
		vv_wire_put_var(&header, got);
		at += got;
	}
	if (rc == 0)
		rc = vv_buf_check(&header);
	if (rc == 0 && at - HEADER + header.n + tail < n) {
		memmove((uint8_t *)to + header.n, (uint8_t *)to + HEADER, at - HEADER);
		memcpy(to, header.p, header.n);
		at += header.n - HEADER;
		memcpy((uint8_t *)to + at, (const uint8_t *)from + n - tail, tail);
		*out = at + tail;
	}
	vv_buf_fini(&header);
	return rc;
}

static int damaged(const char *what)
{
	return vv_err_set(VV_EDAMAGED, "a block of byte planes does not decode: %s", what);
}

/* One plane of len bytes, stored as n: where it is, in `scratch` if it must be made. */
static int decode_plane(const uint8_t *p, size_t n, size_t len, uint8_t *scratch, const uint8_t **out)
{
	*out = n == len ? p : scratch;
	if (n == len)
		return 0;
	if (n > 1)
		return vv_codec_zstd.decode(p, n, scratch, len);
	memset(scratch, *p, len);
	return 0;
}

static int decode_planes(struct vv_wire *w, unsigned width, const size_t *stored, size_t len, uint8_t *to)
{
	const uint8_t *plane[WIDEST];
	uint8_t *scratch;
	size_t made = 0;
	int rc = 0;

	for (unsigned k = 0; k < width; k++)
		made += stored[k] < len;
	scratch = vv_mem_grow(NULL, made ? made * len : 1, 1);
	if (!scratch)
		return VV_ENOMEM;
	made = 0;
	for (unsigned k = 0; rc == 0 && k < width; k++) {
		rc = decode_plane(vv_wire_bytes(w, stored[k]), stored[k], len, scratch + made, &plane[k]);
		made += stored[k] < len ? len : 0;
	}
	if (rc == 0)
		widths[width].join(plane, len, to);
	vv_mem_free(scratch);
	return rc;
}

static int decode(const void *from, size_t n, void *to, size_t raw_len)
{
	struct vv_wire w = vv_wire_over(from, n);
	size_t stored[WIDEST], sum = 0, len, tail;
	unsigned width = vv_wire_u8(&w);
	int rc;

	if (w.bad || width > WIDEST || !widths[width].join || raw_len < width)
		return damaged("its width is none");
	len = raw_len / width;
	tail = raw_len % width;
	for (unsigned k = 0; k < width; k++) {
		stored[k] = (size_t)vv_wire_var_max(&w, len);
		if (w.bad || !stored[k])
			return damaged("the length of a plane is none");
		sum += stored[k];
	}
	if (vv_wire_left(&w) != sum + tail)
		return damaged("the planes do not fill it");
	rc = decode_planes(&w, width, stored, len, to);
	if (rc == 0)
		memcpy((uint8_t *)to + raw_len - tail, vv_wire_bytes(&w, tail), tail);
	return rc;
}

static struct vv_recipe recipe_of(const void *coded, size_t n)
{
	return vv_recipe_plain(n ? *(const uint8_t *)coded : 1);
}

extern const struct vv_codec vv_codec_planes;
const struct vv_codec vv_codec_planes = {
	.name = "planes",
	.number = VV_CODEC_PLANES,
	.min_level = 1,
	.max_level = 19,
	.usual_level = 1,
	.bound = bound,
	.encode = encode,
	.decode = decode,
	.recipe = recipe_of,
};
