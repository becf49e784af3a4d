/* ListObjectsV2: lists the objects directly under a prefix, page by page. The answers are untrusted
 * and checked. */
#include "store/s3/s3_list.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/backend/names.h"
#include "store/s3/s3_priv.h"
#include "store/s3/s3_xml.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct s3_list_page {
	struct vv_names *out;
	const char *prefix;
	struct vv_buf key; /* of the object being described */
	uint64_t size;
	bool more;
	char token[VV_S3_XML_TEXT];
};

/* The bucket may hold foreign objects too; only names that this library could have made are
 * listed. */
static bool our_name(const char *s, size_t n)
{
	static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	return n && strspn(s, legal) >= n && !(s[0] == '.' && (n == 1 || (n == 2 && s[1] == '.')));
}

static int add(struct s3_list_page *p, const char *key, uint64_t size, bool is_dir)
{
	size_t skip = strlen(p->prefix), n = strlen(key);

	if (strncmp(key, p->prefix, skip) != 0)
		return vv_err_set(VV_EIO, "the answer names a key outside of the prefix asked for");
	key += skip;
	n -= skip;
	if (is_dir && n && key[n - 1] == '/')
		n--;
	return our_name(key, n) ? vv_names_add(p->out, key, n, size, is_dir) : 0;
}

static int take_size(struct s3_list_page *p, const char *text)
{
	char *end;

	errno = 0;
	p->size = strtoull(text, &end, 10);
	if (errno || *end || text[0] < '0' || text[0] > '9')
		return vv_err_set(VV_EIO, "the answer gives '%.40s' as a size", text);
	return 0;
}

static int take_element(void *ctx, const char *path, const char *text)
{
	static const char root[] = "ListBucketResult/";
	struct s3_list_page *p = ctx;
	int rc = 0;

	if (strncmp(path, root, sizeof(root) - 1) != 0)
		return strcmp(path, "ListBucketResult") == 0 ? 0 : vv_err_set(VV_EIO, "the answer is no list");
	path += sizeof(root) - 1;
	if (strcmp(path, "Contents") == 0) {
		if (p->key.n == 0)
			return vv_err_set(VV_EIO, "the answer lists an object without a key");
		rc = add(p, (char *)p->key.p, p->size, false);
		p->key.n = 0;
		p->size = 0;
	}
	if (!text)
		return rc;
	if (strcmp(path, "Contents/Key") == 0) {
		p->key.n = 0;
		vv_buf_add(&p->key, text, strlen(text) + 1);
		rc = vv_buf_check(&p->key);
	} else if (strcmp(path, "Contents/Size") == 0) {
		rc = take_size(p, text);
	} else if (strcmp(path, "CommonPrefixes/Prefix") == 0) {
		rc = add(p, text, 0, true);
	} else if (strcmp(path, "IsTruncated") == 0) {
		p->more = strcmp(text, "true") == 0;
	} else if (strcmp(path, "NextContinuationToken") == 0) {
		memcpy(p->token, text, strlen(text) + 1);
	}
	return rc;
}

/* One page; token: "" for the first. */
static int fetch(struct vv_s3 *s, const char *prefix, const char *max_keys, const char *token, struct s3_list_page *p)
{
	struct vv_s3_request r = {
		.method = "GET",
		.key = "",
		.query = { { "list-type", "2" }, { "prefix", prefix }, { "delimiter", "/" }, { "max-keys", max_keys } },
		.n_query = 4,
	};
	struct vv_s3_answer a = { 0 };
	int rc;

	if (*token)
		r.query[r.n_query++] = (struct vv_s3_pair){ "continuation-token", token };
	rc = vv_s3_http_call(&s->http, &r, &a);
	if (rc == 0) {
		rc = vv_s3_xml_walk(a.body.p, a.body.n, take_element, p);
		if (rc < 0)
			vv_err_context(rc, "s3: LIST %s/%s", s->conf.bucket, prefix);
	}
	vv_s3_http_done(&a);
	return rc;
}

static int list_all(struct vv_s3 *s, const char *prefix, struct s3_list_page *p)
{
	char *token = vv_mem_strdup("");
	int rc = token ? 0 : VV_ENOMEM;

	while (rc == 0) {
		p->more = false;
		p->token[0] = '\0';
		rc = fetch(s, prefix, "1000", token, p);
		if (rc < 0 || !p->more)
			break;
		if (!p->token[0] || strcmp(p->token, token) == 0) {
			rc = vv_err_set(VV_EIO, "s3: LIST %s/%s: the server says there is more, but not how to get it",
					s->conf.bucket, prefix);
			break;
		}
		vv_mem_free(token);
		token = vv_mem_strdup(p->token);
		rc = token ? 0 : VV_ENOMEM;
	}
	vv_mem_free(token);
	return rc;
}

int vv_s3_list(struct vv_store *store, const char *dir, struct vv_names *out)
{
	struct vv_s3 *s = (struct vv_s3 *)store;
	char *prefix = vv_mem_printf("%s%s%s", s->conf.prefix, dir, *dir ? "/" : "");
	struct s3_list_page *p = vv_mem_new(1, sizeof(*p));
	int rc = VV_ENOMEM;

	if (prefix && p) {
		p->out = out;
		p->prefix = prefix;
		rc = list_all(s, prefix, p);
		vv_buf_fini(&p->key);
	}
	vv_mem_free(p);
	vv_mem_free(prefix);
	return rc;
}

int vv_s3_list_any(struct vv_s3 *s)
{
	struct vv_names names = { 0 };
	struct s3_list_page *p = vv_mem_new(1, sizeof(*p));
	int rc;

	if (!p)
		return VV_ENOMEM;
	p->out = &names;
	p->prefix = s->conf.prefix;
	rc = fetch(s, s->conf.prefix, "10", "", p);
	if (rc == 0)
		rc = names.n > 0 || p->more;
	vv_names_fini(&names);
	vv_buf_fini(&p->key);
	vv_mem_free(p);
	return rc;
}
