/* Arrays of chunks, fixed and extensible. */
#ifndef VV_READER_HDF5_HDF5_ARRAYS_H
#define VV_READER_HDF5_HDF5_ARRAYS_H

#include "reader/hdf5/hdf5_priv.h"

int vv_hdf5_arrays_fixed(struct vv_hdf5 *h, uint64_t at, vv_hdf5_each_element *each, void *arg);
int vv_hdf5_arrays_extensible(struct vv_hdf5 *h, uint64_t at, vv_hdf5_each_element *each, void *arg);

#endif
