/* A store in a directory of a POSIX file system. */
#ifndef VV_STORE_DIR_H
#define VV_STORE_DIR_H

#include "store/store.h"

/* url: a path, or dir:PATH. */
int vv_dir_open(const char *url, const struct vv_store_options *opt, struct vv_store **out);

#endif
