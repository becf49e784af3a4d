#include "support/faultfs.h"
#include "support/lazyfs.h"
#include "vv_test.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static struct {
	enum fault kind;
	long at, calls, replaced;
	bool fired;
	bool rest; /* FAULT_SHORT: half was written, the next write fails */
} state;

void faultfs_arm(enum fault kind, long n)
{
	state.kind = kind;
	state.at = n;
	state.calls = state.replaced = 0;
	state.fired = state.rest = false;
}

bool faultfs_fired(void)
{
	return state.fired;
}

long faultfs_replaced(void)
{
	return state.replaced;
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

static bool dead(void)
{
	return state.kind == FAULT_DEAD && state.fired;
}

/* Counts the call; true if it is the one. */
static bool hit(bool reads)
{
	if (dead())
		return true;
	if (state.kind == FAULT_NONE || reads != (state.kind == FAULT_READ) || ++state.calls != state.at)
		return false;
	if (state.kind == FAULT_KILL)
		raise(SIGKILL);
	state.fired = true;
	return true;
}

static int refuse(void)
{
	errno = faultfs_errno(state.kind);
	return -1;
}

static int fault_open(const struct vv_fs *fs, const char *path, int flags, mode_t mode)
{
	(void)fs;
	return hit(!(flags & O_CREAT)) ? refuse() : lazyfs()->open(lazyfs(), path, flags, mode);
}

static int fault_close(const struct vv_fs *fs, int fd)
{
	(void)fs;
	return lazyfs()->close(lazyfs(), fd);
}

/* The first half of the data; with `rubbish` the second half is written too, but wrong. */
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
	for (size_t i = total / 2; i < total; i++)
		p[i] ^= (uint8_t)(0x5a + i);
	rc = pwrite(fd, p, rubbish ? total : total / 2, off);
	free(p);
	return rc;
}

static ssize_t fault_pwritev(const struct vv_fs *fs, int fd, const struct iovec *iov, int n, off_t off)
{
	ssize_t half;

	(void)fs;
	if (state.rest) {
		state.rest = false;
		return refuse();
	}
	if (dead() || !hit(false))
		return dead() ? refuse() : lazyfs()->pwritev(lazyfs(), fd, iov, n, off);
	if (state.kind != FAULT_SHORT && state.kind != FAULT_TEAR)
		return refuse();
	half = write_half(fd, iov, n, off, state.kind == FAULT_TEAR);
	if (state.kind == FAULT_TEAR || half <= 0)
		return refuse();
	state.rest = true;
	return half;
}

static ssize_t fault_pread(const struct vv_fs *fs, int fd, void *p, size_t n, off_t off)
{
	(void)fs;
	return hit(true) ? refuse() : lazyfs()->pread(lazyfs(), fd, p, n, off);
}

static int fault_allocate(const struct vv_fs *fs, int fd, off_t off, off_t len)
{
	(void)fs;
	return hit(false) ? refuse() : lazyfs()->allocate(lazyfs(), fd, off, len);
}

static int fault_start_writeback(const struct vv_fs *fs, int fd, off_t off, off_t len)
{
	(void)fs;
	(void)fd;
	(void)off;
	(void)len;
	return dead() ? refuse() : 0;
}

static int fault_truncate(const struct vv_fs *fs, int fd, off_t len)
{
	(void)fs;
	return hit(false) ? refuse() : lazyfs()->truncate(lazyfs(), fd, len);
}

static int fault_fsync(const struct vv_fs *fs, int fd)
{
	(void)fs;
	return hit(false) ? refuse() : lazyfs()->fsync(lazyfs(), fd);
}

static int fault_rename(const struct vv_fs *fs, const char *from, const char *to)
{
	(void)fs;
	if (hit(false))
		return refuse();
	state.replaced += access(to, F_OK) == 0;
	return lazyfs()->rename(lazyfs(), from, to);
}

static int fault_unlink(const struct vv_fs *fs, const char *path)
{
	(void)fs;
	return hit(false) ? refuse() : lazyfs()->unlink(lazyfs(), path);
}

static int fault_mkdir(const struct vv_fs *fs, const char *path, mode_t mode)
{
	(void)fs;
	return hit(false) ? refuse() : lazyfs()->mkdir(lazyfs(), path, mode);
}

static int fault_rmdir(const struct vv_fs *fs, const char *path)
{
	(void)fs;
	return hit(false) ? refuse() : lazyfs()->rmdir(lazyfs(), path);
}

static int fault_fsync_dir(const struct vv_fs *fs, const char *path)
{
	(void)fs;
	return hit(false) ? refuse() : lazyfs()->fsync_dir(lazyfs(), path);
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
