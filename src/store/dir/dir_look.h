/* Sizes of objects, and unfinished objects of a folder, for observers. */
#ifndef VV_STORE_DIR_DIR_LOOK_H
#define VV_STORE_DIR_DIR_LOOK_H

#include "store/dir/dir_priv.h"

int vv_dir_look_unfinished(struct vv_store *s, const char *dir, struct vv_names *out);
int vv_dir_look_size(struct vv_store *s, const char *name, uint64_t *size);

#endif
