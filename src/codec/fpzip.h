/* fpzip (Lindstrom and Isenburg, "Fast and Efficient Compression of Floating-Point Data", IEEE TVCG
 * 12(5), 2006) in one dimension and at full precision. Islam 2012 uses it in this way. Each number
 * is predicted by the one before it. The difference is taken of ordered integers. Its sign and
 * magnitude go through range compression with an adaptive model; the bits below the highest one
 * follow unchanged. The streams are those of the library fpzip 1.3 without its header. The code is
 * our own because the library reads and writes out of bounds on a damaged stream. */
#ifndef VV_CODEC_FPZIP_H
#define VV_CODEC_FPZIP_H

#include <stddef.h>
#include <stdint.h>

/* Compresses `count` numbers of 4 or 8 bytes into to[cap]; 0: they do not fit. */
size_t vv_fpzip_encode(const void *from, size_t count, unsigned width, uint8_t *to, size_t cap);
/* VV_EDAMAGED unless the n bytes are exactly `count` numbers. */
int vv_fpzip_decode(const uint8_t *from, size_t n, unsigned width, void *to, size_t count);

#endif
