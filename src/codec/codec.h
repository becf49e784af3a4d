/* Codecs: the methods of storing a block of new bytes. A codec is a row of this table; the number
 * goes into the file. */
#ifndef VV_CODEC_CODEC_H
#define VV_CODEC_CODEC_H

#include "core/format/recipe.h"
#include <stddef.h>
#include <stdint.h>

/* in the format */
/* DELTA needs bytes of an older layer, so it is not in the table: codec/delta.h */
enum { VV_CODEC_NONE, VV_CODEC_LZ4, VV_CODEC_ZSTD, VV_CODEC_PLANES, VV_CODEC_TYPED, VV_CODEC_PAPER, VV_CODEC_TRAIL, VV_CODEC_DELTA, VV_CODEC_TEXT };

struct vv_codec {
	const char *name;
	uint32_t number;
	int min_level, max_level, usual_level;
	size_t (*bound)(size_t n);
	/* Compresses n bytes by a recipe (NULL: not known to be numbers) into to[cap]. Sets *out =
	 * 0 if the result would not be smaller than n, or if this codec does not support the
	 * recipe. A level in the recipe overrides `level`. */
	int (*encode)(const void *from, size_t n, const struct vv_recipe *how, void *to, size_t cap, int level, size_t *out);
	/* Decompresses into exactly raw_len bytes; anything else is VV_EDAMAGED. */
	int (*decode)(const void *from, size_t n, void *to, size_t raw_len);
	/* The same with `before`, bytes that both sides know and in which the bytes may recur;
	 * NULL: the codec has no such way. */
	int (*encode_after)(const void *before, size_t n_before, const void *from, size_t n, void *to, size_t cap, int level, size_t *out);
	int (*decode_after)(const void *before, size_t n_before, const void *from, size_t n, void *to, size_t raw_len);
	/* The approximate additional memory of `decode`; NULL: negligible. */
	size_t (*decode_takes)(size_t n, size_t raw_len);
	/* The recipe of a block that decompresses; NULL if the codec has none. */
	struct vv_recipe (*recipe)(const void *coded, size_t n);
};

/* The codecs that were built in, NULL at the end; "none" is not among them (number 0 means the
 * bytes themselves). */
const struct vv_codec *const *vv_codec_all(void);
const struct vv_codec *vv_codec_named(const char *name, size_t len);
const struct vv_codec *vv_codec_numbered(uint32_t number);
/* "none" for number 0, "?" for a codec that was not built in. */
const char *vv_codec_name(uint32_t number);
/* Decompresses by number, also number 0. An unknown number is an error that names the missing
 * codec. */
int vv_codec_decode(uint32_t number, const void *from, size_t n, void *to, size_t raw_len);
/* The `decode_takes` of a codec by number; 0 if it is not known. A block with a base takes more:
 * vv_layer_file_decode_takes. */
size_t vv_codec_decode_takes(uint32_t number, size_t n, size_t raw_len);

#endif
