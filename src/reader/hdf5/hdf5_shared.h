/* Messages that are stored once for several objects: a named datatype is an object of its own, and a file may keep others in heaps of shared messages, one for each set of message types. */
#ifndef VV_READER_HDF5_HDF5_SHARED_H
#define VV_READER_HDF5_HDF5_SHARED_H

#include "reader/hdf5/hdf5_priv.h"

/* What a message that is stored elsewhere holds, into `to` */
int vv_hdf5_shared_open(struct vv_hdf5 *h);
int vv_hdf5_shared_get(struct vv_hdf5 *h, const struct vv_hdf5_message *m, struct vv_buf *to);

#endif
