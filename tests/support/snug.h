/* A codec, called with memory of the size that it may use and no more: what it reads beside it a sanitizer sees, what it writes is found here. */
#ifndef VV_TEST_SNUG_H
#define VV_TEST_SNUG_H

#include "codec/codec.h"

/* New memory with what it was coded to; *out is the length, 0 if it does not get smaller. */
uint8_t *snug_encode(const struct vv_codec *c, const void *from, size_t n, const struct vv_recipe *how, int level, size_t *out);
/* The codec's own answer. Where that is 0, what was decoded is `want`, unless that is NULL. */
int snug_decode(const struct vv_codec *c, const void *coded, size_t n, const void *want, size_t raw_len);

#endif
