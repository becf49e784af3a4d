/* Reads bytes of an HDF5 file at its internal addresses. */
#ifndef VV_READER_HDF5_HDF5_FILE_H
#define VV_READER_HDF5_HDF5_FILE_H

#include "reader/hdf5/hdf5_priv.h"

int vv_hdf5_file_open(struct vv_hdf5 *h);
void vv_hdf5_file_close(struct vv_hdf5 *h);
int vv_hdf5_file_get(struct vv_hdf5 *h, uint64_t at, void *to, size_t n);
/* Reads a block of n bytes that begins with these four; w starts behind them. `to` has n bytes. */
int vv_hdf5_file_block(struct vv_hdf5 *h, uint64_t at, const char *magic, void *to, size_t n, struct vv_wire *w);
/* Is [at, at + n) in the file? */
bool vv_hdf5_file_has(const struct vv_hdf5 *h, uint64_t at, uint64_t n);
/* VV_HDF5_BROKEN if this block was visited before. */
int vv_hdf5_file_first(struct vv_hdf5 *h, uint64_t at);
/* Reduces the budget of bytes that may still be read. */
int vv_hdf5_file_spend(struct vv_hdf5 *h, uint64_t n);
uint64_t vv_hdf5_file_uint(struct vv_wire *w, unsigned size); /* of up to 8 bytes */
uint64_t vv_hdf5_file_address(const struct vv_hdf5 *h, struct vv_wire *w);
uint64_t vv_hdf5_file_length(const struct vv_hdf5 *h, struct vv_wire *w);

#endif
