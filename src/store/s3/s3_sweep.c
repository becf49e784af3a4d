/* Multipart uploads: lists those in progress for observers, and removes abandoned ones. Abandoned
 * uploads cost money forever, and no listing of objects shows them. S3 does not report the process
 * that began an upload, so only age makes it stale. The limit is far above the duration of any
 * upload. */
#include "store/s3/s3_sweep.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/backend/names.h"
#include "store/s3/s3_priv.h"
#include "store/s3/s3_xml.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct upload {
	char *key;
	char *id;
	time_t since;
};

struct uploads {
	struct upload next; /* the upload being described */
	struct upload *v;
	size_t n;
	bool more;
	char *key_marker;
	char *id_marker;
};

static void fini_upload(struct upload *u)
{
	vv_mem_free(u->key);
	vv_mem_free(u->id);
	*u = (struct upload){ 0 };
}

static void fini_uploads(struct uploads *u)
{
	for (size_t i = 0; i < u->n; i++)
		fini_upload(&u->v[i]);
	fini_upload(&u->next);
	vv_mem_free(u->v);
	vv_mem_free(u->key_marker);
	vv_mem_free(u->id_marker);
}

/* 2013-05-24T00:00:00.000Z; an unreadable time is treated as new. */
static time_t parse_time(const char *text)
{
	struct tm tm = { 0 };

	if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min,
		   &tm.tm_sec) != 6)
		return 0;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	return timegm(&tm);
}

static int replace(char **to, const char *text)
{
	vv_mem_free(*to);
	*to = vv_mem_strdup(text);
	return *to ? 0 : VV_ENOMEM;
}

static int keep(struct uploads *u)
{
	struct upload *v;

	if (!u->next.key || !u->next.id || u->next.since <= 0) {
		fini_upload(&u->next);
		return 0;
	}
	v = vv_mem_grow(u->v, u->n + 1, sizeof(*v));
	if (!v)
		return VV_ENOMEM;
	u->v = v;
	v[u->n++] = u->next;
	u->next = (struct upload){ 0 };
	return 0;
}

static int take_element(void *ctx, const char *path, const char *text)
{
	static const char root[] = "ListMultipartUploadsResult/";
	struct uploads *u = ctx;

	if (strncmp(path, root, sizeof(root) - 1) != 0)
		return 0;
	path += sizeof(root) - 1;
	if (strcmp(path, "Upload") == 0)
		return keep(u);
	if (!text)
		return 0;
	if (strcmp(path, "Upload/Key") == 0)
		return replace(&u->next.key, text);
	if (strcmp(path, "Upload/UploadId") == 0)
		return replace(&u->next.id, text);
	if (strcmp(path, "NextKeyMarker") == 0)
		return replace(&u->key_marker, text);
	if (strcmp(path, "NextUploadIdMarker") == 0)
		return replace(&u->id_marker, text);
	if (strcmp(path, "Upload/Initiated") == 0)
		u->next.since = parse_time(text);
	if (strcmp(path, "IsTruncated") == 0)
		u->more = strcmp(text, "true") == 0;
	return 0;
}

static int fetch(struct vv_s3 *s, const char *prefix, struct uploads *u)
{
	struct vv_s3_request r = {
		.method = "GET",
		.key = "",
		.query = { { "uploads", "" }, { "prefix", prefix } },
		.n_query = 2,
	};
	struct vv_s3_answer a = { 0 };
	int rc;

	if (u->key_marker)
		r.query[r.n_query++] = (struct vv_s3_pair){ "key-marker", u->key_marker };
	if (u->key_marker && u->id_marker)
		r.query[r.n_query++] = (struct vv_s3_pair){ "upload-id-marker", u->id_marker };
	rc = vv_s3_http_call(&s->http, &r, &a);
	u->more = false;
	if (rc == 0)
		rc = vv_s3_xml_walk(a.body.p, a.body.n, take_element, u);
	else if (a.status == 501 || a.status == 405 || a.status == 400)
		rc = 0; /* a server without such a list */
	vv_s3_http_done(&a);
	return rc;
}

static int abort_upload(struct vv_s3 *s, const struct upload *u)
{
	struct vv_s3_request r = {
		.method = "DELETE", .key = u->key, .query = { { "uploadId", u->id } }, .n_query = 1
	};
	struct vv_s3_answer a = { 0 };
	int rc = vv_s3_http_call(&s->http, &r, &a);

	vv_s3_http_done(&a);
	return rc == VV_ENOENT ? 0 : rc;
}

