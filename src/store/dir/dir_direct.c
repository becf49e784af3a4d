/* A ring of buffers: the caller fills one while the threads of a pool write the others. A disk
 * needs several writes in progress to reach its rate. The threads start with the first full
 * buffer, so a small file costs none. Aligned bytes that stay as they are need no buffer: the
 * threads write them from where they lie.
 *
 * Measured on ext4 with two cores: four buffers of 1 MiB reach the rate of sixteen, and one buffer
 * reaches 0.6 of it. With sixteen cores, eight threads that write aligned bytes are a tenth faster
 * than four, so more than four threads get two buffers each. */
#include "store/dir/dir_direct.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/pool.h"
#include "store/backend/backend.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { THREADS = 4, THREADS_MOST = 8, BUFFERS_MOST = 2 * THREADS_MOST };

/* Bytes that are not aligned, of a descriptor that reads directly. */
static int read_unaligned(const struct vv_fs *fs, int fd, void *to, size_t n, uint64_t off)
{
	size_t before = (size_t)(off % VV_DIR_DIRECT_UNIT), all = (before + n + VV_DIR_DIRECT_UNIT - 1) / VV_DIR_DIRECT_UNIT * VV_DIR_DIRECT_UNIT;
	uint8_t *room = vv_mem_map_wide(all);
	int rc, why;

	if (!room) {
		vv_err_clear();
		errno = ENOMEM;
		return -1;
	}
	rc = vv_fs_read_least(fs, fd, room, before + n, all, (off_t)(off - before));
	why = errno;
	if (rc == 0)
		memcpy(to, room + before, n);
	vv_mem_unmap(room, all);
	errno = why;
	return rc;
}

/* A file system may accept the flag and refuse the read, or refuse to read into this memory. Then
 * the bytes take the page cache. */
int vv_dir_direct_read(const struct vv_fs *fs, int fd, void *to, size_t n, uint64_t off)
{
	int rc = vv_fs_read_all(fs, fd, to, n, (off_t)off);

	if (rc < 0 && errno == EINVAL)
		rc = read_unaligned(fs, fd, to, n, off);
	if (rc < 0 && (errno == EINVAL || errno == EFAULT || errno == ENOMEM) && fs->direct(fs, fd, false) == 0)
		rc = vv_fs_read_all(fs, fd, to, n, (off_t)off);
	return rc;
}

static size_t usual_room = 1 << 20; /* bytes of a buffer */

void vv_dir_direct_set_room(size_t bytes)
{
	usual_room = bytes;
}

struct buffer {
	struct vv_task task;
	struct vv_dir_direct *owner;
	uint8_t *bytes;
	size_t n;
	uint64_t at; /* its offset in the file */
	bool in_progress;
};

struct vv_dir_direct {
	const struct vv_fs *fs;
	int fd;
	struct vv_pool *pool; /* NULL: no buffer has been full yet */
	uint8_t *memory;
	size_t room;          /* bytes of a buffer */
	struct buffer ring[BUFFERS_MOST];
	size_t buffers;
	size_t filling;
	uint64_t end;     /* bytes appended */
	atomic_int error; /* the errno of the first failed write; 0: none */
	pthread_mutex_t lock;
	pthread_cond_t ended;
	size_t n_submitted; /* under the lock: in progress */
};

static unsigned count_threads(void)
{
	unsigned n = vv_pool_cores() / 2;

	return n < THREADS ? THREADS : n < THREADS_MOST ? n : THREADS_MOST;
}

struct vv_dir_direct *vv_dir_direct_new(const struct vv_fs *fs, int fd)
{
	struct vv_dir_direct *d;

	if (fs->direct(fs, fd, true) < 0)
		return NULL;
	d = vv_mem_new(1, sizeof(*d));
	if (d) {
		d->room = usual_room;
		d->buffers = count_threads() > THREADS ? 2 * count_threads() : THREADS;
		d->memory = vv_mem_map(d->buffers * d->room); /* most objects fill little of it */
	}
	if (!d || !d->memory) {
		fs->direct(fs, fd, false);
		vv_mem_free(d);
		vv_err_clear();
		return NULL;
	}
	d->fs = fs;
	d->fd = fd;
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->ended, NULL);
	for (size_t i = 0; i < d->buffers; i++)
		d->ring[i] = (struct buffer){ .owner = d, .bytes = d->memory + i * d->room };
	return d;
}

/* A file system may accept the flag and refuse the write, or refuse to write from this memory. Then
 * the bytes take the page cache. */
static void write_or_note(struct vv_dir_direct *d, const struct iovec *iov, int n, uint64_t at)
{
	int rc = vv_fs_write_list(d->fs, d->fd, iov, n, (off_t)at), none = 0;

	if (rc < 0 && (errno == EINVAL || errno == EFAULT) && d->fs->direct(d->fs, d->fd, false) == 0)
		rc = vv_fs_write_list(d->fs, d->fd, iov, n, (off_t)at);
	if (rc < 0)
		atomic_compare_exchange_strong(&d->error, &none, errno);
}

