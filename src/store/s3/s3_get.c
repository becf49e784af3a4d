/* Reads objects: the size and the ETag once, then ranges of the object with this ETag only. */
#include "store/s3/s3_get.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/s3/s3.h"
#include "store/s3/s3_priv.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct s3_get {
	struct vv_get base;
	char *key;
	char etag[sizeof(((struct vv_s3_answer *)0)->etag)];
};

static void free_get(struct s3_get *g)
{
	vv_mem_free(g->base.name);
	vv_mem_free(g->key);
	vv_mem_free(g);
}

int vv_s3_get_open(struct vv_store *store, const char *name, struct vv_get **out)
{
	struct vv_s3 *s = (struct vv_s3 *)store;
	struct vv_s3_request r = { .method = "HEAD" };
	struct vv_s3_answer a = { 0 };
	struct s3_get *g = vv_mem_new(1, sizeof(*g));
	int rc = VV_ENOMEM;

	if (!g)
		return VV_ENOMEM;
	g->base.store = store;
	g->base.name = vv_mem_strdup(name);
	r.key = g->key = vv_s3_key(s, name);
	if (g->base.name && g->key)
		rc = vv_s3_http_call(&s->http, &r, &a);
	if (rc == 0 && a.length < 0)
		rc = vv_err_set(VV_EIO, "s3: HEAD %s/%s: the server does not tell the size", s->conf.bucket, g->key);
	if (rc == 0) {
		g->base.size = (uint64_t)a.length;
		memcpy(g->etag, a.etag, sizeof(g->etag));
		*out = &g->base;
	} else {
		free_get(g);
	}
	vv_s3_http_done(&a);
	return rc;
}

/* Does the answer hold the requested range of the opened object? */
static int check_answer(const struct s3_get *g, uint64_t off, size_t n, const struct vv_s3_answer *a)
{
	const struct vv_s3 *s = (const struct vv_s3 *)g->base.store;
	uint64_t first = 0, last = g->base.size - 1;

	if (a->status == 412 || (a->status / 100 == 2 && strcmp(a->etag, g->etag) != 0))
		return vv_err_set(VV_EIO, "s3: GET %s/%s: the object was replaced while it was being read",
				  s->conf.bucket, g->key);
	if (a->status == 206 && sscanf(a->range, "bytes %" SCNu64 "-%" SCNu64, &first, &last) != 2)
		first = UINT64_MAX;
	if (first != off || last != off + n - 1 || a->got != n)
		return vv_err_set(VV_EIO,
				  "s3: GET %s/%s: bytes %" PRIu64 " to %" PRIu64 " were asked for, the answer is "
				  "%zu bytes of \"%.60s\"",
				  s->conf.bucket, g->key, off, off + n - 1, a->got, a->range);
	return 0;
}

int vv_s3_get_read(struct vv_get *get, uint64_t off, void *to, size_t n)
{
	struct s3_get *g = (struct s3_get *)get;
	struct vv_s3 *s = (struct vv_s3 *)get->store;
	struct vv_s3_request r = { .method = "GET", .key = g->key, .into = to, .into_n = n };
	struct vv_s3_answer a = { 0 };
	char range[64];
	int rc;

	if (off > get->size || n > get->size - off)
		return vv_err_set(VV_EDAMAGED,
				  "s3: %s/%s: bytes %" PRIu64 " to %" PRIu64 " are wanted, but it has %" PRIu64 " only",
				  s->conf.bucket, g->key, off, off + n - 1, get->size);
	if (n == 0)
		return 0;
	snprintf(range, sizeof(range), "bytes=%" PRIu64 "-%" PRIu64, off, off + n - 1);
	r.headers[r.n_headers++] = (struct vv_s3_pair){ "range", range };
	if (g->etag[0])
		r.headers[r.n_headers++] = (struct vv_s3_pair){ "if-match", g->etag };
	rc = vv_s3_http_call(&s->http, &r, &a);
	if (rc == 0 || a.status == 412)
		rc = check_answer(g, off, n, &a);
	else
		rc = vv_err_context(rc, "reading %s", range);
	vv_s3_http_done(&a);
	return rc;
}

void vv_s3_get_close(struct vv_get *get)
{
	free_get((struct s3_get *)get);
}
