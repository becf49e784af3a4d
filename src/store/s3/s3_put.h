/* Writes objects, by one PUT or by a multipart upload. */
#ifndef VV_STORE_S3_S3_PUT_H
#define VV_STORE_S3_S3_PUT_H

#include "store/s3/s3_priv.h"

int vv_s3_put_open(struct vv_store *s, const char *name, uint64_t size_hint, struct vv_put **out);
int vv_s3_put_write(struct vv_put *p, const struct iovec *iov, int n);
int vv_s3_put_commit(struct vv_put *p);
void vv_s3_put_abort(struct vv_put *p);

#endif
