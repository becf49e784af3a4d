/* Writes objects. An object that fits in one part is one PUT; a larger one is a multipart upload.
 * Its parts are sent in the background, two at a time, while the next one fills. The object appears
 * complete when the upload is completed. */
#include "store/s3/s3_put.h"
#include "base/block_signals.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/s3/s3.h"
#include "store/s3/s3_priv.h"
#include "store/s3/s3_xml.h"
#include <stdio.h>
#include <string.h>

#define SLOTS 3 /* one fills while two are sent */
#define MAX_PARTS 10000
/* parts; then the part size doubles, so that 10000 parts reach any size that S3 accepts */
#define GROW_EVERY 1000
#define ETAG sizeof(((struct vv_s3_answer *)0)->etag)

struct s3_put;

/* A part, from its first byte to its ETag. */
struct s3_put_part {
	struct s3_put *put;
	struct vv_buf data;
	unsigned number; /* from 1 */
	pthread_t thread;
	bool travels;
	struct vv_err_state outcome;
};

struct s3_put {
	struct vv_put base;
	char *key;
	char *upload; /* id; NULL while the object may still be a single PUT */
	char nonce[VV_S3_NONCE];
	uint64_t size_hint;
	uint64_t taken; /* bytes accepted so far */
	uint64_t part_bytes;
	struct s3_put_part slots[SLOTS];
	unsigned parts;      /* parts sent so far; slots[parts % SLOTS] is being filled */
	char (*etags)[ETAG]; /* of each part, for the completion */
	struct vv_err_state failure;
};

static struct vv_s3 *store_of(const struct s3_put *p)
{
	return (struct vv_s3 *)p->base.store;
}

static void free_put(struct s3_put *p)
{
	for (int i = 0; i < SLOTS; i++)
		vv_buf_fini(&p->slots[i].data);
	vv_mem_free(p->base.name);
	vv_mem_free(p->key);
	vv_mem_free(p->upload);
	vv_mem_free(p->etags);
	vv_mem_free(p);
}

int vv_s3_put_open(struct vv_store *store, const char *name, uint64_t size_hint, struct vv_put **out)
{
	struct vv_s3 *s = (struct vv_s3 *)store;
	struct s3_put *p = vv_mem_new(1, sizeof(*p));
	uint64_t least = size_hint / (MAX_PARTS / 2) + 1; /* room for a hint that was too low */
	int rc = VV_ENOMEM;

	if (!p)
		return VV_ENOMEM;
	p->base.store = store;
	p->base.name = vv_mem_strdup(name);
	p->key = vv_s3_key(s, name);
	p->size_hint = size_hint;
	p->part_bytes = s->conf.part_bytes > least ? s->conf.part_bytes : least;
	for (int i = 0; i < SLOTS; i++)
		p->slots[i].put = p;
	if (p->base.name && p->key)
		rc = vv_s3_nonce(p->nonce);
	if (rc < 0)
		free_put(p);
	else
		*out = &p->base;
	return rc;
}

static int create_upload(struct s3_put *p)
{
	struct vv_s3 *s = store_of(p);
	struct vv_s3_request r = {
		.method = "POST",
		.key = p->key,
		.query = { { "uploads", "" } },
		.n_query = 1,
		.headers = { { VV_S3_HTTP_NONCE, p->nonce } },
		.n_headers = 1,
	};
	struct vv_s3_answer a = { 0 };
	char id[1024];
	int rc = vv_s3_http_call(&s->http, &r, &a);

	if (rc == 0)
		rc = vv_s3_xml_find(a.body.p, a.body.n, "InitiateMultipartUploadResult/UploadId", id, sizeof(id));
	if (rc == 0 || (rc == 1 && !id[0]))
		rc = vv_err_set(VV_EIO, "s3: POST %s/%s: the server begins an upload without naming it", s->conf.bucket,
				p->key);
	if (rc == 1) {
		p->upload = vv_mem_strdup(id);
		rc = p->upload ? 0 : VV_ENOMEM;
	}
	vv_s3_http_done(&a);
	return rc;
}

