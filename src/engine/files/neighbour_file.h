/* A file beside another one, as readers ask for it: reader/reader.h. */
#ifndef VV_ENGINE_FILES_NEIGHBOUR_FILE_H
#define VV_ENGINE_FILES_NEIGHBOUR_FILE_H

#include <stddef.h>
#include <stdint.h>

/* Of the file called `name` in the folder of `path` the first bytes, `most` at most: new memory. No such file: 0, and *out is NULL. */
int vv_neighbour_file_read(const char *path, const char *name, size_t most, uint8_t **out, size_t *n);

#endif
