/* The S3 store: opens it, and implements the operations of one request. The others: s3_put, s3_get,
 * s3_list, s3_sweep, s3_lock. S3 guarantees that an object appears complete: a PUT, or the
 * completion of a multipart upload, is atomic. */
#include "store/s3/s3.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/s3/s3_get.h"
#include "store/s3/s3_list.h"
#include "store/s3/s3_lock.h"
#include "store/s3/s3_priv.h"
#include "store/s3/s3_put.h"
#include "store/s3/s3_sweep.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

char *vv_s3_key(const struct vv_s3 *s, const char *name)
{
	return vv_mem_printf("%s%s", s->conf.prefix, name);
}

int vv_s3_nonce(char out[VV_S3_NONCE])
{
	uint8_t b[(VV_S3_NONCE - 1) / 2];

	if (getrandom(b, sizeof(b), 0) != (ssize_t)sizeof(b))
		return vv_err_sys(errno, "no random numbers");
	for (size_t i = 0; i < sizeof(b); i++)
		snprintf(out + 2 * i, 3, "%02x", b[i]);
	return 0;
}

static int remove_object(struct vv_store *store, const char *name)
{
	struct vv_s3 *s = (struct vv_s3 *)store;
	char *key = vv_s3_key(s, name);
	struct vv_s3_request r = { .method = "DELETE", .key = key };
	struct vv_s3_answer a = { 0 };
	int rc;

	if (!key)
		return VV_ENOMEM;
	rc = vv_s3_http_call(&s->http, &r, &a);
	if (rc == VV_ENOENT && strcmp(a.code, "NoSuchBucket") != 0)
		rc = 0;
	vv_s3_http_done(&a);
	vv_mem_free(key);
	return rc;
}

static void close_store(struct vv_store *store)
{
	struct vv_s3 *s = (struct vv_s3 *)store;

	vv_s3_http_fini(&s->http);
	vv_s3_conf_fini(&s->conf);
	vv_backend_fini(&s->base);
	vv_mem_free(s);
}

static const struct vv_store_ops ops = {
	.put_open = vv_s3_put_open,
	.put_write = vv_s3_put_write,
	.put_commit = vv_s3_put_commit,
	.put_abort = vv_s3_put_abort,
	.get_open = vv_s3_get_open,
	.get_read = vv_s3_get_read,
	.get_close = vv_s3_get_close,
	.list = vv_s3_list,
	.remove = remove_object,
	.sweep = vv_s3_sweep,
	.locks = { .take = vv_s3_lock, .release = vv_s3_lock_release, .holder = vv_s3_lock_look },
	.unfinished = vv_s3_sweep_look,
	.close = close_store,
};

/* One request that detects a wrong key, clock, bucket or endpoint before anything depends on it. */
static int look_around(struct vv_s3 *s, const struct vv_store_options *opt)
{
	int any = vv_s3_list_any(s);

	if (any == 0 && !opt->create)
		return vv_err_set(VV_ENOENT, "s3: there is nothing under %s at %s", s->base.url, s->conf.endpoint);
	return any < 0 ? any : 0;
}

int vv_s3_open(const char *url, const struct vv_store_options *opt, struct vv_store **out)
{
	struct vv_s3 *s = vv_mem_new(1, sizeof(*s));
	int rc;

	if (!s)
		return VV_ENOMEM;
	rc = vv_s3_conf_init(&s->conf, url, opt);
	if (rc < 0)
		goto free_store;
	rc = vv_s3_http_init(&s->http, &s->conf);
	if (rc < 0)
		goto fini_conf;
	rc = vv_backend_init(&s->base, &ops, url, opt);
	if (rc < 0)
		goto fini_http;
	s->base.is_remote = true;
	rc = look_around(s, opt);
	if (rc < 0) {
		close_store(&s->base);
		return rc;
	}
	*out = &s->base;
	return 0;

fini_http:
	vv_s3_http_fini(&s->http);
fini_conf:
	vv_s3_conf_fini(&s->conf);
free_store:
	vv_mem_free(s);
	return rc;
}
