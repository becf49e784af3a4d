#include "support/gatefs.h"
#include "support/lazyfs.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static struct {
	bool shut;
	int error;
	long after; /* calls that pass before */
} gate[GATE_KINDS];
static unsigned held;

static void set(enum gate kind, bool shut, int error, long after)
{
	pthread_mutex_lock(&lock);
	gate[kind].shut = shut;
	gate[kind].error = error;
	gate[kind].after = after;
	pthread_cond_broadcast(&change);
	pthread_mutex_unlock(&lock);
}

void gatefs_pass(void)
{
	for (int k = 0; k < GATE_KINDS; k++)
		set((enum gate)k, false, 0, 0);
}

void gatefs_hold(enum gate kind)
{
	set(kind, true, 0, 0);
}

void gatefs_fail(enum gate kind, int error)
{
	set(kind, false, error, 0);
}

void gatefs_fail_at(enum gate kind, int error, long n)
{
	set(kind, false, error, n - 1);
}

void gatefs_await(void)
{
	pthread_mutex_lock(&lock);
	while (!held)
		pthread_cond_wait(&change, &lock);
	pthread_mutex_unlock(&lock);
}

/* 0, or -1 and errno. */
static int pass(enum gate kind)
{
	int error;

	pthread_mutex_lock(&lock);
	held++;
	while (gate[kind].shut) {
		pthread_cond_broadcast(&change);
		pthread_cond_wait(&change, &lock);
	}
	held--;
	error = gate[kind].error;
	if (error && gate[kind].after > 0) {
		gate[kind].after--;
		error = 0;
	}
	pthread_mutex_unlock(&lock);
	errno = error;
	return error ? -1 : 0;
}

static int gate_open(const struct vv_fs *fs, const char *path, int flags, mode_t mode)
{
	(void)fs;
	return flags & O_CREAT && pass(GATE_OPEN) ? -1 : lazyfs()->open(lazyfs(), path, flags, mode);
}

static ssize_t gate_pwritev(const struct vv_fs *fs, int fd, const struct iovec *iov, int n, off_t off)
{
	(void)fs;
	return pass(GATE_WRITE) ? -1 : lazyfs()->pwritev(lazyfs(), fd, iov, n, off);
}

static int gate_fsync(const struct vv_fs *fs, int fd)
{
	(void)fs;
	return pass(GATE_SYNC) ? -1 : lazyfs()->fsync(lazyfs(), fd);
}

static int gate_rename(const struct vv_fs *fs, const char *from, const char *to)
{
	(void)fs;
	return pass(GATE_RENAME) ? -1 : lazyfs()->rename(lazyfs(), from, to);
}

static int gate_fsync_dir(const struct vv_fs *fs, const char *path)
{
	(void)fs;
	return pass(GATE_SYNC_DIR) ? -1 : lazyfs()->fsync_dir(lazyfs(), path);
}

const struct vv_fs *gatefs(void)
{
	static struct vv_fs fs;

	if (!fs.open) {
		fs = *lazyfs();
		fs.open = gate_open;
		fs.pwritev = gate_pwritev;
		fs.fsync = gate_fsync;
		fs.rename = gate_rename;
		fs.fsync_dir = gate_fsync_dir;
	}
	return &fs;
}
