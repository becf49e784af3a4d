/* Reads objects: the size and the ETag once, then ranges of the object with this ETag only. */
#ifndef VV_STORE_S3_S3_GET_H
#define VV_STORE_S3_S3_GET_H

#include "store/s3/s3_priv.h"

int vv_s3_get_open(struct vv_store *s, const char *name, struct vv_get **out);
int vv_s3_get_read(struct vv_get *g, uint64_t off, void *to, size_t n);
void vv_s3_get_close(struct vv_get *g);

#endif
