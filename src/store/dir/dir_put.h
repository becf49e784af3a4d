/* Publishes by rename: an object is written under a temporary name, made durable and renamed; then
 * its directory is made durable. */
#ifndef VV_STORE_DIR_DIR_PUT_H
#define VV_STORE_DIR_DIR_PUT_H

#include "store/dir/dir_priv.h"

int vv_dir_put_open(struct vv_store *s, const char *name, uint64_t size_hint, struct vv_put **out);
int vv_dir_put_write(struct vv_put *base, const struct iovec *iov, int n);
int vv_dir_put_submit(struct vv_put *base, const struct iovec *iov, int n, struct vv_pending_write *w);
int vv_dir_put_commit(struct vv_put *base);
void vv_dir_put_abort(struct vv_put *base);
int vv_dir_put_join(struct vv_store *s, const char *bundle, const char *token, uint64_t off, uint64_t room,
		    struct vv_put **out);
/* "PID-N", unique; and DIR/NAME -> DIR/.tmp-NAME-PID-N, which the caller frees. */
void vv_dir_put_token(char token[VV_STORE_TOKEN]);
char *vv_dir_put_tmp(const char *path, const char *token);
/* Creates the file and the folders above it. */
int vv_dir_put_create(struct vv_dir *d, char *tmp, int *fd);
/* Renames a durable temporary file to its final name. If rc is not 0, or on failure, the file is
 * removed. */
int vv_dir_put_publish(struct vv_dir *d, const char *tmp, const char *path, int rc);

#endif
