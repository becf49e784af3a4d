/* Writing a bundle: a temporary file that all members write into (vv_dir_put_join), until its directory is put behind them and it gets its name. */
#ifndef VV_STORE_DIR_BUNDLE_H
#define VV_STORE_DIR_BUNDLE_H

#include "store/dir_priv.h"

int vv_dir_bundle_make(struct vv_store *s, const char *bundle, char token[VV_STORE_TOKEN]);
int vv_dir_bundle_seal(struct vv_store *s, const char *bundle, const char *token, const struct vv_member *m, size_t n);
void vv_dir_bundle_drop(struct vv_store *s, const char *bundle, const char *token);
/* The unfinished file of a bundle, in new memory; the token may come from anywhere. */
int vv_dir_bundle_tmp(struct vv_dir *d, const char *bundle, const char *token, char **out);

#endif
