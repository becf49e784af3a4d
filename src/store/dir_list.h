/* Lists a folder: its files, and the members of its bundles instead of the bundles. */
#ifndef VV_STORE_DIR_LIST_H
#define VV_STORE_DIR_LIST_H

#include "store/dir_priv.h"

int vv_dir_list(struct vv_store *s, const char *dir, struct vv_names *out);

#endif
