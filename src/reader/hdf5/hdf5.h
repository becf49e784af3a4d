/* HDF5, and netCDF-4, which is HDF5: the superblock, and a walk over all objects that the root leads to. */
#ifndef VV_READER_HDF5_HDF5_H
#define VV_READER_HDF5_HDF5_H

#include "reader/hdf5/hdf5_priv.h"

/* An object that was found; if it was before, this is another name of it */
int vv_hdf5_found(struct vv_hdf5 *h, uint32_t parent, uint64_t at, const char *name, size_t len);
/* The last *len bytes of `to` are the path of an object. */
int vv_hdf5_path(struct vv_hdf5 *h, uint32_t node, char to[VV_HDF5_PATH], size_t *len);

#endif
