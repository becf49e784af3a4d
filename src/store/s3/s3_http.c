/* libcurl, one handle per request in flight. A handle keeps its connection, so a small pool of
 * handles is a pool of connections. Every try is signed again, because a signature is valid for
 * some minutes only. */
#include "store/s3/s3_http.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/sha256.h"
#include "store/s3/s3_curl.h"
#include "store/s3/s3_error.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <time.h>

#define MAX_PAUSE_MS 5000
#define CONNECT_S 10L
#define SLOW_BYTES_PER_S 1024L
#define PATIENCE 10 /* times the usual stall limit */

int vv_s3_http_init(struct vv_s3_http *h, const struct vv_s3_conf *conf)
{
	int rc = vv_s3_curl_start();

	if (rc)
		return rc;
	*h = (struct vv_s3_http){ .conf = conf };
	pthread_mutex_init(&h->lock, NULL);
	return 0;
}

void vv_s3_http_fini(struct vv_s3_http *h)
{
	for (unsigned i = 0; i < h->n_idle; i++)
		vv_s3_curl.easy_cleanup(h->idle[i]);
	pthread_mutex_destroy(&h->lock);
}

static CURL *take_handle(struct vv_s3_http *h)
{
	CURL *c = NULL;

	pthread_mutex_lock(&h->lock);
	if (h->n_idle)
		c = h->idle[--h->n_idle];
	pthread_mutex_unlock(&h->lock);
	return c ? c : vv_s3_curl.easy_init();
}

static void give_handle(struct vv_s3_http *h, CURL *c)
{
	vv_s3_curl.easy_reset(c); /* resets the options and keeps the connections */
	pthread_mutex_lock(&h->lock);
	if (h->n_idle < VV_S3_HTTP_IDLE) {
		h->idle[h->n_idle++] = c;
		c = NULL;
	}
	pthread_mutex_unlock(&h->lock);
	if (c)
		vv_s3_curl.easy_cleanup(c);
}

/* All data of one try that must live until its end. */
struct attempt {
	const struct vv_s3_request *r;
	struct vv_s3_answer *a;
	CURL *curl;
	struct vv_buf url;
	struct curl_slist *headers;
	bool failed; /* out of memory for a header */
};

static void take_value(const char *line, size_t n, const char *name, char *out, size_t cap)
{
	size_t name_n = strlen(name);

	if (n <= name_n || strncasecmp(line, name, name_n) != 0 || line[name_n] != ':')
		return;
	line += name_n + 1;
	n -= name_n + 1;
	while (n && (*line == ' ' || *line == '\t')) {
		line++;
		n--;
	}
	while (n && (unsigned char)line[n - 1] <= ' ')
		n--;
	if (n < cap) { /* a value that does not fit is treated as absent */
		memcpy(out, line, n);
		out[n] = '\0';
	}
}

static size_t on_header(char *line, size_t size, size_t n, void *ctx)
{
	struct vv_s3_answer *a = ((struct attempt *)ctx)->a;

	take_value(line, size * n, "etag", a->etag, sizeof(a->etag));
	take_value(line, size * n, "content-range", a->range, sizeof(a->range));
	take_value(line, size * n, VV_S3_HTTP_NONCE, a->nonce, sizeof(a->nonce));
	take_value(line, size * n, "x-amz-bucket-region", a->region, sizeof(a->region));
	return size * n;
}

static size_t on_body(char *p, size_t size, size_t n, void *ctx)
{
	struct attempt *t = ctx;
	struct vv_s3_answer *a = t->a;
	long status = 0;

	n *= size;
	vv_s3_curl.easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
	if (t->r->into && status / 100 == 2) {
		a->too_much = n > t->r->into_n - a->got;
		if (!a->too_much) {
			memcpy((char *)t->r->into + a->got, p, n);
			a->got += n;
		}
	} else {
		a->too_much = n > VV_S3_HTTP_BODY - a->body.n;
		if (!a->too_much)
			vv_buf_add(&a->body, p, n);
	}
	return a->too_much || a->body.failed ? 0 : n;
}

static void add_header(struct attempt *t, const char *name, const char *value)
{
	struct vv_buf line = { 0 };
	struct curl_slist *longer = NULL;

	vv_buf_printf(&line, "%s:%s%s", name, *value ? " " : "", value);
	if (!line.failed)
		longer = vv_s3_curl.slist_append(t->headers, (char *)line.p);
	if (longer)
		t->headers = longer;
	else
		t->failed = true;
	vv_buf_fini(&line);
}

