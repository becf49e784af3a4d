/* Object headers of both kinds: a block of messages, and continuation blocks. */
#ifndef VV_READER_HDF5_HDF5_OBJECT_H
#define VV_READER_HDF5_HDF5_OBJECT_H

#include "reader/hdf5/hdf5_priv.h"

int vv_hdf5_object_each(struct vv_hdf5 *h, uint64_t at, vv_hdf5_each_message *each, void *arg);

#endif