static int send_part(struct s3_put_part *part)
{
	struct s3_put *p = part->put;
	struct vv_s3 *s = store_of(p);
	char number[16];
	struct vv_s3_request r = {
		.method = "PUT",
		.key = p->key,
		.query = { { "partNumber", number }, { "uploadId", p->upload } },
		.n_query = 2,
		.body = part->data.p,
		.body_n = part->data.n,
	};
	struct vv_s3_answer a = { 0 };
	int rc;

	snprintf(number, sizeof(number), "%u", part->number);
	rc = vv_s3_http_call(&s->http, &r, &a);
	if (rc == 0 && (!a.etag[0] || strpbrk(a.etag, "<>&")))
		rc = vv_err_set(VV_EIO, "s3: PUT %s/%s: no receipt (ETag) for part %u", s->conf.bucket, p->key,
				part->number);
	/* each part has its own element, and the array does not move while parts are sent */
	if (rc == 0)
		memcpy(p->etags[part->number - 1], a.etag, ETAG);
	else
		vv_err_context(rc, "part %u", part->number);
	vv_s3_http_done(&a);
	return rc;
}

static void *carry(void *arg)
{
	struct s3_put_part *part = arg;

	vv_err_save(send_part(part), &part->outcome);
	return NULL;
}

/* Waits for the slot's transfer; the first failure of the put is kept. */
static int await(struct s3_put *p, struct s3_put_part *part)
{
	if (part->travels) {
		pthread_join(part->thread, NULL);
		part->travels = false;
		part->data.n = 0;
		if (part->outcome.code < 0 && p->failure.code == 0)
			p->failure = part->outcome;
	}
	return p->failure.code < 0 ? vv_err_restore(&p->failure) : 0;
}

static int await_all(struct s3_put *p)
{
	for (int i = 0; i < SLOTS; i++)
		await(p, &p->slots[i]);
	return p->failure.code < 0 ? vv_err_restore(&p->failure) : 0;
}

/* Makes room for the ETags of the next GROW_EVERY parts; no thread writes to the old ones
 * meanwhile. */
static int grow(struct s3_put *p)
{
	char(*etags)[ETAG];
	int rc = await_all(p);

	if (rc < 0)
		return rc;
	if (p->parts == MAX_PARTS)
		return vv_err_set(VV_EINVAL, "s3: PUT %s/%s: more than %d parts", store_of(p)->conf.bucket, p->key,
				  MAX_PARTS);
	etags = vv_mem_grow(p->etags, p->parts + GROW_EVERY, sizeof(*etags));
	if (!etags)
		return VV_ENOMEM;
	p->etags = etags;
	if (p->parts && p->taken >= p->size_hint)
		p->part_bytes *= 2;
	return 0;
}

/* The program's signals are for its own threads. Returns 0 or an errno. */
static int start_thread(struct s3_put_part *part)
{
	sigset_t before;
	int rc;

	vv_block_signals_brief(&before);
	rc = pthread_create(&part->thread, NULL, carry, part);
	vv_block_signals_end(&before);
	return rc;
}

/* Starts sending the slot being filled; then the next one is free. */
static int dispatch(struct s3_put *p)
{
	struct s3_put_part *part = &p->slots[p->parts % SLOTS];
	int rc = p->upload ? 0 : create_upload(p);

	if (rc == 0 && p->parts % GROW_EVERY == 0)
		rc = grow(p);
	if (rc < 0)
		return rc;
	part->number = ++p->parts;
	if (start_thread(part) == 0) {
		part->travels = true;
	} else { /* no thread available: send in this thread */
		rc = send_part(part);
		part->data.n = 0;
	}
	return rc < 0 ? rc : await(p, &p->slots[p->parts % SLOTS]);
}

static int append(struct s3_put *p, const char *from, size_t n)
{
	while (n) {
		struct s3_put_part *part = &p->slots[p->parts % SLOTS];
		size_t room = (size_t)p->part_bytes - part->data.n;
		size_t take = n < room ? n : room;
		int rc;

		if (room == 0) { /* full, and more bytes follow: now it is known to be a part */
			rc = dispatch(p);
			if (rc < 0)
				return rc;
			continue;
		}
		vv_buf_add(&part->data, from, take);
		rc = vv_buf_check(&part->data);
		if (rc < 0)
			return rc;
		p->taken += take;
		from += take;
		n -= take;
	}
	return 0;
}

int vv_s3_put_write(struct vv_put *put, const struct iovec *iov, int n)
{
	struct s3_put *p = (struct s3_put *)put;
	int rc = p->failure.code < 0 ? vv_err_restore(&p->failure) : 0;

	for (int i = 0; rc == 0 && i < n; i++)
		rc = append(p, iov[i].iov_base, iov[i].iov_len);
	if (rc < 0 && p->failure.code == 0)
		vv_err_save(rc, &p->failure);
	return rc;
}

