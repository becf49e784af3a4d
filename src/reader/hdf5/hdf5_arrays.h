/* Arrays of chunks: fixed ones, one block of elements; and extensible ones, a few elements and the first blocks named by an index block, the others by secondary blocks of growing size. */
#ifndef VV_READER_HDF5_HDF5_ARRAYS_H
#define VV_READER_HDF5_HDF5_ARRAYS_H

#include "reader/hdf5/hdf5_priv.h"

int vv_hdf5_arrays_fixed(struct vv_hdf5 *h, uint64_t at, vv_hdf5_each_element *each, void *arg);
int vv_hdf5_arrays_extensible(struct vv_hdf5 *h, uint64_t at, vv_hdf5_each_element *each, void *arg);

#endif
