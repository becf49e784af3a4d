/* fpzip (Lindstrom and Isenburg, "Fast and Efficient Compression of Floating-Point Data", IEEE TVCG 12(5), 2006) in one dimension
 * and at full precision, as Islam 2012 uses it: each number is predicted by the one before it; of the difference, as ordered integers, sign and magnitude go
 * through a range coder with an adaptive model, the bits below the highest one follow as they are. The streams are those of the library
 * fpzip 1.3 without its header. They are our own code because the library reads, and writes, wherever a damaged stream sends it. */
#ifndef VV_CODEC_FPZIP_H
#define VV_CODEC_FPZIP_H

#include <stddef.h>
#include <stdint.h>

/* `count` numbers of 4 or 8 bytes into to[cap]; 0: they do not fit. */
size_t vv_fpzip_encode(const void *from, size_t count, unsigned width, uint8_t *to, size_t cap);
/* VV_EDAMAGED unless n bytes are exactly so many numbers. */
int vv_fpzip_decode(const uint8_t *from, size_t n, unsigned width, void *to, size_t count);

#endif
