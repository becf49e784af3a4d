/* Compares files with their packed content in an epoch, before the originals are deleted. */
#ifndef VV_ENGINE_FILES_COMPARE_H
#define VV_ENGINE_FILES_COMPARE_H

#include "engine/files/unpack.h"

/* Reads the files of the epoch in the store and compares their bytes with those of the open files
 * fd. The result same[i] reports whether file i is equal. An error is an error of the store. */
int vv_compare_files(const struct vv_unpack *u, struct vv_pool *pool, const struct vv_unpack_file *file, const int *fd, bool *same, size_t n,
		  const struct vv_progress *progress);

#endif
