/* Everything is validated here, so that no value can corrupt a later message or request. */
#include "store/s3/s3_conf.h"
#include "base/env.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/backend/store_options.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MIN_PART (UINT64_C(5) << 20) /* S3 refuses smaller parts */
#define MAX_PART (UINT64_C(5) << 30)
#define DEFAULT_PART (UINT64_C(8) << 20)

static const char *env(const char *name)
{
	const char *v = vv_env_get(name);

	return v && *v ? v : NULL;
}

static int own(char **to, const char *s)
{
	*to = vv_mem_strdup(s);
	return *to ? 0 : VV_ENOMEM;
}

/* Bucket names of S3, and the '_' and capitals of early S3 and of other servers. */
static bool good_bucket(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_");

	return n >= 3 && n <= 255 && !s[n] && s[0] != '.' && s[0] != '-' && !strstr(s, "..");
}

/* s3://BUCKET[/PREFIX]; slashes at either end of the prefix are ignored. */
static int take_url(struct vv_s3_conf *c, const char *url)
{
	const char *bucket = strncmp(url, "s3://", 5) == 0 ? url + 5 : "";
	size_t n = strcspn(bucket, "/");
	const char *prefix = bucket + n + strspn(bucket + n, "/");
	size_t len = strlen(prefix);

	while (len && prefix[len - 1] == '/')
		len--;
	c->bucket = vv_mem_printf("%.*s", (int)n, bucket);
	c->prefix = vv_mem_printf("%.*s%s", (int)len, prefix, len ? "/" : "");
	if (!c->bucket || !c->prefix)
		return VV_ENOMEM;
	if (!good_bucket(c->bucket))
		return vv_err_set(VV_EINVAL, "'%s' is not s3://BUCKET/PREFIX with a possible bucket name", url);
	if (strlen(c->prefix) > 512 || strstr(c->prefix, "//"))
		return vv_err_set(VV_EINVAL, "'%s': the prefix is too long or has an empty part", url);
	for (const char *p = c->prefix; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return vv_err_set(VV_EINVAL, "'%s': the prefix has a control character", url);
	return 0;
}

static int take_credentials(struct vv_s3_conf *c)
{
	static const char *const names[] = { "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY" };
	const char *token = env("AWS_SESSION_TOKEN");
	int rc;

	for (int i = 0; i < 2; i++)
		if (!env(names[i]))
			return vv_err_set(VV_EDENIED, "s3: no credentials: the environment variable %s is not set",
					  names[i]);
	rc = own(&c->access, env(names[0]));
	if (rc == 0)
		rc = own(&c->secret, env(names[1]));
	if (rc == 0 && token)
		rc = own(&c->token, token);
	if (rc == 0 && (strpbrk(c->access, "\r\n") || (token && strpbrk(token, "\r\n"))))
		rc = vv_err_set(VV_EDENIED, "s3: AWS_ACCESS_KEY_ID or AWS_SESSION_TOKEN has a line break in it");
	return rc;
}

/* Hosts without subdomains: addresses, and this machine. */
static bool bare_host(const char *host)
{
	size_t n = strcspn(host, ":");

	return host[0] == '[' || strspn(host, "0123456789.") == n || (n == 9 && strncasecmp(host, "localhost", 9) == 0);
}

/* Splits scheme://authority[/path]. Other parts (user, query) are refused: they would end up in
 * messages or be lost. */
static int take_endpoint(struct vv_s3_conf *c, const char *given, bool path_style)
{
	const char *scheme_end = strstr(given, "://");
	size_t scheme_n = scheme_end ? (size_t)(scheme_end - given) : 0;
	const char *host = scheme_end ? scheme_end + 3 : given;
	size_t host_n = strcspn(host, "/"), path_n = strlen(host + host_n);
	bool http = (scheme_n == 4 && strncasecmp(given, "http", 4) == 0) ||
		    (scheme_n == 5 && strncasecmp(given, "https", 5) == 0);

	if (!http || host_n == 0 || strpbrk(given, "?#@ \\\r\n\t"))
		return vv_err_set(VV_EINVAL, "s3: the endpoint '%s' is not http://HOST[:PORT] or https://HOST[:PORT]",
				  given);
	while (path_n && host[host_n + path_n - 1] == '/')
		path_n--;
	/* With a dot in the bucket's name the server's certificate would not match. */
	if (bare_host(host) || strchr(c->bucket, '.') || strchr(c->bucket, '_'))
		path_style = true;
	c->endpoint = vv_mem_printf("%.*s", (int)(host - given + (ptrdiff_t)(host_n + path_n)), given);
	c->host = vv_mem_printf("%s%s%.*s", path_style ? "" : c->bucket, path_style ? "" : ".", (int)host_n, host);
	c->base = vv_mem_printf("%.*s/%s%s", (int)path_n, host + host_n, path_style ? c->bucket : "",
				path_style ? "/" : "");
	if (!c->endpoint || !c->host || !c->base)
		return VV_ENOMEM;
	c->origin = vv_mem_printf("%.*s://%s", (int)scheme_n, given, c->host);
	return c->origin ? 0 : VV_ENOMEM;
}

static int take_region(struct vv_s3_conf *c, const char *given)
{
	const char *region = given && *given ? given : env("AWS_REGION");

	if (!region)
		region = env("AWS_DEFAULT_REGION");
	if (!region)
		region = "us-east-1";
	if (strspn(region, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != strlen(region))
		return vv_err_set(VV_EINVAL, "s3: '%s' is not the name of a region", region);
	return own(&c->region, region);
}

static int take_place(struct vv_s3_conf *c, const struct vv_store_options *opt)
{
	const char *given = opt->s3_endpoint && *opt->s3_endpoint ? opt->s3_endpoint : env("AWS_ENDPOINT_URL_S3");
	char *amazon;
	int rc = take_region(c, opt->s3_region);

	if (rc < 0)
		return rc;
	if (!given)
		given = env("AWS_ENDPOINT_URL");
	if (given)
		return take_endpoint(c, given, opt->s3_path_style);
	amazon = vv_mem_printf("https://s3.%s.amazonaws.com", c->region);
	rc = amazon ? take_endpoint(c, amazon, opt->s3_path_style) : VV_ENOMEM;
	vv_mem_free(amazon);
	return rc;
}

static uint64_t part_within_limits(uint64_t n)
{
	if (n == 0)
		return DEFAULT_PART;
	return n < MIN_PART ? MIN_PART : n > MAX_PART ? MAX_PART : n;
}

int vv_s3_conf_init(struct vv_s3_conf *c, const char *url, const struct vv_store_options *opt)
{
	int rc;

	*c = (struct vv_s3_conf){
		.retries = opt->s3_retries,
		.part_bytes = part_within_limits(opt->s3_part_bytes),
		.stall_s = 30,
		.first_pause_ms = 200,
		.settle_ms = 1000,
		.sweep_age_s = 24 * 3600,
	};
	rc = take_url(c, url);
	if (rc == 0)
		rc = take_credentials(c);
	if (rc == 0)
		rc = take_place(c, opt);
	if (rc == 0 && env("AWS_CA_BUNDLE"))
		rc = own(&c->ca_bundle, env("AWS_CA_BUNDLE"));
	if (rc < 0)
		vv_s3_conf_fini(c);
	return rc;
}

void vv_s3_conf_fini(struct vv_s3_conf *c)
{
	char *const all[] = { c->bucket, c->prefix, c->endpoint, c->origin, c->host,     c->base,
			      c->region, c->access, c->secret,   c->token,  c->ca_bundle };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		vv_mem_free(all[i]);
	*c = (struct vv_s3_conf){ 0 };
}