/* Builds the URL, the headers and the signature over both. */
static int sign(const struct vv_s3_conf *c, struct attempt *t, const char *payload_hash)
{
	const struct vv_s3_sign_key key = { c->access, c->secret, c->region, "s3" };
	struct vv_s3_sign_request s = { .method = t->r->method, .payload_hash = payload_hash };
	struct vv_s3_pair v[VV_S3_SIGN_PAIRS];
	struct vv_buf path = { 0 }, query = { 0 }, auth = { 0 };
	time_t now = time(NULL);
	struct tm tm;
	char date[32];
	size_t n = 0;

	strftime(date, sizeof(date), "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
	v[n++] = (struct vv_s3_pair){ "host", c->host };
	v[n++] = (struct vv_s3_pair){ "x-amz-content-sha256", payload_hash };
	v[n++] = (struct vv_s3_pair){ "x-amz-date", date };
	if (c->token)
		v[n++] = (struct vv_s3_pair){ "x-amz-security-token", c->token };
	for (size_t i = 0; i < t->r->n_headers; i++)
		v[n++] = t->r->headers[i];
	vv_buf_printf(&path, "%s", c->base);
	vv_s3_sign_encode(&path, t->r->key, true);
	vv_buf_add(&path, "", 1);
	vv_s3_sign_query(&query, t->r->query, t->r->n_query);
	vv_buf_add(&query, "", 1);
	if (!path.failed && !query.failed) {
		s.path = (char *)path.p;
		s.query = (char *)query.p;
		s.headers = v;
		s.n_headers = n;
		s.date = date;
		vv_s3_sign_authorization(&auth, &key, &s);
		vv_buf_add(&auth, "", 1);
		vv_buf_printf(&t->url, "%s%s%s%s", c->origin, s.path, *s.query ? "?" : "", s.query);
	}
	for (size_t i = 0; i < n; i++)
		add_header(t, v[i].name, v[i].value);
	if (!auth.failed && auth.p)
		add_header(t, "authorization", (char *)auth.p);
	t->failed = t->failed || path.failed || query.failed || auth.failed || t->url.failed;
	vv_buf_fini(&path);
	vv_buf_fini(&query);
	vv_buf_fini(&auth);
	return t->failed ? vv_err_set(VV_ENOMEM, "out of memory (a request to %s)", c->endpoint) : 0;
}

static void set_method(CURL *c, const struct vv_s3_request *r)
{
	bool sends = strcmp(r->method, "PUT") == 0 || strcmp(r->method, "POST") == 0;

	if (sends) {
		vv_s3_curl.easy_setopt(c, CURLOPT_POST, 1L);
		vv_s3_curl.easy_setopt(c, CURLOPT_POSTFIELDS, r->body_n ? r->body : "");
		vv_s3_curl.easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body_n);
		vv_s3_curl.easy_setopt(c, CURLOPT_UPLOAD_BUFFERSIZE, 512L << 10);
	}
	if (strcmp(r->method, "HEAD") == 0)
		vv_s3_curl.easy_setopt(c, CURLOPT_NOBODY, 1L);
	else
		vv_s3_curl.easy_setopt(c, CURLOPT_CUSTOMREQUEST, r->method);
}

static void set_options(const struct vv_s3_conf *conf, struct attempt *t)
{
	CURL *c = t->curl;

#if LIBCURL_VERSION_NUM >= 0x075500
	vv_s3_curl.easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	vv_s3_curl.easy_setopt(c, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
	set_method(c, t->r);
	vv_s3_curl.easy_setopt(c, CURLOPT_URL, (char *)t->url.p);
	vv_s3_curl.easy_setopt(c, CURLOPT_HTTPHEADER, t->headers);
	vv_s3_curl.easy_setopt(c, CURLOPT_PATH_AS_IS, 1L);
	vv_s3_curl.easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	vv_s3_curl.easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
	vv_s3_curl.easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	if (t->r->once) /* libcurl sends again if a connection that it reuses ends without an answer */
		vv_s3_curl.easy_setopt(c, CURLOPT_FRESH_CONNECT, 1L);
	vv_s3_curl.easy_setopt(c, CURLOPT_CONNECTTIMEOUT, CONNECT_S);
	vv_s3_curl.easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, t->r->patient ? 1L : SLOW_BYTES_PER_S);
	vv_s3_curl.easy_setopt(c, CURLOPT_LOW_SPEED_TIME, (long)conf->stall_s * (t->r->patient ? PATIENCE : 1));
	vv_s3_curl.easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
	vv_s3_curl.easy_setopt(c, CURLOPT_HEADERDATA, t);
	vv_s3_curl.easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
	vv_s3_curl.easy_setopt(c, CURLOPT_WRITEDATA, t);
	vv_s3_curl.easy_setopt(c, CURLOPT_BUFFERSIZE, 256L << 10);
	vv_s3_curl.easy_setopt(c, CURLOPT_ERRORBUFFER, t->a->words);
	if (conf->ca_bundle)
		vv_s3_curl.easy_setopt(c, CURLOPT_CAINFO, conf->ca_bundle);
}

/* A server that disconnects must not end the application: without signals, curl's TLS writes can
 * raise SIGPIPE. */
