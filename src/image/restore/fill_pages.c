#include "image/restore/fill_pages.h"
#include "base/err.h"
#include "base/mem.h"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { /* bytes that one thread loads at a time */
	LOAD_LEAST = 1 << 20,
	/* Several blocks: on a single block, two threads would wait for each other. */
	LOAD_MOST = 32 << 20,
	LOADS = 8,            /* per thread, if there are enough pages */
};

struct fill_pages_load { /* a range of a process's pages */
	const struct vv_missing_pages *memory;
	struct vv_page_span span;
};

struct loads {
	struct fill_pages_load *v;
	size_t n, cap;
	atomic_bool failed;
	pthread_mutex_t lock;
	struct vv_err_state error;
};

static int list_loads(const struct vv_missing_pages *m, unsigned width, struct loads *out)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), len = 0;

	for (size_t i = 0; i < m->left.n; i++)
		len += m->left.v[i].hi - m->left.v[i].lo;
	len = len / (LOADS * width) / page * page;
	len = len < LOAD_LEAST ? LOAD_LEAST : len < LOAD_MOST ? len : LOAD_MOST;
	for (size_t i = 0; i < m->left.n; i++) {
		const struct vv_page_span *x = &m->left.v[i];

		for (uint64_t lo = x->lo; lo < x->hi; lo += len) {
			struct vv_page_span part = { lo, x->hi - lo < len ? x->hi : lo + len, x->at + (lo - x->lo) };

			if (vv_mem_room(&out->v, out->n, &out->cap, sizeof(*out->v)) < 0)
				return VV_ENOMEM;
			out->v[out->n++] = (struct fill_pages_load){ m, part };
		}
	}
	return 0;
}

static void carry(void *arg, size_t i)
{
	struct loads *all = arg;
	const struct fill_pages_load *x = &all->v[i];
	uint64_t done = 0;
	bool gone = false;
	int rc = 0;

	for (uint64_t to = x->span.lo; rc == 0 && !gone && to < x->span.hi && !atomic_load(&all->failed); to += done)
		rc = vv_missing_pages_deliver(x->memory, to, x->span.at + (to - x->span.lo), x->span.hi - to, &done, &gone);
	if (!rc && !gone)
		return;
	if (!rc)
		rc = vv_err_set(VV_EIO, "process %d has ended before it was whole", (int)x->memory->pid);
	pthread_mutex_lock(&all->lock);
	if (!atomic_exchange(&all->failed, true))
		vv_err_save(rc, &all->error);
	pthread_mutex_unlock(&all->lock);
}

int vv_fill_pages_run(struct vv_missing_pages *m, size_t n, struct vv_pool *pool)
{
	struct loads all = { .lock = PTHREAD_MUTEX_INITIALIZER };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = m[i].uffd >= 0 ? list_loads(&m[i], vv_pool_width(pool), &all) : 0;
	if (rc == 0)
		vv_pool_each(pool, all.n, carry, &all);
	if (rc == 0 && atomic_load(&all.failed))
		rc = vv_err_restore(&all.error);
	for (size_t i = 0; rc == 0 && i < n; i++)
		vv_missing_pages_forget(&m[i]);
	vv_mem_free(all.v);
	return rc;
}