static int put_whole(struct s3_put *p)
{
	struct vv_s3 *s = store_of(p);
	struct vv_s3_request r = {
		.method = "PUT",
		.key = p->key,
		.body = p->slots[0].data.p,
		.body_n = p->slots[0].data.n,
	};
	struct vv_s3_answer a = { 0 };
	int rc = vv_s3_http_call(&s->http, &r, &a);

	if (rc == 0 && !a.etag[0])
		rc = vv_err_set(VV_EIO, "s3: PUT %s/%s: %d, but no receipt (ETag) for the object", s->conf.bucket,
				p->key, a.status);
	vv_s3_http_done(&a);
	return rc;
}

/* A completion whose answer was lost looks like an upload that never existed. The object's own
 * nonce distinguishes the two. */
static bool completed_before(struct s3_put *p)
{
	struct vv_s3_request r = { .method = "HEAD", .key = p->key };
	struct vv_s3_answer a = { 0 };
	bool ours;

	ours = vv_s3_http_call(&store_of(p)->http, &r, &a) == 0 && strcmp(a.nonce, p->nonce) == 0;
	vv_s3_http_done(&a);
	return ours;
}

/* S3 may send its 200 before the object is complete. Only the result in the body says that it
 * is. */
static int read_completion(const struct s3_put *p, const struct vv_s3_answer *a)
{
	char etag[ETAG] = "";
	int rc = vv_s3_xml_find(a->body.p, a->body.n, "CompleteMultipartUploadResult/ETag", etag, sizeof(etag));

	if (rc == 0 || (rc == 1 && !etag[0]))
		rc = vv_err_set(VV_EIO, "s3: POST %s/%s: %d, but the server does not say that the object is complete",
				store_of(p)->conf.bucket, p->key, a->status);
	return rc < 0 ? rc : 0;
}

static int complete_upload(struct s3_put *p)
{
	struct vv_buf list = { 0 };
	struct vv_s3_request r = { .method = "POST", .key = p->key, .patient = true, .may_fail = true };
	struct vv_s3_answer a = { 0 };
	struct vv_err_state st;
	int rc;

	vv_buf_printf(&list, "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
	for (unsigned i = 0; i < p->parts; i++)
		vv_buf_printf(&list, "<Part><PartNumber>%u</PartNumber><ETag>%s</ETag></Part>", i + 1, p->etags[i]);
	vv_buf_printf(&list, "</CompleteMultipartUpload>");
	rc = vv_buf_check(&list);
	if (rc == 0) {
		r.query[r.n_query++] = (struct vv_s3_pair){ "uploadId", p->upload };
		r.body = list.p;
		r.body_n = list.n;
		rc = vv_s3_http_call(&store_of(p)->http, &r, &a);
		if (rc == 0)
			rc = read_completion(p, &a);
	}
	if (rc < 0 && (a.status == 0 || a.status / 100 == 2 || a.tries > 1)) {
		vv_err_save(rc, &st);
		rc = completed_before(p) ? 0 : vv_err_restore(&st);
	}
	vv_s3_http_done(&a);
	vv_buf_fini(&list);
	return rc;
}

/* A failure is not reported: the sweep finds an abandoned upload. */
static void abort_upload(struct s3_put *p)
{
	struct vv_s3_request r = { .method = "DELETE", .key = p->key, .n_query = 1, .once = true };
	struct vv_s3_answer a = { 0 };
	struct vv_err_state st;

	if (!p->upload)
		return;
	vv_err_save(0, &st);
	r.query[0] = (struct vv_s3_pair){ "uploadId", p->upload };
	vv_s3_http_call(&store_of(p)->http, &r, &a);
	vv_s3_http_done(&a);
	vv_err_restore(&st);
}

int vv_s3_put_commit(struct vv_put *put)
{
	struct s3_put *p = (struct s3_put *)put;
	int rc = p->failure.code;

	if (rc == 0 && !p->upload) {
		rc = put_whole(p);
	} else {
		if (rc == 0 && p->slots[p->parts % SLOTS].data.n)
			rc = dispatch(p);
		if (rc < 0 && p->failure.code == 0)
			vv_err_save(rc, &p->failure);
		rc = await_all(p);
		if (rc == 0)
			rc = complete_upload(p);
		if (rc < 0)
			abort_upload(p);
	}
	free_put(p);
	return rc;
}

void vv_s3_put_abort(struct vv_put *put)
{
	struct s3_put *p = (struct s3_put *)put;
	struct vv_err_state st;

	vv_err_save(0, &st); /* keeps the error that made the caller abort */
	await_all(p);
	abort_upload(p);
	vv_err_restore(&st);
	free_put(p);
}
