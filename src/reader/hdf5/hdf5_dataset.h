/* Datasets: parses the messages of an object header, and makes the variable and its pieces. */
#ifndef VV_READER_HDF5_HDF5_DATASET_H
#define VV_READER_HDF5_HDF5_DATASET_H

#include "reader/hdf5/hdf5_priv.h"

int vv_hdf5_dataset_message(struct vv_hdf5 *h, struct vv_hdf5_object *o, const struct vv_hdf5_message *m);
int vv_hdf5_dataset_add(struct vv_hdf5 *h, const struct vv_hdf5_object *o, const char *path, size_t len);

#endif
