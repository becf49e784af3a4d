/* The compressed tables of a layer: docs/format.md, section 3. */
#ifndef VV_CODEC_SECTION_H
#define VV_CODEC_SECTION_H

#include "base/buf.h"

/* Appends the compressed form of a section to `out`, or nothing if it would not be much smaller. */
int vv_section_encode(const void *p, size_t n, struct vv_buf *out);
/* The same, but only for tables that take negligible time. */
int vv_section_encode_small(const void *p, size_t n, struct vv_buf *out);
/* Decompresses a section; the caller owns the new memory of the bytes. */
int vv_section_decode(const void *p, size_t n, uint8_t **out, size_t *raw_len);

#endif
