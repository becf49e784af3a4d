/* zlib streams (RFC 1950), if varve was built with zlib. */
#ifndef VV_BASE_DEFLATE_H
#define VV_BASE_DEFLATE_H

#include <stdbool.h>
#include <stddef.h>

/* Without zlib all calls return VV_ENOTSUP. */
bool vv_deflate_built(void);

/* Compresses n bytes into one stream in to[cap], level 1 to 9; *out = 0 if it does not fit. */
int vv_deflate_pack(const void *from, size_t n, int level, void *to, size_t cap, size_t *out);
/* Decompresses a stream of exactly n bytes into exactly raw_len bytes; anything else is
 * VV_EDAMAGED. */
int vv_deflate_unpack(const void *from, size_t n, void *to, size_t raw_len);
/* The same into at most cap bytes; *out is their number. */
int vv_deflate_unpack_some(const void *from, size_t n, void *to, size_t cap, size_t *out);

#endif
