/* Virtual datasets: maps to the elements of other datasets. */
#ifndef VV_READER_HDF5_HDF5_VIRTUAL_H
#define VV_READER_HDF5_HDF5_VIRTUAL_H

#include "reader/hdf5/hdf5_priv.h"

/* Adds the maps of a virtual dataset. VV_HDF5_BROKEN: not all of them; the variable holds the
 * reason. */
int vv_hdf5_virtual_add(struct vv_hdf5 *h, const struct vv_hdf5_object *o, uint32_t variable);

#endif
