/* Numbers of one width, split into planes and nothing else: the codec of layers from before recipes
 * existed. */
#include "base/err.h"
#include "codec/codec.h"
#include "codec/context_pool.h"
#include "codec/split.h"
#include <string.h>

enum { WIDEST = 16, HEADER = 1 + WIDEST * 5 }; /* at most */

static size_t bound(size_t n)
{
	return n + HEADER;
}

static bool is_width(unsigned width)
{
	return width == 2 || width == 4 || width == 8 || width == 16;
}

static int encode(const void *from, size_t n, const struct vv_recipe *how, void *to, size_t cap, int level, size_t *out)
{
	bool plain = how && how->predictor == VV_PREDICT_NONE && how->record == 1 && !how->swapped && is_width(how->width);
	struct vv_recipe zstd = { .coder = VV_CODEC_ZSTD, .level = (int8_t)level };
	unsigned width = plain ? how->width : 1;
	size_t m = n / width, tail = n % width;
	struct vv_buf header = { 0 };
	uint8_t *planes;
	int rc;

	*out = 0;
	if (!plain || !m)
		return 0;
	planes = vv_context_pool_room(n);
	if (!planes)
		return VV_ENOMEM;
	vv_split_apart(from, m, width, planes, m);
	vv_wire_put_u8(&header, (uint8_t)width);
	rc = vv_split_encode(planes, width, m, &zstd, &header, (const uint8_t *)from + n - tail, tail, to, cap, out);
	vv_context_pool_room_back(planes);
	vv_buf_fini(&header);
	return rc;
}

static int decode(const void *from, size_t n, void *to, size_t raw_len)
{
	struct vv_wire w = vv_wire_over(from, n);
	unsigned width = vv_wire_u8(&w);
	size_t tail;
	struct vv_split s;
	int rc;

	if (w.bad || !is_width(width) || raw_len < width)
		return vv_err_set(VV_EDAMAGED, "a block of byte planes does not decode: its width is none");
	tail = raw_len % width;
	rc = vv_split_decode(&s, &w, width, raw_len / width, tail, VV_CODEC_ZSTD);
	if (rc == 0) {
		vv_split_join(s.plane, 0, raw_len / width, width, to);
		memcpy((uint8_t *)to + raw_len - tail, vv_wire_bytes(&w, tail), tail);
	}
	vv_split_fini(&s);
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
	.decode_takes = vv_split_decode_takes,
	.recipe = recipe_of,
};
