/* NumPy's array files, of versions 1.0 to 3.0: alone, and as members of an archive. */
#ifndef VV_READER_NPY_H
#define VV_READER_NPY_H

#include "reader/reader.h"

/* Adds the array file at these bytes of a file as a variable and its piece, if it can be parsed. */
int vv_npy_outline(const struct vv_reader_file *f, uint64_t at, uint64_t len, const char *name, struct vv_outline *out);

#endif
