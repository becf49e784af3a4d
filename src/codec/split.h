/* Byte planes: the first bytes of all numbers, then their second bytes, and so on, each plane
 * compressed by itself. The high bytes of numbers are similar, the low ones are not. A compressor
 * that meets them by turns finds little of the similarity. */
#ifndef VV_CODEC_SPLIT_H
#define VV_CODEC_SPLIT_H

#include "base/wire.h"
#include "core/format/recipe.h"

/* Splits n items of `width` bytes; byte k of item i goes to plane[k * step + i]. */
void vv_split_apart(const uint8_t *x, size_t n, unsigned width, uint8_t *plane, size_t step);
/* Joins: byte k of item i is plane[k][at + i]. */
void vv_split_join(const uint8_t *const *plane, size_t at, size_t n, unsigned width, uint8_t *x);

/* Stores planes of m bytes each, one after another, into to[cap], with the compressor, level and
 * window of the recipe. The output is the header with the stored lengths added, the planes, and an
 * uncompressed tail. Sets *out = 0 if that is not shorter than planes and tail, or does not fit. */
int vv_split_encode(const uint8_t *plane, unsigned n_planes, size_t m, const struct vv_recipe *how, struct vv_buf *header, const uint8_t *tail,
		    size_t tail_len, uint8_t *to, size_t cap, size_t *out);

struct vv_split { /* stored planes */
	const uint8_t *plane[VV_RECIPE_PLANES];
	uint8_t *room;
};

/* Reads lengths and planes from w, after which exactly `tail` bytes must be left. The caller
 * releases s->room with vv_split_fini. */
int vv_split_decode(struct vv_split *s, struct vv_wire *w, unsigned n_planes, size_t m, size_t tail, uint32_t coder);
void vv_split_fini(struct vv_split *s);
/* For the codecs' tables: the memory of the planes that are decompressed before they are joined. */
size_t vv_split_decode_takes(size_t n, size_t raw_len);

#endif
