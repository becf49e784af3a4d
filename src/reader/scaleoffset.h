/* HDF5's scale-offset filter: numbers as their distance from the smallest, in as few bits as hold them all. */
#ifndef VV_READER_SCALEOFFSET_H
#define VV_READER_SCALEOFFSET_H

#include "reader/reader.h"

int vv_scaleoffset_undo(const struct vv_reader_filter *f, const uint8_t *from, size_t n, uint8_t *to, size_t len);

#endif
