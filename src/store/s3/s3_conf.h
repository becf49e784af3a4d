/* The server, the bucket and the credentials: read once, from the URL, the options and AWS's own
 * environment variables. */
#ifndef VV_STORE_S3_S3_CONF_H
#define VV_STORE_S3_S3_CONF_H

#include <stdint.h>

struct vv_store_options;

struct vv_s3_conf {
	char *bucket;
	char *prefix;   /* of every key: "" or "a/b/" */
	char *endpoint; /* as given, for messages: https://host:port */
	/* scheme and authority of every request, with the bucket if it is part of the host */
	char *origin;
	char *host;     /* the authority alone */
	char *base;     /* encoded path before the key: "/" or "/bucket/" */
	char *region;
	char *access;
	char *secret;
	char *token;     /* or NULL */
	char *ca_bundle; /* or NULL */
	unsigned retries;
	uint64_t part_bytes;
	unsigned stall_s; /* a transfer slower than 1 KiB/s for so long has failed */
	unsigned first_pause_ms;
	/* time to watch a lock if the server does not support conditional writes */
	unsigned settle_ms;
	uint64_t sweep_age_s; /* an upload begun so long ago is abandoned */
};

int vv_s3_conf_init(struct vv_s3_conf *c, const char *url, const struct vv_store_options *opt);
void vv_s3_conf_fini(struct vv_s3_conf *c);

#endif
