/* One variable of a file that lies packed in an epoch, without the rest of it: a reader looks at the file where it is, and only what it asks for,
 * and then the variable itself, is read and decoded. */
#ifndef VV_ENGINE_FILES_EXTRACT_VARIABLE_H
#define VV_ENGINE_FILES_EXTRACT_VARIABLE_H

#include "engine/files/unpack.h"
#include "reader/reader.h"

struct vv_extract_variable_file;

int vv_extract_variable_open(const struct vv_unpack *u, struct vv_pool *pool, const struct vv_unpack_file *f, struct vv_extract_variable_file **out);
void vv_extract_variable_close(struct vv_extract_variable_file *f); /* NULL is fine */
/* By its path in the file; the first '/' may be left out. VV_ENOENT lists what there is. */
int vv_extract_variable_find(const struct vv_extract_variable_file *f, const char *name, const struct vv_variable **out);
/* As what its elements are given out: whole numbers in some bits of an element fill all of it. */
uint8_t vv_extract_variable_type(const struct vv_variable *v);
bool vv_extract_variable_swapped(const struct vv_variable *v);
/* Its elements in the order of an array in C, as they are in the file (numbers keep their byte order): raw, or as NumPy's .npy. */
int vv_extract_variable_write(struct vv_extract_variable_file *f, const struct vv_variable *v, int fd, bool npy, const struct vv_progress *progress);
/* Bytes of all its elements. */
int vv_extract_variable_bytes(const struct vv_variable *v, uint64_t *out);

#endif
