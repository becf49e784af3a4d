/* Variables that are made of others of the same file, by maps: arrays in memory, put together from arrays in memory. */
#ifndef VV_READER_VIRTUAL_H
#define VV_READER_VIRTUAL_H

#include "reader/reader.h"

/* The elements that a map takes from its source, whose array is at `from`, to where they belong in the variable's, at `to`. */
int vv_virtual_copy(const struct vv_reader_map *m, const struct vv_variable *source, const uint8_t *from,
		    const struct vv_variable *v, uint8_t *to);

#endif
