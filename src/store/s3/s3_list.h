/* ListObjectsV2: lists the objects directly under a prefix, page by page. */
#ifndef VV_STORE_S3_S3_LIST_H
#define VV_STORE_S3_S3_LIST_H

#include "store/s3/s3_priv.h"

int vv_s3_list(struct vv_store *s, const char *dir, struct vv_names *out);
/* 1: there is an object under the prefix; 0: there is none. */
int vv_s3_list_any(struct vv_s3 *s);

#endif
