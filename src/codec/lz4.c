#include "base/err.h"
#include "codec/codec.h"
#include <limits.h>
#include <lz4.h>

static size_t bound(size_t n)
{
	return n <= LZ4_MAX_INPUT_SIZE ? (size_t)LZ4_compressBound((int)n) : 0;
}

static int encode(const void *from, size_t n, const struct vv_recipe *how, void *to, size_t cap, int level, size_t *out)
{
	int got;

	(void)level;
	(void)how;
	if (n > LZ4_MAX_INPUT_SIZE || cap > INT_MAX)
		return vv_err_set(VV_EINVAL, "lz4: a block of %zu bytes is too large", n);
	got = LZ4_compress_default(from, to, (int)n, (int)cap);
	*out = got > 0 && (size_t)got < n ? (size_t)got : 0;
	return 0;
}

static int decode(const void *from, size_t n, void *to, size_t raw_len)
{
	if (n > INT_MAX || raw_len > INT_MAX || LZ4_decompress_safe(from, to, (int)n, (int)raw_len) != (int)raw_len)
		return vv_err_set(VV_EDAMAGED, "an lz4 block does not decode");
	return 0;
}

extern const struct vv_codec vv_codec_lz4;
const struct vv_codec vv_codec_lz4 = {
	.name = "lz4", .number = VV_CODEC_LZ4, .bound = bound, .encode = encode, .decode = decode,
};
