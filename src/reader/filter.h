/* Undoes the filters of chunks: deflate, shuffle, Fletcher's checksum, szip, n-bit, scale-offset,
 * LZF. */
#ifndef VV_READER_FILTER_H
#define VV_READER_FILTER_H

#include "reader/reader.h"

/* Undoes the filters of a piece, except those that its mask leaves out; to[len] is a whole chunk.
 * VV_ENOTSUP: an unknown filter. VV_EDAMAGED: the filters cannot have made these bytes. */
int vv_filter_undo(const struct vv_variable *v, uint32_t mask, const void *from, size_t n, void *to, size_t len);

#endif
