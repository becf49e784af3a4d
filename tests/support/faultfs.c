#include "support/faultfs.h"
#include "support/lazyfs.h"
#include "vv_test.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the caller's thread and the one that stores epochs */
static struct {
	enum fault kind;
	long at, calls, replaced;
	bool fired;
	int short_fd; /* FAULT_SHORT: half was written to it, the next write there fails; -1: none */
} state = { .short_fd = -1 };

void faultfs_arm(enum fault kind, long n)
{
	pthread_mutex_lock(&lock);
	state.kind = kind;
	state.at = n;
	state.calls = state.replaced = 0;
	state.fired = false;
	state.short_fd = -1;
	pthread_mutex_unlock(&lock);
}

bool faultfs_fired(void)
{
	bool fired;

	pthread_mutex_lock(&lock);
	fired = state.fired;
	pthread_mutex_unlock(&lock);
	return fired;
}

long faultfs_replaced(void)
{
	long replaced;

	pthread_mutex_lock(&lock);
	replaced = state.replaced;
	pthread_mutex_unlock(&lock);
	return replaced;
}

int faultfs_errno(enum fault kind)
{
	return kind == FAULT_ENOSPC || kind == FAULT_SHORT ? ENOSPC : EIO;
}

const char *faultfs_name(enum fault kind)
{
	static const char *const names[FAULT_KINDS] = { "none", "EIO", "ENOSPC", "short", "tear", "dead", "read", "kill" };

	return names[kind];
}

/* Counts the call; how it goes wrong if it is the one, else FAULT_NONE. */
static enum fault hit(bool reads)
{
	enum fault kind = FAULT_NONE;

	pthread_mutex_lock(&lock);
	if (state.kind == FAULT_DEAD && state.fired)
		kind = FAULT_DEAD;
	else if (state.kind != FAULT_NONE && reads == (state.kind == FAULT_READ) && ++state.calls == state.at)
		kind = state.kind;
	if (kind == FAULT_KILL)
		raise(SIGKILL);
	state.fired |= kind != FAULT_NONE;
	pthread_mutex_unlock(&lock);
	return kind;
}

static bool is_dead(void)
{
	bool dead;

	pthread_mutex_lock(&lock);
	dead = state.kind == FAULT_DEAD && state.fired;
	pthread_mutex_unlock(&lock);
	return dead;
}

/* The errno of a call that goes wrong; true if it does. */
static bool fails(enum fault kind)
{
	if (kind != FAULT_NONE)
		errno = faultfs_errno(kind);
	return kind != FAULT_NONE;
}

static int fault_open(const struct vv_fs *fs, const char *path, int flags, mode_t mode)
{
	(void)fs;
	return fails(hit(!(flags & O_CREAT))) ? -1 : lazyfs()->open(lazyfs(), path, flags, mode);
}

static int fault_close(const struct vv_fs *fs, int fd)
{
	(void)fs;
	return lazyfs()->close(lazyfs(), fd);
}

/* The first half of the data; with `rubbish` the second half is written too, but wrong: no byte is half of either. */
static ssize_t write_half(int fd, const struct iovec *iov, int n, off_t off, bool rubbish)
{
	size_t total = 0, at = 0;
	uint8_t *p;
	ssize_t rc;

	for (int i = 0; i < n; i++)
		total += iov[i].iov_len;
	p = malloc(total + 1);
	CHECK(p);
	for (int i = 0; i < n; at += iov[i++].iov_len)
		if (iov[i].iov_len)
			memcpy(p + at, iov[i].iov_base, iov[i].iov_len);
	for (size_t i = (total + 1) / 2; i < total; i++)
		p[i] ^= (uint8_t)(0x5a + i);
	rc = pwrite(fd, p, rubbish ? total : total / 2, off);
	free(p);
	return rc;
}

static void set_short(int fd)
{
	pthread_mutex_lock(&lock);
	state.short_fd = fd;
	pthread_mutex_unlock(&lock);
}

static bool take_short(int fd)
{
	bool is;

	pthread_mutex_lock(&lock);
	is = state.short_fd == fd;
	if (is)
		state.short_fd = -1;
	pthread_mutex_unlock(&lock);
	return is;
}

