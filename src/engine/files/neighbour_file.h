/* Reads a file in the folder of another file, for a reader that asks for it (reader/reader.h). */
#ifndef VV_ENGINE_FILES_NEIGHBOUR_FILE_H
#define VV_ENGINE_FILES_NEIGHBOUR_FILE_H

#include <stddef.h>
#include <stdint.h>

/* Reads the first `most` bytes at most of the file `name` in the folder of `path` into new memory.
 * If there is no such file, it returns 0 and *out is NULL. */
int vv_neighbour_file_read(const char *path, const char *name, size_t most, uint8_t **out, size_t *n);

#endif
