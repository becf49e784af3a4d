/* B-trees of both versions. */
#ifndef VV_READER_HDF5_HDF5_BTREE_H
#define VV_READER_HDF5_HDF5_BTREE_H

#include "reader/hdf5/hdf5_priv.h"

int vv_hdf5_btree_each_child(struct vv_hdf5 *h, uint64_t at, unsigned kind, size_t key, vv_hdf5_each_child *each, void *arg);
/* once: no node is visited again later; false for trees that are walked repeatedly. */
int vv_hdf5_btree_each_record(struct vv_hdf5 *h, uint64_t at, bool once, vv_hdf5_each_record *each, void *arg);

#endif
