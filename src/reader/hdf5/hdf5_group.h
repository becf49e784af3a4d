/* Groups of the old and of the new kind. */
#ifndef VV_READER_HDF5_HDF5_GROUP_H
#define VV_READER_HDF5_HDF5_GROUP_H

#include "reader/hdf5/hdf5_priv.h"

int vv_hdf5_group_link(struct vv_hdf5 *h, uint32_t parent, const uint8_t *p, size_t n);
int vv_hdf5_group_members(struct vv_hdf5 *h, const struct vv_hdf5_object *o);

#endif
