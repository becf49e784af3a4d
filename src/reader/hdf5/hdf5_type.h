/* Datatypes: translates the type of an element. */
#ifndef VV_READER_HDF5_HDF5_TYPE_H
#define VV_READER_HDF5_HDF5_TYPE_H

#include "reader/hdf5/hdf5_priv.h"

int vv_hdf5_type_parse(const uint8_t *p, size_t n, struct vv_hdf5_type *t);

#endif
