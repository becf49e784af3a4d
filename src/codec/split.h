/* Byte planes: the first bytes of all numbers, then their second ones, and so on, each plane coded by itself. The high bytes of numbers are much
 * alike, the low ones are not, and a coder that meets them by turns finds little of it. */
#ifndef VV_CODEC_SPLIT_H
#define VV_CODEC_SPLIT_H

#include "base/wire.h"
#include "core/format/recipe.h"

/* n things of `width` bytes; byte k of thing i to plane[k * step + i]. */
void vv_split_apart(const uint8_t *x, size_t n, unsigned width, uint8_t *plane, size_t step);
/* Back: byte k of thing i is plane[k][at + i]. */
void vv_split_join(const uint8_t *const *plane, size_t at, size_t n, unsigned width, uint8_t *x);

/* Planes of m bytes each, one after another, coded as the recipe says (coder, level, window) into to[cap]: the header, to which the stored lengths
 * are added, the planes, a tail as it is. *out = 0 where that is not shorter than planes and tail, or does not fit. */
int vv_split_encode(const uint8_t *plane, unsigned n_planes, size_t m, const struct vv_recipe *how, struct vv_buf *header, const uint8_t *tail,
		    size_t tail_len, uint8_t *to, size_t cap, size_t *out);

struct vv_split { /* planes as they were stored */
	const uint8_t *plane[VV_RECIPE_PLANES];
	uint8_t *room;
};

/* Lengths and planes from w, behind which `tail` bytes must be left, and nothing else. s->room is given back by vv_split_fini. */
int vv_split_decode(struct vv_split *s, struct vv_wire *w, unsigned n_planes, size_t m, size_t tail, uint32_t coder);
void vv_split_fini(struct vv_split *s);
/* For the codecs' tables: the planes that are decoded before they are joined. */
size_t vv_split_decode_takes(size_t n, size_t raw_len);

#endif
