/* Are files what an epoch holds of them? Before what was packed is deleted. */
#ifndef VV_ENGINE_FILES_COMPARE_H
#define VV_ENGINE_FILES_COMPARE_H

#include "engine/files/unpack.h"

/* Reads the files of the epoch where they lie and compares them, byte for byte, with those that are open here; same[i]: they are equal. An
 * error is one of the store. */
int vv_compare_files(const struct vv_unpack *u, struct vv_pool *pool, const struct vv_unpack_file *file, const int *fd, bool *same, size_t n,
		  const struct vv_progress *progress);

#endif
