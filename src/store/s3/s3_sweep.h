/* Multipart uploads: lists those in progress for observers, and removes abandoned ones. */
#ifndef VV_STORE_S3_S3_SWEEP_H
#define VV_STORE_S3_S3_SWEEP_H

#include "store/s3/s3_priv.h"

int vv_s3_sweep(struct vv_store *s, const char *dir);
int vv_s3_sweep_look(struct vv_store *s, const char *dir, struct vv_names *out);

#endif
