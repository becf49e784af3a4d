/* HDF5's n-bit filter: of each number only the bits that mean something are stored. */
#ifndef VV_READER_NBIT_H
#define VV_READER_NBIT_H

#include "reader/reader.h"

/* Numbers, and arrays of them; VV_ENOTSUP of records. */
int vv_nbit_undo(const struct vv_reader_filter *f, const uint8_t *from, size_t n, uint8_t *to, size_t len);

#endif
