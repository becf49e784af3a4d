/* Sends one signed request and receives its answer, with retries if they can help. Any thread may
 * call; connections are kept. */
#ifndef VV_STORE_S3_S3_HTTP_H
#define VV_STORE_S3_S3_HTTP_H

#include "base/buf.h"
#include "store/s3/s3_conf.h"
#include "store/s3/s3_sign.h"
#include <pthread.h>

#define VV_S3_HTTP_IDLE 32                   /* unused connections that are kept open */
#define VV_S3_HTTP_BODY (UINT64_C(16) << 20) /* longest answer that is not an object */
#define VV_S3_HTTP_NONCE "x-amz-meta-varve-put"

struct vv_s3_http {
	const struct vv_s3_conf *conf;
	pthread_mutex_t lock;
	void *idle[VV_S3_HTTP_IDLE];
	unsigned n_idle;
};

struct vv_s3_request {
	const char *method;
	const char *key; /* "" = the bucket */
	struct vv_s3_pair query[8];
	size_t n_query;
	struct vv_s3_pair headers[4]; /* names in lower case; all are signed */
	size_t n_headers;
	const void *body;
	size_t body_n;
	void *into; /* buffer for the body of a successful answer; NULL: into the answer */
	size_t into_n;
	bool once;     /* do not send it again, whatever happens */
	bool patient;  /* the server may take minutes to answer */
	bool may_fail; /* status 200 may carry an error in its body */
};

struct vv_s3_answer {
	int status; /* of HTTP; 0: no answer */
	unsigned tries;
	struct vv_buf body;
	size_t got;     /* bytes written to into */
	int64_t length; /* content-length, -1 = unknown */
	char etag[128];
	char range[96]; /* content-range */
	char nonce[64]; /* VV_S3_HTTP_NONCE */
	char region[64];
	char code[64]; /* S3's error code */
	char message[256];
	/* If no answer came, or only a part of it. */
	int curl;
	int os_error;
	bool too_much; /* the server sent more than requested or allowed */
	char words[256];
};

int vv_s3_http_init(struct vv_s3_http *h, const struct vv_s3_conf *conf);
void vv_s3_http_fini(struct vv_s3_http *h);

/* Returns 0 for a status of 2xx; else an error with a message, and a->status (0 = no answer) and
 * a->code describe it. The caller zeroes *a before, and calls vv_s3_http_done after, even on
 * error. */
int vv_s3_http_call(struct vv_s3_http *h, const struct vv_s3_request *r, struct vv_s3_answer *a);
void vv_s3_http_done(struct vv_s3_answer *a);

/* For a caller that sends again by itself: may another try succeed, and the pause before it (2 for
 * the second one). */
bool vv_s3_http_may_pass(const struct vv_s3_answer *a);
void vv_s3_http_pause(const struct vv_s3_conf *c, unsigned try);

#endif
