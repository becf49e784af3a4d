/* Locks as lease objects that name their holder. */
#ifndef VV_STORE_S3_S3_LOCK_H
#define VV_STORE_S3_S3_LOCK_H

#include "store/s3/s3_priv.h"

int vv_s3_lock(struct vv_store *s, const char *name, struct vv_lock **out);
void vv_s3_lock_release(struct vv_lock *l);
int vv_s3_lock_look(struct vv_store *s, const char *name, struct vv_lock_holder *out);

#endif
