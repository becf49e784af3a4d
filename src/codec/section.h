/* A layer's tables, coded: docs/format.md, section 3. */
#ifndef VV_CODEC_SECTION_H
#define VV_CODEC_SECTION_H

#include "base/buf.h"

/* Puts the coded form of a section at the end of `out`, or nothing where that would not be much smaller. */
int vv_section_encode(const void *p, size_t n, struct vv_buf *out);
/* The same, but only of tables that are coded in no time. */
int vv_section_encode_small(const void *p, size_t n, struct vv_buf *out);
/* The other way round; the bytes are new memory. */
int vv_section_decode(const void *p, size_t n, uint8_t **out, size_t *raw_len);

#endif
