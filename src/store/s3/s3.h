/* Objects in a bucket of S3 or of a compatible server. */
#ifndef VV_STORE_S3_S3_H
#define VV_STORE_S3_S3_H

#include "store/backend/store_options.h"
#include "store/s3/s3_priv.h"

/* url: s3://BUCKET/PREFIX. Credentials come from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
 * AWS_SESSION_TOKEN. The bucket must exist; without opt->create an object must exist under the
 * prefix too (else VV_ENOENT). */
int vv_s3_open(const char *url, const struct vv_store_options *opt, struct vv_store **out);

/* The key of an object, which the caller frees, or NULL. */
char *vv_s3_key(const struct vv_s3 *s, const char *name);
int vv_s3_nonce(char out[VV_S3_NONCE]);

#endif