static ssize_t fault_pwritev(const struct vv_fs *fs, int fd, const struct iovec *iov, int n, off_t off)
{
	enum fault kind = take_short(fd) ? FAULT_ENOSPC : hit(false);
	ssize_t half = 0;

	(void)fs;
	if (kind == FAULT_NONE)
		return lazyfs()->pwritev(lazyfs(), fd, iov, n, off);
	if (kind == FAULT_SHORT || kind == FAULT_TEAR)
		half = write_half(fd, iov, n, off, kind == FAULT_TEAR);
	if (kind == FAULT_SHORT && half > 0) {
		set_short(fd);
		return half;
	}
	errno = faultfs_errno(kind);
	return -1;
}

static ssize_t fault_pread(const struct vv_fs *fs, int fd, void *p, size_t n, off_t off)
{
	(void)fs;
	return fails(hit(true)) ? -1 : lazyfs()->pread(lazyfs(), fd, p, n, off);
}

static int fault_allocate(const struct vv_fs *fs, int fd, off_t off, off_t len)
{
	(void)fs;
	return fails(hit(false)) ? -1 : lazyfs()->allocate(lazyfs(), fd, off, len);
}

static int fault_start_writeback(const struct vv_fs *fs, int fd, off_t off, off_t len)
{
	(void)fs;
	(void)fd;
	(void)off;
	(void)len;
	return fails(is_dead() ? FAULT_DEAD : FAULT_NONE) ? -1 : 0;
}

/* Pretends to succeed: the underlying writes take the page cache. */
static int fault_direct(const struct vv_fs *fs, int fd, bool on)
{
	(void)fs;
	(void)fd;
	(void)on;
	return fails(is_dead() ? FAULT_DEAD : FAULT_NONE) ? -1 : 0;
}

static int fault_punch(const struct vv_fs *fs, int fd, off_t off, off_t len)
{
	(void)fs;
	return fails(hit(false)) ? -1 : lazyfs()->punch(lazyfs(), fd, off, len);
}

static int fault_truncate(const struct vv_fs *fs, int fd, off_t len)
{
	(void)fs;
	return fails(hit(false)) ? -1 : lazyfs()->truncate(lazyfs(), fd, len);
}

static int fault_fsync(const struct vv_fs *fs, int fd)
{
	(void)fs;
	return fails(hit(false)) ? -1 : lazyfs()->fsync(lazyfs(), fd);
}

static int fault_rename(const struct vv_fs *fs, const char *from, const char *to)
{
	(void)fs;
	if (fails(hit(false)))
		return -1;
	if (access(to, F_OK) == 0) {
		pthread_mutex_lock(&lock);
		state.replaced++;
		pthread_mutex_unlock(&lock);
	}
	return lazyfs()->rename(lazyfs(), from, to);
}

static int fault_unlink(const struct vv_fs *fs, const char *path)
{
	(void)fs;
	return fails(hit(false)) ? -1 : lazyfs()->unlink(lazyfs(), path);
}

static int fault_mkdir(const struct vv_fs *fs, const char *path, mode_t mode)
{
	(void)fs;
	return fails(hit(false)) ? -1 : lazyfs()->mkdir(lazyfs(), path, mode);
}

static int fault_rmdir(const struct vv_fs *fs, const char *path)
{
	(void)fs;
	return fails(hit(false)) ? -1 : lazyfs()->rmdir(lazyfs(), path);
}

static int fault_fsync_dir(const struct vv_fs *fs, const char *path)
{
	(void)fs;
	return fails(hit(false)) ? -1 : lazyfs()->fsync_dir(lazyfs(), path);
}

const struct vv_fs *faultfs(void)
{
	static const struct vv_fs fs = {
		.open = fault_open,
		.close = fault_close,
		.pwritev = fault_pwritev,
		.pread = fault_pread,
		.allocate = fault_allocate,
		.start_writeback = fault_start_writeback,
		.direct = fault_direct,
		.punch = fault_punch,
		.truncate = fault_truncate,
		.fsync = fault_fsync,
		.rename = fault_rename,
		.unlink = fault_unlink,
		.mkdir = fault_mkdir,
		.rmdir = fault_rmdir,
		.fsync_dir = fault_fsync_dir,
	};

	return &fs;
}
