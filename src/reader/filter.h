/* Filters that chunks went through when they were written, undone: deflate, shuffle, Fletcher's checksum, szip, n-bit, scale-offset, LZF. */
#ifndef VV_READER_FILTER_H
#define VV_READER_FILTER_H

#include "reader/reader.h"

/* The bytes of a piece as they were before the filters of its variable, except those that its mask leaves out; to[len] is a whole chunk.
 * VV_ENOTSUP: a filter that is not known here. VV_EDAMAGED: not bytes that they could have made. */
int vv_filter_undo(const struct vv_variable *v, uint32_t mask, const void *from, size_t n, void *to, size_t len);

#endif
