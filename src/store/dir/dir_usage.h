/* The disk space of a folder of the store. */
#ifndef VV_STORE_DIR_DIR_USAGE_H
#define VV_STORE_DIR_DIR_USAGE_H

#include "store/dir/dir_priv.h"

int vv_dir_usage(struct vv_store *s, const char *dir, uint64_t *bytes);

#endif
