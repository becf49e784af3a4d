/* Assembles variables that are made of others of the same file, by maps between arrays in
 * memory. */
#ifndef VV_READER_VIRTUAL_H
#define VV_READER_VIRTUAL_H

#include "reader/reader.h"

/* Copies the elements of a map from its source's array `from` to the variable's array `to`. */
int vv_virtual_copy(const struct vv_reader_map *m, const struct vv_variable *source, const uint8_t *from,
		    const struct vv_variable *v, uint8_t *to);

#endif
