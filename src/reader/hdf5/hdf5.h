/* HDF5, and netCDF-4, which is HDF5: the superblock, and a walk over all objects reachable from the
 * root. */
#ifndef VV_READER_HDF5_HDF5_H
#define VV_READER_HDF5_HDF5_H

#include "reader/hdf5/hdf5_priv.h"

/* Adds an object; if it was found before, this is another name of it. */
int vv_hdf5_found(struct vv_hdf5 *h, uint32_t parent, uint64_t at, const char *name, size_t len);
/* Writes the path of an object to the last *len bytes of `to`. */
int vv_hdf5_path(struct vv_hdf5 *h, uint32_t node, char to[VV_HDF5_PATH], size_t *len);

#endif
