/* At most one file is freed in steps at a time. A program that removes files faster frees the
 * earlier one completely first, so the disk never holds much more than without steps. If the
 * process dies, the kernel frees the rest.
 *
 * A file that a reader has open is not cut. Its space is freed when the reader closes it. */
#include "store/dir/dir_cut.h"
#include "base/held.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t step = 64 << 20; /* bytes */

void vv_dir_cut_set_step(uint64_t bytes)
{
	step = bytes;
}

void vv_dir_cut_init(struct vv_dir *d)
{
	pthread_mutex_init(&d->cut.lock, NULL);
	d->cut.fd = -1;
}

void vv_dir_cut_fini(struct vv_dir *d)
{
	if (d->pid != getpid()) {
		if (d->cut.fd >= 0)
			d->cut.own.fs.close(&d->cut.own.fs, d->cut.fd);
		return;
	}
	while (vv_dir_cut_step(d))
		;
	pthread_mutex_destroy(&d->cut.lock);
}

/* The kernel grants such a lease only if no other descriptor or mapping of the file exists, and if
 * the file system has leases. If a process opens the file meanwhile, the signal is an ignored
 * one. */
bool vv_dir_cut_is_only_ours(int fd)
{
	return fcntl(fd, F_SETSIG, SIGURG) == 0 && fcntl(fd, F_SETLEASE, F_WRLCK) == 0 && fcntl(fd, F_SETLEASE, F_UNLCK) == 0;
}

int vv_dir_cut_open(struct vv_dir *d, const char *path)
{
	int saved = errno, fd = -1;
	struct stat st;

	if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 && (uint64_t)st.st_size > step)
		fd = d->fs->open(d->fs, path, O_WRONLY | O_NOFOLLOW, 0);
	errno = saved;
	return fd;
}

/* Under the lock. */
static void shorten(struct vv_dir_cut *c)
{
	VV_HELD(&c->lock);
	c->size -= c->size < step ? c->size : step;
	if (c->own.fs.truncate(&c->own.fs, c->fd, (off_t)c->size) == 0 && c->size)
		return;
	c->own.fs.close(&c->own.fs, c->fd);
	c->fd = -1;
}

void vv_dir_cut_close(struct vv_dir *d, int fd, bool gone)
{
	struct vv_dir_cut *c = &d->cut;
	int saved = errno;
	struct stat st;

	if (fd < 0)
		return;
	if (!gone || fstat(fd, &st) < 0 || st.st_nlink || !vv_dir_cut_is_only_ours(fd)) {
		d->fs->close(d->fs, fd);
		errno = saved;
		return;
	}
	pthread_mutex_lock(&c->lock);
	while (c->fd >= 0)
		shorten(c);
	c->fd = fd;
	c->size = (uint64_t)st.st_size;
	vv_dir_guard(d, &st, &c->own);
	pthread_mutex_unlock(&c->lock);
	errno = saved;
}

int vv_dir_cut_unlink(struct vv_dir *d, const char *path)
{
	int fd = vv_dir_cut_open(d, path), rc = d->fs->unlink(d->fs, path);

	vv_dir_cut_close(d, fd, rc == 0);
	return rc;
}

bool vv_dir_cut_step(struct vv_dir *d)
{
	bool any;

	pthread_mutex_lock(&d->cut.lock);
	any = d->cut.fd >= 0;
	if (any)
		shorten(&d->cut);
	pthread_mutex_unlock(&d->cut.lock);
	return any;
}
