/* What other codecs need of zstd, which has no other home than zstd.c. */
#ifndef VV_CODEC_ZSTD_H
#define VV_CODEC_ZSTD_H

#include <stddef.h>

/* One frame of n bytes in to[cap]; window: log2 of how far back it looks, by long-distance matching too, 0 as the level has it. *out = 0 where
 * it is not shorter than n, or longer than cap. */
int vv_zstd_encode(const void *from, size_t n, void *to, size_t cap, int level, unsigned window, size_t *out);

#endif
