/* The common part of all stores: backend by URL, pacing, measuring, small objects, sorted lists. */
#include "store/store.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/backend/throughput.h"
#include "store/dir/dir.h"
#include "store/dir/shm.h"
#include "store/ram/ram.h"
#include "vv_config.h"
#if VV_HAVE_CURL
#include "store/s3/s3.h"
#endif
#include <stdlib.h>
#include <string.h>

enum {
	READS_EACH = 8, /* reads in progress for each thread that processes their data */
	READS_MOST = 32,
};

static const struct {
	const char *prefix;
	int (*open)(const char *url, const struct vv_store_options *opt, struct vv_store **out);
} backends[] = {
	{ "dir:", vv_dir_open },
	{ "mem:", vv_ram_open },
	{ "ram:", vv_shm_open },
#if VV_HAVE_CURL
	{ "s3://", vv_s3_open },
#endif
};

int vv_store_open(const char *url, const struct vv_store_options *opt, struct vv_store **out)
{
	size_t scheme = strcspn(url, ":/");

	if (!url[0])
		return vv_err_set(VV_EINVAL, "no store given (a path, dir:PATH, ram:NAME, mem:NAME or s3://BUCKET/PREFIX)");
	for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++)
		if (strncmp(url, backends[i].prefix, strlen(backends[i].prefix)) == 0)
			return backends[i].open(url, opt, out);
	if (strncmp(url, "s3://", 5) == 0)
		return vv_err_set(VV_ENOTSUP, "store '%s': this varve was built without libcurl, so without S3", url);
	/* a folder of such a name is ./s3:.. */
	if (strncmp(url, "s3:", 3) == 0 || strncmp(url + scheme, "://", 3) == 0)
		return vv_err_set(VV_EINVAL, "store '%s': unknown kind (a path, dir:PATH, ram:NAME, mem:NAME or s3://BUCKET/PREFIX)",
				  url);
	return vv_dir_open(url, opt, out);
}

void vv_store_attach(struct vv_store *s, struct vv_store_attachment *attachment)
{
	pthread_mutex_lock(&s->pace_lock);
	attachment->next = s->attachments;
	s->attachments = attachment;
	pthread_mutex_unlock(&s->pace_lock);
}

void vv_store_close(struct vv_store *s)
{
	if (s)
		s->ops->close(s);
}

static size_t without_slashes(const char *url)
{
	size_t n = strlen(url);

	while (n && url[n - 1] == '/')
		n--;
	return n;
}

bool vv_store_is_same(const struct vv_store *a, const struct vv_store *b)
{
	if (!a || !b || a->is_remote != b->is_remote)
		return false;
	if (a->inode && b->inode)
		return a->device == b->device && a->inode == b->inode;
	return without_slashes(a->url) == without_slashes(b->url) && strncmp(a->url, b->url, without_slashes(a->url)) == 0;
}

int vv_store_put_open(struct vv_store *s, const char *name, uint64_t size_hint, struct vv_put **out)
{
	return s->ops->put_open(s, name, size_hint, out);
}

/* Sleeps until the limit allows n more bytes: each write is accounted before the next may start. A
 * sleep ends late by more than the duration of a small write. This loss may be made up for while it
 * is below PACE_CREDIT. Debts below PACE_DEBT are not worth a sleep. */
static void pace(struct vv_store *s, size_t n)
{
	static const double PACE_CREDIT = 5e-3, PACE_DEBT = 5e-4;
	double now, wait;

	if (!s->bandwidth)
		return;
	pthread_mutex_lock(&s->pace_lock);
	now = vv_clock_s();
	if (s->pace_free_at < now - PACE_CREDIT)
		s->pace_free_at = now;
	s->pace_free_at += (double)n / (double)s->bandwidth;
	wait = s->pace_free_at - now;
	pthread_mutex_unlock(&s->pace_lock);
	if (wait > PACE_DEBT)
		vv_clock_sleep(wait);
}

static size_t bytes_of(const struct iovec *iov, int n)
{
	size_t bytes = 0;

	for (int i = 0; i < n; i++)
		bytes += iov[i].iov_len;
	return bytes;
}

int vv_store_put_write(struct vv_put *p, const struct iovec *iov, int n)
{
	struct vv_store *s = p->store;
	double start = vv_clock_s();
	size_t bytes = bytes_of(iov, n);
	int rc = s->ops->put_write(p, iov, n);

	if (rc)
		return rc;
	p->written += bytes;
	pace(s, bytes);
	vv_throughput_add(s, bytes, start);
	return 0;
}

