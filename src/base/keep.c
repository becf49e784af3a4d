#include "base/keep.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MOST = 4096, PATIENCE = 1000 }; /* numbers above are as they would be without us */

static atomic_bool begun;
static _Atomic(uint64_t) kept[MOST / 64];
static atomic_int opening; /* so many threads have one that is not kept yet; */
static __thread bool opens; /* this is one of them */

static void forget(void)
{
	for (int i = 0; i < MOST / 64; i++)
		atomic_store(&kept[i], 0);
	atomic_store(&opening, 0);
}

void vv_keep_begin(void)
{
	if (!atomic_exchange(&begun, true))
		pthread_atfork(NULL, NULL, forget);
}

/* In the last quarter of what there may be. */
static int move_up(int fd)
{
	struct rlimit limit;
	int most = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < MOST ? (int)limit.rlim_cur : MOST;
	int up = fcntl(fd, F_DUPFD_CLOEXEC, most / 4 * 3);

	if (up < 0)
		return errno == EBADF ? -1 : fd; /* the program was quicker */
	close(fd);
	return up;
}

int vv_keep_fd(int fd)
{
	int saved = errno;

	if (fd < 0)
		return fd;
	fd = move_up(fd);
	if (fd >= 0 && fd < MOST && atomic_load(&begun))
		atomic_fetch_or(&kept[fd / 64], (uint64_t)1 << fd % 64);
	if (fd >= 0)
		errno = saved;
	return fd;
}

int vv_keep_open(const char *path, int flags, mode_t mode)
{
	int fd;

	atomic_fetch_add(&opening, 1);
	opens = true;
	fd = vv_keep_fd(open(path, flags, mode));
	opens = false;
	atomic_fetch_sub(&opening, 1);
	return fd;
}

int vv_keep_close(int fd)
{
	if (fd >= 0 && fd < MOST)
		atomic_fetch_and(&kept[fd / 64], ~((uint64_t)1 << fd % 64));
	return close(fd);
}

static bool has(int fd)
{
	return fd >= 0 && fd < MOST && atomic_load(&kept[fd / 64]) >> fd % 64 & 1;
}

/* Not for long: it may be a slow file system, and who closes something may have no time. */
static void let_open(void)
{
	for (int i = 0; i < PATIENCE && !opens && atomic_load(&opening); i++)
		sched_yield();
}

bool vv_keep_has(int fd)
{
	let_open();
	return has(fd);
}

int vv_keep_next(int fd)
{
	let_open();
	for (; fd < MOST; fd++)
		if (has(fd))
			return fd;
	return -1;
}
