/* Finds the chunks of a dataset, by each of the six kinds of index. */
#ifndef VV_READER_HDF5_HDF5_CHUNKS_H
#define VV_READER_HDF5_HDF5_CHUNKS_H

#include "reader/hdf5/hdf5_priv.h"

/* VV_HDF5_BROKEN: not all chunks were found. */
int vv_hdf5_chunks_add(struct vv_hdf5 *h, const struct vv_hdf5_object *o, uint32_t variable);

#endif
