/* What bytes may be of which nobody says what they are: the type of their numbers, and how many make a row. */
#ifndef VV_READER_GUESS_H
#define VV_READER_GUESS_H

#include "core/format/head.h"

struct vv_guess { /* evidence of numbers that are not 0; all zero is none */
	unsigned words, f32, i32;
	unsigned doubles, f64, low_words;
};

/* Adds the evidence of n bytes, which begin with a number; how many words in them differ from the one before. */
unsigned vv_guess_add(struct vv_guess *g, const uint8_t *p, size_t n, bool swapped);
/* VV_TYPE_F64, _F32, _I32, or _BYTES: it does not look like numbers. */
unsigned vv_guess_type(const struct vv_guess *g);

/* The numbers in a row, if `count` numbers are an array of two dimensions or more and these n bytes of numbers are the first of them: a divisor of
 * count at whose distance numbers are closer than just before and after it; 0: none is. */
uint64_t vv_guess_row(const uint8_t *p, size_t n, unsigned width, bool swapped, uint64_t count);

#endif
