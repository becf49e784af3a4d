/* Virtual datasets: a list of maps in a global heap, each the name of a file and of a dataset there, what is taken of it, and where it goes. */
#ifndef VV_READER_HDF5_HDF5_VIRTUAL_H
#define VV_READER_HDF5_HDF5_VIRTUAL_H

#include "reader/hdf5/hdf5_priv.h"

/* The maps of a virtual dataset; VV_HDF5_BROKEN: not all of them, and the variable says why */
int vv_hdf5_virtual_add(struct vv_hdf5 *h, const struct vv_hdf5_object *o, uint32_t variable);

#endif