static bool is_multiple(const struct vv_put *p, const struct iovec *iov, int n)
{
	uintptr_t all = (uintptr_t)p->written;

	for (int i = 0; i < n; i++)
		all |= (uintptr_t)iov[i].iov_base | iov[i].iov_len;
	return p->unit && all % p->unit == 0;
}

int vv_store_put_submit(struct vv_put *p, const struct iovec *iov, int n, struct vv_pending_write *w)
{
	struct vv_store *s = p->store;
	size_t bytes = bytes_of(iov, n);
	int rc;

	if (s->bandwidth || !is_multiple(p, iov, n)) {
		rc = vv_store_put_write(p, iov, n);
		if (rc == 0)
			w->done(w);
		return rc;
	}
	w->store = s;
	w->bytes = bytes;
	vv_throughput_begin(s);
	rc = s->ops->put_submit(p, iov, n, w);
	if (rc)
		vv_throughput_end(s, 0);
	else
		p->written += bytes;
	return rc;
}

/* The time to make the object durable is part of the cost of the sink. */
int vv_store_put_commit(struct vv_put *p)
{
	struct vv_store *s = p->store;
	double start = vv_clock_s();
	int rc = s->ops->put_commit(p);

	vv_throughput_add(s, 0, start);
	return rc;
}

void vv_store_put_abort(struct vv_put *p)
{
	if (p)
		p->store->ops->put_abort(p);
}

int vv_store_put(struct vv_store *s, const char *name, const void *p, size_t n)
{
	union {
		const void *in;
		void *out;
	} bytes = { .in = p };
	struct iovec iov = { bytes.out, n };
	struct vv_put *put = NULL;
	int rc = vv_store_put_open(s, name, n, &put);

	if (rc)
		return rc;
	rc = vv_store_put_write(put, &iov, 1);
	if (rc) {
		vv_store_put_abort(put);
		return rc;
	}
	return vv_store_put_commit(put);
}

int vv_store_get_open(struct vv_store *s, const char *name, struct vv_get **out)
{
	return s->ops->get_open(s, name, out);
}

int vv_store_get_read(struct vv_get *g, uint64_t off, void *to, size_t n)
{
	if (off > g->size || n > g->size - off)
		return vv_err_set(VV_EDAMAGED, "'%s/%s': wanted bytes %llu..%llu of %llu", g->store->url, g->name,
				  (unsigned long long)off, (unsigned long long)(off + n),
				  (unsigned long long)g->size);
	if (n == 0)
		return 0;
	return g->store->ops->get_read(g, off, to, n);
}

void vv_store_get_map(struct vv_get *g)
{
	if (g->maps && !g->map)
		g->store->ops->get_map(g);
}

bool vv_store_get_direct(struct vv_get *g)
{
	if (!g->unit && g->store->ops->get_direct)
		g->store->ops->get_direct(g);
	return g->unit;
}

/* The bytes after the last whole unit of the object are read alone. */
int vv_store_get_around(struct vv_get *g, uint64_t off, size_t n, uint8_t *room, uint8_t **out)
{
	size_t unit = g->unit ? g->unit : 1, before = (size_t)(off % unit), all = (before + n + unit - 1) / unit * unit;
	uint8_t *aligned = room + (-(uintptr_t)room) % unit;

	*out = aligned + before;
	if (off - before + all > g->size)
		return vv_store_get_read(g, off, *out, n);
	return vv_store_get_read(g, off - before, aligned, all);
}

int vv_store_get_check(struct vv_get *g)
{
	return g->store->ops->get_check ? g->store->ops->get_check(g) : 0;
}

void vv_store_get_advise(struct vv_get *g, enum vv_store_advice how, uint64_t off, uint64_t n)
{
	if (g->store->ops->get_advise)
		g->store->ops->get_advise(g, how, off, n);
}

void vv_store_each(const struct vv_store *s, struct vv_pool *pool, bool scattered, size_t n, void (*fn)(void *arg, size_t i), void *arg)
{
	unsigned threads = vv_pool_width(pool) * READS_EACH;

	if (s->is_remote || scattered)
		vv_pool_each_deep(pool, threads < READS_MOST ? threads : READS_MOST, n, fn, arg);
	else
		vv_pool_each(pool, n, fn, arg);
}

void vv_store_get_close(struct vv_get *g)
{
	if (g)
		g->store->ops->get_close(g);
}

