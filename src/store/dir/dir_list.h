/* Lists a folder: its files, and the members of its bundles instead of the bundles. */
#ifndef VV_STORE_DIR_DIR_LIST_H
#define VV_STORE_DIR_DIR_LIST_H

#include "store/dir/dir_priv.h"

int vv_dir_list(struct vv_store *s, const char *dir, struct vv_names *out);
/* Calls fn for each entry of a folder on the disk, "." and ".." among them, until it fails. An
 * absent folder has none. */
int vv_dir_list_each(const char *path, int (*fn)(void *arg, int dirfd, const char *name), void *arg);

#endif
