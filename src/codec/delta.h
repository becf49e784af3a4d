/* Blocks that are stored as the difference to their base: bytes that an older layer has. The
 * difference is compressed by any other codec. */
#ifndef VV_CODEC_DELTA_H
#define VV_CODEC_DELTA_H

#include "codec/codec.h"

/* in the format */
enum vv_delta_op {
	VV_DELTA_XOR,
	/* of numbers, modulo 2^(8 width), in zigzag: small ones of either sign have high bytes of
	 * zero */
	VV_DELTA_DIFFERENCE,
	/* no difference: the block's bytes recur anywhere in the base, or its lines are like lines
	 * of the base. The base may have another length. */
	VV_DELTA_MATCH,
};

struct vv_delta {
	uint8_t op;
	uint8_t width; /* bytes of a number: 1, 2, 4 or 8; 1 for XOR */
	bool swapped;  /* the high byte comes first */
	struct vv_recipe recipe; /* of the difference, for the codec typed; of a match, its level and whether it is text in columns */
};

/* Can this build store and read matches? */
bool vv_delta_has_match(void);
/* Turns the base, of the same length, into the difference of x from it. */
void vv_delta_apart(const struct vv_delta *how, const uint8_t *x, uint8_t *base, size_t n);
/* Room for a block of n bytes. */
size_t vv_delta_bound(size_t n);
/* Compresses x[n] by its base, which is changed. *out = 0: it would not be smaller than n. */
int vv_delta_encode(const struct vv_delta *how, const uint8_t *x, size_t n, uint8_t *base, size_t n_base, uint8_t *to, size_t cap, size_t *out);
/* Decompresses into x[n]. Anything else than the bytes that were compressed is VV_EDAMAGED. */
int vv_delta_decode(const uint8_t *from, size_t stored, const uint8_t *base, size_t n_base, uint8_t *x, size_t n);

#endif
