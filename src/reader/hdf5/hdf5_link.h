/* Links without an object of their own: further names of a known object, soft links, links into
 * other files. */
#ifndef VV_READER_HDF5_HDF5_LINK_H
#define VV_READER_HDF5_HDF5_LINK_H

#include "reader/hdf5/hdf5_priv.h"

/* Records a link. vv_hdf5_link_add_all adds all of them to the outline at the end. */
int vv_hdf5_link_note(struct vv_hdf5 *h, const struct vv_hdf5_link *k, const char *name, const char *target);
int vv_hdf5_link_add_all(struct vv_hdf5 *h);

#endif