static CURLcode perform_quietly(CURL *c)
{
	const struct timespec now = { 0 };
	sigset_t pipe, before, pending;
	bool was_pending;
	CURLcode rc;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigpending(&pending);
	was_pending = sigismember(&pending, SIGPIPE) == 1;
	pthread_sigmask(SIG_BLOCK, &pipe, &before);
	rc = vv_s3_curl.easy_perform(c);
	if (!was_pending)
		sigtimedwait(&pipe, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

static void perform(struct attempt *t)
{
	struct vv_s3_answer *a = t->a;
	curl_off_t length = -1;
	long status = 0, os_error = 0;

	a->curl = (int)perform_quietly(t->curl);
	vv_s3_curl.easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
	vv_s3_curl.easy_getinfo(t->curl, CURLINFO_OS_ERRNO, &os_error);
	vv_s3_curl.easy_getinfo(t->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
	a->status = a->curl == CURLE_OK ? (int)status : 0;
	a->os_error = (int)os_error;
	a->length = length;
	if (a->curl != CURLE_OK && !a->words[0])
		snprintf(a->words, sizeof(a->words), "%s", vv_s3_curl.easy_strerror((CURLcode)a->curl));
	if (a->curl == CURLE_OK && (a->status / 100 != 2 || t->r->may_fail))
		vv_s3_error_read(a);
}

static int try_once(struct vv_s3_http *h, const struct vv_s3_request *r, const char *payload_hash,
		    struct vv_s3_answer *a)
{
	struct attempt t = { .r = r, .a = a, .curl = take_handle(h) };
	int rc;

	if (!t.curl)
		return vv_err_set(VV_ENOMEM, "out of memory (no handle from libcurl)");
	rc = sign(h->conf, &t, payload_hash);
	/* Prevents a content type made up by curl, and a wait of a second for "100 Continue". */
	add_header(&t, "expect", "");
	add_header(&t, "content-type", "");
	if (rc == 0 && t.failed)
		rc = vv_err_set(VV_ENOMEM, "out of memory (a request to %s)", h->conf->endpoint);
	if (rc == 0) {
		set_options(h->conf, &t);
		perform(&t);
		if (a->body.failed)
			rc = vv_buf_check(&a->body);
	}
	give_handle(h, t.curl);
	vv_s3_curl.slist_free_all(t.headers);
	vv_buf_fini(&t.url);
	return rc;
}

static bool one_of(const char *word, const char *const *list)
{
	for (; *list; list++)
		if (strcmp(word, *list) == 0)
			return true;
	return false;
}

/* Failures of the network, and those that the server attributes to itself, may not recur. */
bool vv_s3_http_may_pass(const struct vv_s3_answer *a)
{
	static const char *const passing[] = { "SlowDown",           "RequestTimeout", "InternalError",
					       "ServiceUnavailable", "Throttling",     NULL };

	if (a->too_much)
		return false;
	switch (a->curl) {
	case CURLE_OK:
		break;
	case CURLE_COULDNT_CONNECT:
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
	case CURLE_GOT_NOTHING:
	case CURLE_PARTIAL_FILE:
	case CURLE_OPERATION_TIMEDOUT:
	case CURLE_SSL_CONNECT_ERROR:
		return true;
	default:
		return false;
	}
	return a->status == 429 || a->status == 500 || (a->status >= 502 && a->status <= 504) ||
	       one_of(a->code, passing);
}

/* Waits twice as long each time, half of it random, so that a thousand ranks do not return at
 * once. */
void vv_s3_http_pause(const struct vv_s3_conf *c, unsigned try)
{
	uint64_t ms = c->first_pause_ms;
	uint32_t chance = 0;

	for (unsigned i = 2; i < try && ms < MAX_PAUSE_MS; i++)
		ms *= 2;
	if (ms > MAX_PAUSE_MS)
		ms = MAX_PAUSE_MS;
	if (getrandom(&chance, sizeof(chance), GRND_NONBLOCK) < 0)
		chance = 0;
	vv_clock_sleep((double)ms * (0.5 + chance % 1024 / 2048.0) / 1e3);
}

static void forget(struct vv_s3_answer *a)
{
	struct vv_buf body = a->body;

	body.n = 0;
	*a = (struct vv_s3_answer){ .body = body };
}

int vv_s3_http_call(struct vv_s3_http *h, const struct vv_s3_request *r, struct vv_s3_answer *a)
{
	unsigned limit = 1 + (r->once ? 0 : h->conf->retries);
	uint8_t digest[VV_SHA256_BYTES];
	char hash[VV_SHA256_HEX];

	vv_sha256_of(r->body, r->body_n, digest);
	vv_sha256_hex(digest, hash);
	for (unsigned try = 1;; try++) {
		int rc;

		if (try > 1)
			vv_s3_http_pause(h->conf, try);
		forget(a);
		rc = try_once(h, r, hash, a);
		a->tries = try;
		if (rc < 0)
			return rc;
		if (try == limit || !vv_s3_http_may_pass(a))
			break;
	}
	if (a->curl == CURLE_OK && a->status / 100 == 2 && !(r->may_fail && a->code[0]))
		return 0;
	return vv_s3_error_word(h->conf, r, a);
}

void vv_s3_http_done(struct vv_s3_answer *a)
{
	vv_buf_fini(&a->body);
}
