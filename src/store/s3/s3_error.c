/* One line per failure: the request, the message of the server or the network, and advice if there
 * is any. */
#include "store/s3/s3_error.h"
#include "base/err.h"
#include "store/s3/s3_xml.h"
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *code;
	int err; /* 0: by the status */
	const char *hint;
} known[] = {
	{ "SignatureDoesNotMatch", 0, "check AWS_SECRET_ACCESS_KEY" },
	{ "InvalidAccessKeyId", 0, "check AWS_ACCESS_KEY_ID" },
	{ "AccessDenied", 0, "these credentials are not allowed to do this" },
	{ "ExpiredToken", VV_EDENIED, "AWS_SESSION_TOKEN has expired" },
	{ "InvalidToken", VV_EDENIED, "check AWS_SESSION_TOKEN" },
	{ "RequestTimeTooSkewed", 0, "the clock of this machine is wrong; set it, by NTP for example" },
	{ "RequestExpired", 0, "the clock of this machine is wrong; set it, by NTP for example" },
	{ "EntityTooSmall", 0, "the server wants larger parts: raise the part size" },
	{ "EntityTooLarge", 0, "the server wants smaller parts: lower the part size" },
	{ "NoSuchKey", 0, "no such object" },
	{ "NoSuchUpload", 0, "the upload was aborted, by another or by a rule of the bucket" },
	{ "QuotaExceeded", VV_ENOSPC, NULL },
	{ "XMinioStorageFull", VV_ENOSPC, NULL },
};

/* The server's text goes into messages and onto terminals: plain ASCII only. */
static void replace_controls(char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || (unsigned char)*s >= 0x7f)
			*s = '?';
}

static int take_field(void *ctx, const char *path, const char *text)
{
	struct vv_s3_answer *a = ctx;

	if (text && strcmp(path, "Error/Code") == 0)
		snprintf(a->code, sizeof(a->code), "%s", text);
	else if (text && strcmp(path, "Error/Message") == 0)
		snprintf(a->message, sizeof(a->message), "%s", text);
	else if (text && strcmp(path, "Error/Region") == 0 && !a->region[0])
		snprintf(a->region, sizeof(a->region), "%s", text);
	return 0;
}

void vv_s3_error_read(struct vv_s3_answer *a)
{
	/* of an invalid body, the fields before the error */
	vv_s3_xml_walk(a->body.p, a->body.n, take_field, a);
	replace_controls(a->code);
	replace_controls(a->message);
	replace_controls(a->region);
}

static int code_of_status(int status)
{
	switch (status) {
	case 401:
	case 403:
		return VV_EDENIED;
	case 404:
		return VV_ENOENT;
	case 507:
		return VV_ENOSPC;
	default:
		return VV_EIO;
	}
}

static void hint_at(const struct vv_s3_conf *c, const struct vv_s3_answer *a, const char *hint, char *out, size_t cap)
{
	out[0] = '\0';
	if (strcmp(a->code, "NoSuchBucket") == 0)
		snprintf(out, cap, " (bucket '%s' does not exist at %s; create it first)", c->bucket, c->endpoint);
	else if (a->region[0] && strcmp(a->region, c->region) != 0)
		snprintf(out, cap, " (the bucket is in region %s, asked was %s)", a->region, c->region);
	else if (a->status >= 300 && a->status < 400)
		snprintf(out, cap, " (%s redirects to another place; give that one as the endpoint)", c->endpoint);
	else if (hint)
		snprintf(out, cap, " (%s)", hint);
	else if (a->message[0])
		snprintf(out, cap, ": %s", a->message);
}

static int word_status(const struct vv_s3_conf *c, const struct vv_s3_request *r, const struct vv_s3_answer *a,
		       const char *tries)
{
	int err = code_of_status(a->status);
	const char *hint = NULL;
	char advice[512];

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(a->code, known[i].code) != 0)
			continue;
		hint = known[i].hint;
		err = known[i].err ? known[i].err : err;
	}
	if (!a->code[0] && a->status == 404)
		hint = "no such object";
	if (!a->code[0] && a->status == 403)
		hint = "these credentials are not allowed to do this, or are wrong";
	hint_at(c, a, hint, advice, sizeof(advice));
	return vv_err_set(err, "s3: %s %s/%s: %d%s%s%s%s", r->method, c->bucket, r->key, a->status,
			  a->code[0] ? " " : "", a->code, advice, tries);
}

int vv_s3_error_word(const struct vv_s3_conf *c, const struct vv_s3_request *r, const struct vv_s3_answer *a)
{
	char tries[32] = "";

	if (a->tries > 1)
		snprintf(tries, sizeof(tries), " after %u tries", a->tries);
	if (a->too_much)
		return vv_err_set(VV_EIO, "s3: %s %s/%s: %s sends more than was asked for", r->method, c->bucket,
				  r->key, c->endpoint);
	if (a->curl == CURLE_OK)
		return word_status(c, r, a, tries);
	if (a->curl == CURLE_COULDNT_CONNECT && a->os_error == ECONNREFUSED)
		return vv_err_set(VV_EIO, "s3: %s %s/%s: connection refused at %s%s", r->method, c->bucket, r->key,
				  c->endpoint, tries);
	return vv_err_set(VV_EIO, "s3: %s %s/%s: %s, at %s%s", r->method, c->bucket, r->key, a->words, c->endpoint,
			  tries);
}
