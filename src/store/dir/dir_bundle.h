/* Writes a bundle: all members write into a temporary file (vv_dir_put_join). Then its directory is
 * appended, and it gets its name. */
#ifndef VV_STORE_DIR_DIR_BUNDLE_H
#define VV_STORE_DIR_DIR_BUNDLE_H

#include "store/dir/dir_priv.h"

int vv_dir_bundle_make(struct vv_store *s, const char *bundle, char token[VV_STORE_TOKEN]);
int vv_dir_bundle_seal(struct vv_store *s, const char *bundle, const char *token, const struct vv_member *m, size_t n);
void vv_dir_bundle_drop(struct vv_store *s, const char *bundle, const char *token);
/* The path of a bundle's unfinished file, which the caller frees; the token is untrusted. */
int vv_dir_bundle_tmp(struct vv_dir *d, const char *bundle, const char *token, char **out);

#endif