/* Aborts the stale uploads of a page. The page is then cleared; the markers stay. */
static int abort_stale(struct vv_s3 *s, const char *prefix, struct uploads *u)
{
	time_t limit = time(NULL) - (time_t)s->conf.sweep_age_s;
	int rc = 0;

	for (size_t i = 0; i < u->n; i++) {
		bool ours = strncmp(u->v[i].key, prefix, strlen(prefix)) == 0;

		if (rc == 0 && ours && u->v[i].since <= limit)
			rc = abort_upload(s, &u->v[i]);
		fini_upload(&u->v[i]);
	}
	u->n = 0;
	return rc;
}

int vv_s3_sweep(struct vv_store *store, const char *dir)
{
	struct vv_s3 *s = (struct vv_s3 *)store;
	char *prefix = vv_mem_printf("%s%s%s", s->conf.prefix, dir, *dir ? "/" : "");
	struct uploads u = { 0 };
	int rc = prefix ? 0 : VV_ENOMEM;

	for (int pages = 0; rc == 0 && (pages == 0 || u.more) && pages < 1000; pages++) {
		rc = fetch(s, prefix, &u);
		if (rc == 0)
			rc = abort_stale(s, prefix, &u);
	}
	fini_uploads(&u);
	vv_mem_free(prefix);
	return rc;
}

struct s3_sweep_parts {
	uint64_t bytes;
	bool more;
	char marker[VV_S3_XML_TEXT];
};

static int take_part(void *ctx, const char *path, const char *text)
{
	struct s3_sweep_parts *p = ctx;

	if (!text)
		return 0;
	if (strcmp(path, "ListPartsResult/Part/Size") == 0)
		p->bytes += strtoull(text, NULL, 10);
	else if (strcmp(path, "ListPartsResult/IsTruncated") == 0)
		p->more = strcmp(text, "true") == 0;
	else if (strcmp(path, "ListPartsResult/NextPartNumberMarker") == 0)
		snprintf(p->marker, sizeof(p->marker), "%s", text);
	return 0;
}

/* Bytes of an upload that the server has; an upload that ended meanwhile has none. */
static int count_parts(struct vv_s3 *s, const struct upload *u, struct s3_sweep_parts *p)
{
	struct vv_s3_request r = { .method = "GET", .key = u->key, .query = { { "uploadId", u->id } }, .n_query = 1 };
	int rc = 0;

	for (int pages = 0; rc == 0 && (pages == 0 || p->more) && pages < 10; pages++) {
		struct vv_s3_answer a = { 0 };

		if (p->marker[0]) {
			r.query[1] = (struct vv_s3_pair){ "part-number-marker", p->marker };
			r.n_query = 2;
		}
		p->more = false;
		rc = vv_s3_http_call(&s->http, &r, &a);
		if (rc == 0)
			rc = vv_s3_xml_walk(a.body.p, a.body.n, take_part, p);
		else if (a.status == 404 || a.status == 501 || a.status == 405 || a.status == 400)
			rc = 0;
		vv_s3_http_done(&a);
	}
	return rc;
}

static int look_at(struct vv_s3 *s, const char *prefix, const struct upload *u, struct vv_names *out)
{
	struct s3_sweep_parts *p;
	const char *name;
	int rc;

	if (strncmp(u->key, prefix, strlen(prefix)) != 0)
		return 0;
	name = u->key + strlen(prefix);
	if (!*name || strchr(name, '/'))
		return 0;
	p = vv_mem_new(1, sizeof(*p));
	rc = p ? count_parts(s, u, p) : VV_ENOMEM;
	if (rc == 0)
		rc = vv_names_add(out, name, strlen(name), p->bytes, false);
	vv_mem_free(p);
	return rc;
}

/* Reads the first page only: no lineage has a thousand uploads in progress. */
int vv_s3_sweep_look(struct vv_store *store, const char *dir, struct vv_names *out)
{
	struct vv_s3 *s = (struct vv_s3 *)store;
	char *prefix = vv_mem_printf("%s%s%s", s->conf.prefix, dir, *dir ? "/" : "");
	struct uploads u = { 0 };
	int rc = prefix ? fetch(s, prefix, &u) : VV_ENOMEM;

	for (size_t i = 0; rc == 0 && i < u.n; i++)
		rc = look_at(s, prefix, &u.v[i], out);
	fini_uploads(&u);
	vv_mem_free(prefix);
	return rc;
}
