/* Groups: of the old kind (a tree of symbol table nodes, names in a local heap), and of the new one (links in the object header, or in a fractal heap with a tree over them). */
#ifndef VV_READER_HDF5_HDF5_GROUP_H
#define VV_READER_HDF5_HDF5_GROUP_H

#include "reader/hdf5/hdf5_priv.h"

/* hdf5_group.c */
int vv_hdf5_group_link(struct vv_hdf5 *h, uint32_t parent, const uint8_t *p, size_t n);
int vv_hdf5_group_members(struct vv_hdf5 *h, const struct vv_hdf5_object *o);

#endif
