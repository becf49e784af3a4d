/* Fractal heaps: objects of any length, named by IDs. */
#ifndef VV_READER_HDF5_HDF5_HEAP_H
#define VV_READER_HDF5_HDF5_HEAP_H

#include "reader/hdf5/hdf5_priv.h"

struct vv_hdf5_heap {
	uint16_t id_size, width, max_bits, rows;
	uint32_t max_managed;
	uint64_t first, max_direct; /* sizes of blocks */
	uint64_t root, huge;
	uint8_t offset_size, len_size;
};

int vv_hdf5_heap_open(struct vv_hdf5 *h, uint64_t at, struct vv_hdf5_heap *heap);
int vv_hdf5_heap_get(struct vv_hdf5 *h, const struct vv_hdf5_heap *heap, const uint8_t *id, size_t n, struct vv_buf *to);

#endif
