/* HDF5's n-bit filter: it stores only the significant bits of each number. */
#ifndef VV_READER_NBIT_H
#define VV_READER_NBIT_H

#include "reader/reader.h"

/* For numbers and arrays of numbers; VV_ENOTSUP for records. */
int vv_nbit_undo(const struct vv_reader_filter *f, const uint8_t *from, size_t n, uint8_t *to, size_t len);

#endif
