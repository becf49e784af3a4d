#include "engine/files/compare.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/read/read_many.h"
#include "engine/read/holes.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEP = 256 << 10 };

struct compare_comparison {
	const struct vv_unpack_file *file;
	const int *fd;
	atomic_bool *differs, *read; /* per file; read: completely */
	const struct vv_progress *progress;
	atomic_uint_least64_t done;
	uint64_t total;
	pthread_mutex_t lock;
	struct vv_err_state error; /* of the store */
};

static bool read_all(int fd, uint8_t *to, size_t n, uint64_t at)
{
	while (n > 0) {
		ssize_t got = pread(fd, to, n, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		to += got;
		at += (uint64_t)got;
		n -= (size_t)got;
	}
	return true;
}

static bool is_hole(int fd, uint64_t at, uint64_t n)
{
	off_t data = lseek(fd, (off_t)at, SEEK_DATA);

	return data < 0 ? errno == ENXIO : (uint64_t)data >= at + n;
}

/* p: the expected bytes; NULL: zeros. */
static bool equals(int fd, uint64_t at, const uint8_t *p, uint64_t n)
{
	size_t most = n < STEP ? (size_t)n : STEP;
	uint8_t *step, *zeros;
	bool same;

	if (!p && is_hole(fd, at, n))
		return true;
	step = vv_mem_new(most, 1);
	zeros = p ? NULL : vv_mem_new(most, 1);
	same = step && (p || zeros);
	for (uint64_t done = 0, len; same && done < n; done += len) {
		len = n - done < STEP ? n - done : STEP;
		same = read_all(fd, step, (size_t)len, at + done) && memcmp(step, p ? p + done : zeros, (size_t)len) == 0;
	}
	vv_mem_free(step);
	vv_mem_free(zeros);
	return same;
}

static bool wants(void *arg, size_t i)
{
	return !atomic_load(&((struct compare_comparison *)arg)->differs[i]);
}

static void there(void *arg, size_t i, uint64_t at, const struct iovec *v, int n)
{
	struct compare_comparison *c = arg;
	uint64_t sum = 0;

	for (int k = 0; k < n; k++) {
		if (wants(c, i) && !equals(c->fd[i], at + sum, v[k].iov_base, v[k].iov_len))
			atomic_store(&c->differs[i], true);
		sum += v[k].iov_len;
	}
	vv_progress_report(c->progress, atomic_fetch_add(&c->done, sum) + sum, c->total);
}

static void on_error(void *arg, size_t i, int rc)
{
	struct compare_comparison *c = arg;

	pthread_mutex_lock(&c->lock);
	if (!c->error.code)
		vv_err_save(rc, &c->error);
	pthread_mutex_unlock(&c->lock);
	atomic_store(&c->differs[i], true);
}

static void on_complete(void *arg, size_t i)
{
	atomic_store(&((struct compare_comparison *)arg)->read[i], true);
}

static bool has_length(int fd, uint64_t len)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (uint64_t)st.st_size == len;
}

/* Compares the zeros of the epoch, which are not read from the store. */
static bool zeros_match(int fd, const struct vv_runs *r)
{
	bool same = true;

	for (size_t i = 0; same && i < r->n; i++)
		if (r->v[i].layer == 0 && r->v[i].len >= VV_HOLES_HOLE)
			same = equals(fd, r->v[i].at, NULL, r->v[i].len);
	return same;
}

static void compare_outside(void *arg, size_t i)
{
	struct compare_comparison *c = arg;
	const struct vv_run_table_region *r = c->file[i].region;

	atomic_store(&c->differs[i], !has_length(c->fd[i], r->shape.len) || !zeros_match(c->fd[i], &r->runs));
}

static int compare(const struct vv_unpack *u, struct vv_pool *pool, struct compare_comparison *c, const struct vv_runs **runs, size_t n)
{
	const struct vv_read_many to = { c, wants, there, on_error, on_complete, NULL };

	for (size_t i = 0; i < n; i++) {
		runs[i] = &c->file[i].region->runs;
		c->total += c->file[i].region->shape.len;
	}
	vv_pool_each(pool, n, compare_outside, c);
	return vv_read_many_read(u->lineage, pool, runs, n, &to);
}

int vv_compare_files(const struct vv_unpack *u, struct vv_pool *pool, const struct vv_unpack_file *file, const int *fd, bool *same, size_t n,
		  const struct vv_progress *progress)
{
	struct compare_comparison c = { .file = file, .fd = fd, .progress = progress, .lock = PTHREAD_MUTEX_INITIALIZER };
	const struct vv_runs **runs = vv_mem_new(n, sizeof(*runs));
	int rc;

	c.differs = vv_mem_new(n, sizeof(*c.differs));
	c.read = vv_mem_new(n, sizeof(*c.read));
	rc = runs && c.differs && c.read ? compare(u, pool, &c, runs, n) : VV_ENOMEM;
	for (size_t i = 0; rc == 0 && i < n; i++)
		same[i] = atomic_load(&c.read[i]) && !atomic_load(&c.differs[i]);
	vv_mem_free(runs);
	vv_mem_free(c.differs);
	vv_mem_free(c.read);
	return rc ? rc : vv_err_restore(&c.error);
}
