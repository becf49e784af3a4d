/* NumPy's array files, of versions 1.0 to 3.0: alone, and as members of an archive. */
#ifndef VV_READER_NPY_H
#define VV_READER_NPY_H

#include "reader/reader.h"

/* The array file at these bytes of a file becomes a variable and its piece, if it is one that we understand. */
int vv_npy_outline(const struct vv_reader_file *f, uint64_t at, uint64_t len, const char *name, struct vv_outline *out);

#endif
