/* Messages that are stored once for several objects, as named datatypes or in heaps of shared
 * messages. */
#ifndef VV_READER_HDF5_HDF5_SHARED_H
#define VV_READER_HDF5_HDF5_SHARED_H

#include "reader/hdf5/hdf5_priv.h"

/* vv_hdf5_shared_get reads the body of a message that is stored elsewhere into `to`. */
int vv_hdf5_shared_open(struct vv_hdf5 *h);
int vv_hdf5_shared_get(struct vv_hdf5 *h, const struct vv_hdf5_message *m, struct vv_buf *to);

#endif
