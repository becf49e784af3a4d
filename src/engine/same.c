#include "engine/same.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/abreast.h"
#include "engine/sparse.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEP = 256 << 10 };

struct comparison {
	const struct vv_unpack_file *file;
	const int *fd;
	atomic_bool *differs;
	const struct vv_progress *progress;
	atomic_uint_least64_t done;
	uint64_t total;
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

/* p: what should be there; NULL: zeros. */
static bool equals(int fd, uint64_t at, const uint8_t *p, uint64_t n)
{
	uint8_t *step = vv_mem_new(STEP, 1), *zeros = p ? NULL : vv_mem_new(STEP, 1);
	bool same = step && (p || zeros);

	for (uint64_t done = 0, len; same && done < n; done += len) {
		len = n - done < STEP ? n - done : STEP;
		same = read_all(fd, step, (size_t)len, at + done) && memcmp(step, p ? p + done : zeros, (size_t)len) == 0;
	}
	vv_mem_free(step);
	vv_mem_free(zeros);
	return same;
}

static int there(void *arg, size_t i, uint64_t at, const uint8_t *p, size_t n)
{
	struct comparison *c = arg;

	if (!atomic_load(&c->differs[i]) && !equals(c->fd[i], at, p, n))
		atomic_store(&c->differs[i], true);
	vv_progress_tell(c->progress, atomic_fetch_add(&c->done, n) + n, c->total);
	return 0;
}

/* Only by reading the store. */
static size_t lost(void *arg, size_t i, int rc)
{
	struct comparison *c = arg;

	if (!c->error.code)
		vv_err_save(rc, &c->error);
	atomic_store(&c->differs[i], true);
	return i;
}

static bool has_length(int fd, uint64_t len)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (uint64_t)st.st_size == len;
}

/* What is handed to nobody, because it need not be read. */
static bool zeros_match(int fd, const struct vv_runs *r)
{
	bool same = true;

	for (size_t i = 0; same && i < r->n; i++)
		if (r->v[i].layer == 0 && r->v[i].len >= VV_SPARSE_HOLE)
			same = equals(fd, r->v[i].at, NULL, r->v[i].len);
	return same;
}

static int compare_group(const struct vv_unpack *u, struct vv_pool *pool, struct comparison *c, size_t n)
{
	const struct vv_abreast to = { c, there, lost };
	const struct vv_runs *runs[VV_ABREAST_MOST];
	uint64_t len[VV_ABREAST_MOST];

	for (size_t i = 0; i < n; i++) {
		runs[i] = &c->file[i].region->runs;
		len[i] = c->file[i].region->shape.len;
		atomic_store(&c->differs[i], !has_length(c->fd[i], len[i]) || !zeros_match(c->fd[i], runs[i]));
	}
	return vv_abreast_read(u->lineage, pool, runs, len, n, &to);
}

int vv_same_files(const struct vv_unpack *u, struct vv_pool *pool, const struct vv_unpack_file *file, const int *fd, bool *same, size_t n,
		  const struct vv_progress *progress)
{
	atomic_bool differs[VV_ABREAST_MOST];
	struct comparison c = { .differs = differs, .progress = progress };
	int rc = 0;

	for (size_t i = 0; i < n; i++)
		c.total += file[i].region->shape.len;
	for (size_t i = 0, k; rc == 0 && i < n; i += k) {
		k = n - i < VV_ABREAST_MOST ? n - i : VV_ABREAST_MOST;
		c.file = file + i;
		c.fd = fd + i;
		rc = compare_group(u, pool, &c, k);
		for (size_t j = 0; rc == 0 && j < k; j++)
			same[i + j] = !atomic_load(&differs[j]);
	}
	return rc ? rc : vv_err_restore(&c.error);
}
