/* Reads one variable of a packed file without the rest of the file. A reader parses the file in the
 * store; only the bytes it asks for, and the variable, are read and decoded. */
#ifndef VV_ENGINE_FILES_EXTRACT_VARIABLE_H
#define VV_ENGINE_FILES_EXTRACT_VARIABLE_H

#include "engine/files/unpack.h"
#include "reader/reader.h"

struct vv_extract_variable_file;

int vv_extract_variable_open(const struct vv_unpack *u, struct vv_pool *pool, const struct vv_unpack_file *f, struct vv_extract_variable_file **out);
void vv_extract_variable_close(struct vv_extract_variable_file *f); /* NULL is allowed */
/* Finds a variable by its path in the file; the first '/' may be omitted. The message of VV_ENOENT
 * lists the variables of the file. */
int vv_extract_variable_find(const struct vv_extract_variable_file *f, const char *name, const struct vv_variable **out);
/* The element type of the output. An integer that uses some bits of its element fills the whole
 * element. */
uint8_t vv_extract_variable_type(const struct vv_variable *v);
bool vv_extract_variable_swapped(const struct vv_variable *v);
/* Writes the elements in the order of a C array, raw or as NumPy's .npy. Numbers keep the byte
 * order of the file. */
int vv_extract_variable_write(struct vv_extract_variable_file *f, const struct vv_variable *v, int fd, bool npy, const struct vv_progress *progress);
/* Bytes of all elements. */
int vv_extract_variable_bytes(const struct vv_variable *v, uint64_t *out);

#endif