static void write_buffer(struct vv_task *t)
{
	struct buffer *b = (struct buffer *)t;

	write_or_note(b->owner, &(struct iovec){ b->bytes, b->n }, 1, b->at);
}

static int result(struct vv_dir_direct *d)
{
	errno = atomic_load(&d->error);
	return errno ? -1 : 0;
}

static void await(struct vv_dir_direct *d, struct buffer *b)
{
	if (b->in_progress)
		vv_pool_wait(d->pool, &b->task);
	b->in_progress = false;
}

static int start_threads(struct vv_dir_direct *d)
{
	if (d->pool || vv_pool_new(count_threads(), &d->pool) == 0)
		return 0;
	errno = ENOMEM;
	return -1;
}

/* Starts to write the buffer, and waits until the next one is free. */
static int send(struct vv_dir_direct *d)
{
	struct buffer *b = &d->ring[d->filling], *next;

	if (start_threads(d) < 0)
		return -1;
	b->task.run = write_buffer;
	b->at = d->end - b->n;
	b->in_progress = true;
	vv_pool_submit(d->pool, &b->task);
	d->filling = (d->filling + 1) % d->buffers;
	next = &d->ring[d->filling];
	await(d, next);
	next->n = 0;
	return result(d);
}

static int append(struct vv_dir_direct *d, const uint8_t *p, size_t n)
{
	while (n) {
		struct buffer *b = &d->ring[d->filling];
		size_t take = n < d->room - b->n ? n : d->room - b->n;

		memcpy(b->bytes + b->n, p, take);
		b->n += take;
		d->end += take;
		p += take;
		n -= take;
		if (b->n == d->room && send(d) < 0)
			return -1;
	}
	return 0;
}

static void write_submitted(struct vv_task *t)
{
	struct vv_pending_write *w = (struct vv_pending_write *)(void *)((char *)t - offsetof(struct vv_pending_write, task));
	struct vv_dir_direct *d = w->owner;

	write_or_note(d, w->iov, w->n, w->at);
	vv_backend_write_ended(w);
	pthread_mutex_lock(&d->lock);
	d->n_submitted--;
	pthread_cond_signal(&d->ended);
	pthread_mutex_unlock(&d->lock);
}

int vv_dir_direct_submit(struct vv_dir_direct *d, const struct iovec *iov, int n, struct vv_pending_write *w)
{
	if (result(d) < 0 || start_threads(d) < 0 || (d->ring[d->filling].n && send(d) < 0))
		return -1;
	w->owner = d;
	w->iov = iov;
	w->n = n;
	w->at = d->end;
	w->task.run = write_submitted;
	for (int i = 0; i < n; i++)
		d->end += iov[i].iov_len;
	pthread_mutex_lock(&d->lock);
	d->n_submitted++;
	pthread_mutex_unlock(&d->lock);
	vv_pool_leave(d->pool, &w->task);
	return 0;
}

static void await_submitted(struct vv_dir_direct *d)
{
	pthread_mutex_lock(&d->lock);
	while (d->n_submitted)
		pthread_cond_wait(&d->ended, &d->lock);
	pthread_mutex_unlock(&d->lock);
}

int vv_dir_direct_write(struct vv_dir_direct *d, const struct iovec *iov, int n)
{
	for (int i = 0; i < n; i++)
		if (append(d, iov[i].iov_base, iov[i].iov_len) < 0)
			return -1;
	return 0;
}

/* The last bytes do not fill a sector, so they take the page cache. */
int vv_dir_direct_finish(struct vv_dir_direct *d)
{
	struct buffer *b = &d->ring[d->filling];
	size_t whole = b->n / VV_DIR_DIRECT_UNIT * VV_DIR_DIRECT_UNIT, rest = b->n - whole;

	if (whole) {
		b->at = d->end - b->n;
		b->n = whole;
		write_buffer(&b->task);
	}
	for (size_t i = 0; i < d->buffers; i++)
		await(d, &d->ring[i]);
	await_submitted(d);
	if (result(d) < 0)
		return -1;
	if (d->fs->direct(d->fs, d->fd, false) < 0)
		return -1;
	return rest ? vv_fs_write_list(d->fs, d->fd, &(struct iovec){ b->bytes + whole, rest }, 1, (off_t)(d->end - rest)) : 0;
}

void vv_dir_direct_free(struct vv_dir_direct *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->buffers; i++)
		await(d, &d->ring[i]);
	await_submitted(d);
	vv_pool_free(d->pool);
	pthread_cond_destroy(&d->ended);
	pthread_mutex_destroy(&d->lock);
	vv_mem_unmap(d->memory, d->buffers * d->room);
	vv_mem_free(d);
}
