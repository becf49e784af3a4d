/* Signature Version 4 as in the AWS General Reference: canonical request -> string to sign -> a
 * chain of HMACs. S3's own rules: the path is encoded once, and x-amz-content-sha256 is a signed
 * header. */
#include "store/s3/s3_sign.h"
#include "base/sha256.h"
#include <string.h>

static bool unreserved(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c && strchr("-._~", c));
}

void vv_s3_sign_encode(struct vv_buf *out, const char *s, bool keep_slash)
{
	for (; *s; s++) {
		if (unreserved(*s) || (*s == '/' && keep_slash))
			vv_buf_add(out, s, 1);
		else
			vv_buf_printf(out, "%%%02X", (unsigned char)*s);
	}
}

/* A copy of at most VV_S3_SIGN_PAIRS pairs, in order of name, then of value. */
static size_t sorted(struct vv_s3_pair to[VV_S3_SIGN_PAIRS], const struct vv_s3_pair *from, size_t n)
{
	if (n > VV_S3_SIGN_PAIRS)
		n = VV_S3_SIGN_PAIRS;
	for (size_t i = 0; i < n; i++) {
		size_t at = i;

		for (; at > 0; at--) {
			int c = strcmp(to[at - 1].name, from[i].name);

			if (c < 0 || (c == 0 && strcmp(to[at - 1].value, from[i].value) <= 0))
				break;
			to[at] = to[at - 1];
		}
		to[at] = from[i];
	}
	return n;
}

void vv_s3_sign_query(struct vv_buf *out, const struct vv_s3_pair *query, size_t n)
{
	struct vv_s3_pair v[VV_S3_SIGN_PAIRS];

	n = sorted(v, query, n);
	for (size_t i = 0; i < n; i++) {
		if (i)
			vv_buf_add(out, "&", 1);
		vv_s3_sign_encode(out, v[i].name, false);
		vv_buf_add(out, "=", 1);
		vv_s3_sign_encode(out, v[i].value, false);
	}
}

/* Header values lose blanks at both ends, and runs of blanks become one. */
static void add_trimmed(struct vv_buf *out, const char *s)
{
	bool pending = false;

	while (*s == ' ' || *s == '\t')
		s++;
	for (; *s; s++) {
		if (*s == ' ' || *s == '\t') {
			pending = true;
			continue;
		}
		if (pending)
			vv_buf_add(out, " ", 1);
		pending = false;
		vv_buf_add(out, s, 1);
	}
}

static void add_names(struct vv_buf *out, const struct vv_s3_pair *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		vv_buf_printf(out, "%s%s", i ? ";" : "", v[i].name);
}

void vv_s3_sign_canonical(struct vv_buf *out, const struct vv_s3_sign_request *r)
{
	struct vv_s3_pair v[VV_S3_SIGN_PAIRS];
	size_t n = sorted(v, r->headers, r->n_headers);

	vv_buf_printf(out, "%s\n%s\n%s\n", r->method, r->path, r->query);
	for (size_t i = 0; i < n; i++) {
		vv_buf_printf(out, "%s:", v[i].name);
		add_trimmed(out, v[i].value);
		vv_buf_add(out, "\n", 1);
	}
	vv_buf_add(out, "\n", 1);
	add_names(out, v, n);
	vv_buf_printf(out, "\n%s", r->payload_hash);
}

static bool derive_key(const struct vv_s3_sign_key *key, const char *day, uint8_t k[VV_SHA256_BYTES])
{
	static const char end[] = "aws4_request";
	struct vv_buf secret = { 0 };

	vv_buf_printf(&secret, "AWS4%s", key->secret);
	if (secret.failed)
		return false;
	vv_sha256_hmac(secret.p, secret.n, day, strlen(day), k);
	vv_sha256_hmac(k, VV_SHA256_BYTES, key->region, strlen(key->region), k);
	vv_sha256_hmac(k, VV_SHA256_BYTES, key->service, strlen(key->service), k);
	vv_sha256_hmac(k, VV_SHA256_BYTES, end, sizeof(end) - 1, k);
	vv_buf_fini(&secret);
	return true;
}

void vv_s3_sign_authorization(struct vv_buf *out, const struct vv_s3_sign_key *key, const struct vv_s3_sign_request *r)
{
	struct vv_buf text = { 0 }, scope = { 0 };
	struct vv_s3_pair v[VV_S3_SIGN_PAIRS];
	size_t n = sorted(v, r->headers, r->n_headers);
	uint8_t digest[VV_SHA256_BYTES], k[VV_SHA256_BYTES];
	char hex[VV_SHA256_HEX], day[9];

	memset(day, 0, sizeof(day));
	memcpy(day, r->date, strnlen(r->date, 8));
	vv_buf_printf(&scope, "%s/%s/%s/aws4_request", day, key->region, key->service);
	vv_s3_sign_canonical(&text, r);
	if (vv_buf_check(&text) || vv_buf_check(&scope)) {
		out->failed = true;
		goto out;
	}
	vv_sha256_of(text.p, text.n, digest);
	vv_sha256_hex(digest, hex);

	text.n = 0;
	vv_buf_printf(&text, "AWS4-HMAC-SHA256\n%s\n%.*s\n%s", r->date, (int)scope.n, (char *)scope.p, hex);
	if (text.failed || !derive_key(key, day, k)) {
		out->failed = true;
		goto out;
	}
	vv_sha256_hmac(k, sizeof(k), text.p, text.n, digest);
	vv_sha256_hex(digest, hex);

	vv_buf_printf(out, "AWS4-HMAC-SHA256 Credential=%s/%.*s,SignedHeaders=", key->access, (int)scope.n,
		      (char *)scope.p);
	add_names(out, v, n);
	vv_buf_printf(out, ",Signature=%s", hex);
out:
	vv_buf_fini(&scope);
	vv_buf_fini(&text);
}
