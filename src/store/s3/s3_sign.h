/* AWS Signature Version 4, as pure functions: they sign requests and send nothing. */
#ifndef VV_STORE_S3_S3_SIGN_H
#define VV_STORE_S3_S3_SIGN_H

#include "base/buf.h"

#define VV_S3_SIGN_PAIRS 16 /* limit of headers, and of query parameters, of a request */

struct vv_s3_pair {
	const char *name;
	const char *value;
};

struct vv_s3_sign_key {
	const char *access;
	const char *secret;
	const char *region;
	const char *service;
};

struct vv_s3_sign_request {
	const char *method;
	const char *path;                 /* percent-encoded */
	const char *query;                /* as vv_s3_sign_query writes it */
	/* headers to sign, including host and x-amz-date; names in lower case */
	const struct vv_s3_pair *headers;
	size_t n_headers;
	const char *date;         /* 20130524T000000Z, the same as in the header */
	const char *payload_hash; /* hex */
};

/* Percent-encodes all but the unreserved characters (and '/' as a separator). */
void vv_s3_sign_encode(struct vv_buf *out, const char *s, bool keep_slash);
/* "a=1&b=2", encoded and sorted. */
void vv_s3_sign_query(struct vv_buf *out, const struct vv_s3_pair *query, size_t n);
/* The canonical request, and the value of the Authorization header. Not terminated; vv_buf_check
 * reports failure. */
void vv_s3_sign_canonical(struct vv_buf *out, const struct vv_s3_sign_request *r);
void vv_s3_sign_authorization(struct vv_buf *out, const struct vv_s3_sign_key *key, const struct vv_s3_sign_request *r);

#endif
