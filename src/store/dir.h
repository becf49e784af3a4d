/* A store in a directory of a POSIX file system. */
#ifndef VV_STORE_DIR_H
#define VV_STORE_DIR_H

#include "store/store.h"

struct vv_fs;

/* url: a path, or dir:PATH. */
int vv_dir_open(const char *url, const struct vv_store_options *opt, struct vv_store **out);
/* Tests: the file system that directories opened from now on use; NULL = the real one. */
void vv_dir_set_fs(const struct vv_fs *fs);

#endif
