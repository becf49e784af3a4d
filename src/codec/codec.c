/* The list of codecs: the only file that depends on which were built in. */
#include "codec/codec.h"
#include "base/err.h"
#include "vv_config.h"
#include <string.h>

extern const struct vv_codec vv_codec_lz4, vv_codec_zstd, vv_codec_planes, vv_codec_typed, vv_codec_paper, vv_codec_trail, vv_codec_text;

const struct vv_codec *const *vv_codec_all(void)
{
	static const struct vv_codec *const list[] = {
#if VV_HAVE_LZ4
		&vv_codec_lz4,
#endif
#if VV_HAVE_ZSTD
		&vv_codec_zstd,
		&vv_codec_planes,
		&vv_codec_typed,
		&vv_codec_trail,
		&vv_codec_text,
#endif
#if VV_HAVE_ZLIB
		&vv_codec_paper,
#endif
		NULL,
	};

	return list;
}

const struct vv_codec *vv_codec_named(const char *name, size_t len)
{
	for (const struct vv_codec *const *c = vv_codec_all(); *c; c++)
		if (strlen((*c)->name) == len && memcmp((*c)->name, name, len) == 0)
			return *c;
	return NULL;
}

const struct vv_codec *vv_codec_numbered(uint32_t number)
{
	for (const struct vv_codec *const *c = vv_codec_all(); *c; c++)
		if ((*c)->number == number)
			return *c;
	return NULL;
}

const char *vv_codec_name(uint32_t number)
{
	const struct vv_codec *c = vv_codec_numbered(number);

	return number == VV_CODEC_NONE ? "none" : number == VV_CODEC_DELTA ? "delta" : c ? c->name : "?";
}

int vv_codec_decode(uint32_t number, const void *from, size_t n, void *to, size_t raw_len)
{
	static const char *const known[] = { "none", "lz4", "zstd", "planes (zstd)", "typed (zstd)", "Islam 2012's coders (zlib)",
					      "trail (zstd)", "delta", "text (zstd)" };
	const struct vv_codec *c;

	if (number == VV_CODEC_DELTA)
		return vv_err_set(VV_EDAMAGED, "a block is a difference to another one, which is not known here");
	if (number == VV_CODEC_NONE && n != raw_len)
		return vv_err_set(VV_EDAMAGED, "a block without codec has %zu bytes, not %zu", n, raw_len);
	if (number == VV_CODEC_NONE) {
		memcpy(to, from, raw_len);
		return 0;
	}
	c = vv_codec_numbered(number);
	if (!c)
		return vv_err_set(VV_ENOTSUP, "a block is compressed with %s, which this varve was built without",
				  number <= VV_CODEC_TEXT ? known[number] : "an unknown codec");
	return c->decode(from, n, to, raw_len);
}

size_t vv_codec_decode_takes(uint32_t number, size_t n, size_t raw_len)
{
	const struct vv_codec *c = vv_codec_numbered(number);

	return c && c->decode_takes ? c->decode_takes(n, raw_len) : 0;
}
