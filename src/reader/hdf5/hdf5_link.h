/* Links that lead to no object of their own: second names of one that was found before, soft links, links into other files. */
#ifndef VV_READER_HDF5_HDF5_LINK_H
#define VV_READER_HDF5_HDF5_LINK_H

#include "reader/hdf5/hdf5_priv.h"

/* Links that lead to no object of their own; at the end they become the outline's */
int vv_hdf5_link_note(struct vv_hdf5 *h, const struct vv_hdf5_link *k, const char *name, const char *target);
int vv_hdf5_link_add_all(struct vv_hdf5 *h);

#endif