int vv_store_get(struct vv_store *s, const char *name, size_t max, uint8_t **out, size_t *n)
{
	struct vv_get *g = NULL;
	uint8_t *p = NULL;
	int rc = vv_store_get_open(s, name, &g);

	if (rc)
		return rc;
	if (g->size > max) {
		rc = vv_err_set(VV_EDAMAGED, "'%s/%s': %llu bytes, at most %zu are possible", s->url, name,
				(unsigned long long)g->size, max);
		goto out;
	}
	p = vv_mem_new((size_t)g->size + 1, 1);
	rc = p ? vv_store_get_read(g, 0, p, (size_t)g->size) : VV_ENOMEM;
	if (rc)
		goto out;
	*out = p;
	*n = (size_t)g->size;
	p = NULL;
out:
	vv_mem_free(p);
	vv_store_get_close(g);
	return rc;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct vv_name *)a)->name, ((const struct vv_name *)b)->name);
}

int vv_store_list(struct vv_store *s, const char *dir, struct vv_names *out)
{
	struct vv_names v = { 0 };
	int rc = s->ops->list(s, dir, &v);

	if (rc) {
		vv_names_fini(&v);
		return rc;
	}
	if (v.n)
		qsort(v.v, v.n, sizeof(*v.v), by_name);
	*out = v;
	return 0;
}

/* Foreign objects may lie deeper; they are not counted. */
static int add_listed(struct vv_store *s, const char *dir, int depth, uint64_t *bytes)
{
	enum { DEEPEST = 4 };
	struct vv_names names = { 0 };
	int rc = vv_store_list(s, dir, &names);

	for (size_t i = 0; rc == 0 && i < names.n; i++) {
		char *below = names.v[i].is_dir && depth < DEEPEST ? vv_mem_printf("%s%s%s", dir, *dir ? "/" : "", names.v[i].name) : NULL;

		*bytes += names.v[i].size;
		if (names.v[i].is_dir && depth < DEEPEST)
			rc = below ? add_listed(s, below, depth + 1, bytes) : VV_ENOMEM;
		vv_mem_free(below);
	}
	vv_names_fini(&names);
	return rc;
}

int vv_store_usage(struct vv_store *s, const char *dir, uint64_t *bytes)
{
	*bytes = 0;
	return s->ops->usage ? s->ops->usage(s, dir, bytes) : add_listed(s, dir, 0, bytes);
}

int vv_store_remove(struct vv_store *s, const char *name)
{
	return s->ops->remove(s, name);
}

bool vv_store_free_step(struct vv_store *s)
{
	return s->ops->free_step && s->ops->free_step(s);
}

void vv_store_remove_dir(struct vv_store *s, const char *dir)
{
	if (s->ops->remove_dir)
		s->ops->remove_dir(s, dir);
}

int vv_store_unfinished(struct vv_store *s, const char *dir, struct vv_names *out)
{
	struct vv_names v = { 0 };
	int rc = s->ops->unfinished ? s->ops->unfinished(s, dir, &v) : 0;

	if (rc)
		vv_names_fini(&v);
	else
		*out = v;
	return rc;
}

int vv_store_holder(struct vv_store *s, const char *name, struct vv_lock_holder *out)
{
	*out = (struct vv_lock_holder){ 0 };
	return s->ops->locks.holder ? s->ops->locks.holder(s, name, out) : 0;
}

int vv_store_sweep(struct vv_store *s, const char *dir)
{
	return s->ops->sweep ? s->ops->sweep(s, dir) : 0;
}

static int no_bundles(const struct vv_store *s)
{
	return vv_err_set(VV_ENOTSUP, "store '%s': only a directory can hold several objects in one file; write them one by one",
			  s->url);
}

int vv_store_bundle_make(struct vv_store *s, const char *bundle, char token[VV_STORE_TOKEN])
{
	return s->ops->bundle.make ? s->ops->bundle.make(s, bundle, token) : no_bundles(s);
}

int vv_store_bundle_join(struct vv_store *s, const char *bundle, const char *token, uint64_t off, uint64_t room,
			 struct vv_put **out)
{
	return s->ops->bundle.join ? s->ops->bundle.join(s, bundle, token, off, room, out) : no_bundles(s);
}

int vv_store_bundle_seal(struct vv_store *s, const char *bundle, const char *token, const struct vv_member *m, size_t n)
{
	return s->ops->bundle.seal ? s->ops->bundle.seal(s, bundle, token, m, n) : no_bundles(s);
}

void vv_store_bundle_drop(struct vv_store *s, const char *bundle, const char *token)
{
	if (s->ops->bundle.drop)
		s->ops->bundle.drop(s, bundle, token);
}

int vv_store_lock(struct vv_store *s, const char *name, struct vv_lock **out)
{
	return s->ops->locks.take(s, name, out);
}

int vv_store_held(struct vv_lock *l)
{
	return l && l->store->ops->locks.held ? l->store->ops->locks.held(l) : 0;
}

void vv_store_unlock(struct vv_lock *l)
{
	if (l)
		l->store->ops->locks.release(l);
}
