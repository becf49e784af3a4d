/* Types that the files of the S3 store share. */
#ifndef VV_STORE_S3_S3_PRIV_H
#define VV_STORE_S3_S3_PRIV_H

#include "store/backend/backend.h"
#include "store/s3/s3_conf.h"
#include "store/s3/s3_http.h"
#include <stdatomic.h>

struct vv_s3 {
	struct vv_store base;
	struct vv_s3_conf conf;
	struct vv_s3_http http;
	/* does the server support If-None-Match on PUT? 1 yes, -1 no, 0 unknown */
	atomic_int compares;
};

/* Sixteen random bytes in hex. */
#define VV_S3_NONCE 33

#endif
