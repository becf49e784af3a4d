/* Chunks: where those of a dataset lie, by each of the six kinds of index. */
#ifndef VV_READER_HDF5_HDF5_CHUNKS_H
#define VV_READER_HDF5_HDF5_CHUNKS_H

#include "reader/hdf5/hdf5_priv.h"

/* hdf5_chunks.c, hdf5_arrays.c: VV_HDF5_BROKEN: not all of them */
int vv_hdf5_chunks_add(struct vv_hdf5 *h, const struct vv_hdf5_object *o, uint32_t variable);

#endif
