/* HDF5's scale-offset filter: it stores numbers as distances from the minimum, in as few bits as
 * possible. */
#ifndef VV_READER_SCALEOFFSET_H
#define VV_READER_SCALEOFFSET_H

#include "reader/reader.h"

int vv_scaleoffset_undo(const struct vv_reader_filter *f, const uint8_t *from, size_t n, uint8_t *to, size_t len);

#endif
