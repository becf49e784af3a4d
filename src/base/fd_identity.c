#include "base/fd_identity.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/own_fds.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

struct vv_fd_identity vv_fd_identity_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? (struct vv_fd_identity){ st.st_dev, st.st_ino } : (struct vv_fd_identity){ 0 };
}

struct vv_fd_identity vv_fd_identity_named(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 ? (struct vv_fd_identity){ st.st_dev, st.st_ino } : (struct vv_fd_identity){ 0 };
}

/* Asks for the file's identity only: for more, a network file system writes out its cached data
 * first. */
static bool look(int fd, struct vv_fd_identity *out)
{
	struct statx sx;
	struct stat st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &sx) == 0) {
		*out = (struct vv_fd_identity){ makedev(sx.stx_dev_major, sx.stx_dev_minor), (ino_t)sx.stx_ino };
		return true;
	}
	if (errno == EBADF || fstat(fd, &st) < 0)
		return false;
	*out = (struct vv_fd_identity){ st.st_dev, st.st_ino };
	return true;
}

bool vv_fd_identity_fits(const struct vv_fd_identity *s, int fd)
{
	struct vv_fd_identity now;

	return (s->dev || s->ino) && fd >= 0 && look(fd, &now) && now.dev == s->dev && now.ino == s->ino;
}

int vv_fd_identity_check(const struct vv_fd_identity *s, int fd, const char *what)
{
	return vv_fd_identity_fits(s, fd) ? 0 : vv_fd_identity_err(EBADF, "cannot %s", what);
}

int vv_fd_identity_err(int errnum, const char *format, ...)
{
	char words[768];
	va_list args;

	va_start(args, format);
	vsnprintf(words, sizeof(words), format, args);
	va_end(args);
	if (errnum != EBADF)
		return vv_err_sys(errnum, "%s", words);
	return vv_err_set(VV_EIO, "%s: the program has closed a descriptor that is varve's, or put a file of its own in its place; let it close only what it has "
			  "opened itself, or run it by 'varve run', where varve's stay open", words);
}

void vv_fd_identity_close(const struct vv_fd_identity *s, int fd)
{
	if (vv_fd_identity_fits(s, fd))
		vv_own_fds_close(fd);
}

/* ---- a file system for one file -------------------------------------------------------------- */

/* A thread is usually preempted at the end of a system call. So a check that took long may be
 * outdated and is repeated. */
static bool is_ours(const struct vv_fd_identity *s, int fd)
{
	enum { LOOKS = 4, QUICK_NS = 10000 };
	uint64_t start;
	bool ours;

	for (int i = 0; i < LOOKS; i++) {
		start = vv_clock_ns();
		ours = vv_fd_identity_fits(s, fd);
		if (!ours || vv_clock_ns() - start < QUICK_NS)
			break;
	}
	return ours;
}

/* The underlying file system, if the descriptor is still varve's. */
static const struct vv_fs *under(const struct vv_fs *fs, int fd)
{
	const struct vv_fd_identity_fs *g = (const struct vv_fd_identity_fs *)fs;

	if (is_ours(&g->stamp, fd))
		return g->under;
	errno = EBADF;
	return NULL;
}

static int guard_close(const struct vv_fs *fs, int fd)
{
	const struct vv_fs *u = under(fs, fd);

	return u ? u->close(u, fd) : -1;
}

static ssize_t guard_pwritev(const struct vv_fs *fs, int fd, const struct iovec *iov, int n, off_t off)
{
	const struct vv_fs *u = under(fs, fd);

	return u ? u->pwritev(u, fd, iov, n, off) : -1;
}

static ssize_t guard_pread(const struct vv_fs *fs, int fd, void *p, size_t n, off_t off)
{
	const struct vv_fs *u = under(fs, fd);

	return u ? u->pread(u, fd, p, n, off) : -1;
}

static int guard_allocate(const struct vv_fs *fs, int fd, off_t off, off_t len)
{
	const struct vv_fs *u = under(fs, fd);

	return u ? u->allocate(u, fd, off, len) : -1;
}

static int guard_start_writeback(const struct vv_fs *fs, int fd, off_t off, off_t len)
{
	const struct vv_fs *u = under(fs, fd);

	return u ? u->start_writeback(u, fd, off, len) : -1;
}

static int guard_direct(const struct vv_fs *fs, int fd, bool on)
{
	const struct vv_fs *u = under(fs, fd);

	return u ? u->direct(u, fd, on) : -1;
}

static int guard_punch(const struct vv_fs *fs, int fd, off_t off, off_t len)
{
	const struct vv_fs *u = under(fs, fd);

	return u ? u->punch(u, fd, off, len) : -1;
}

static int guard_truncate(const struct vv_fs *fs, int fd, off_t len)
{
	const struct vv_fs *u = under(fs, fd);

	return u ? u->truncate(u, fd, len) : -1;
}

static int guard_fsync(const struct vv_fs *fs, int fd)
{
	const struct vv_fs *u = under(fs, fd);

	return u ? u->fsync(u, fd) : -1;
}

void vv_fd_identity_guard(struct vv_fd_identity_fs *out, const struct vv_fs *under_it, const struct vv_fd_identity *stamp)
{
	*out = (struct vv_fd_identity_fs){
		.fs = {
			.close = guard_close,
			.pwritev = guard_pwritev,
			.pread = guard_pread,
			.allocate = guard_allocate,
			.start_writeback = guard_start_writeback,
			.direct = guard_direct,
			.punch = guard_punch,
			.truncate = guard_truncate,
			.fsync = guard_fsync,
		},
		.under = under_it,
		.stamp = *stamp,
	};
}
