/* Guesses the layout of untyped bytes: the type of their numbers, and the length of a row. */
#ifndef VV_READER_GUESS_H
#define VV_READER_GUESS_H

#include "core/format/head.h"

struct vv_guess { /* evidence from numbers that are not 0; initially all zero */
	unsigned words, f32, i32;
	unsigned doubles, f64, low_words;
};

/* Adds the evidence of n bytes, which begin with a number. Returns the number of words that differ
 * from the previous word. */
unsigned vv_guess_add(struct vv_guess *g, const uint8_t *p, size_t n, bool swapped);
/* VV_TYPE_F64, _F32, _I32, or _BYTES if the bytes do not look like numbers. */
unsigned vv_guess_type(const struct vv_guess *g);

/* Guesses the row length of an array of `count` numbers with two dimensions or more; these n bytes
 * are its first numbers. A row is a divisor of count at whose distance numbers are closer than just
 * before and after it; 0: none. */
uint64_t vv_guess_row(const uint8_t *p, size_t n, unsigned width, bool swapped, uint64_t count);

#endif
