/* Messages for failed requests, with advice for the user. */
#ifndef VV_STORE_S3_S3_ERROR_H
#define VV_STORE_S3_S3_ERROR_H

#include "store/s3/s3_http.h"

/* Reads code and message of an error body into the answer. */
void vv_s3_error_read(struct vv_s3_answer *a);
/* Sets the error message and returns the code. */
int vv_s3_error_word(const struct vv_s3_conf *c, const struct vv_s3_request *r, const struct vv_s3_answer *a);

#endif
