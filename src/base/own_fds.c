#include "base/own_fds.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	MOST = 4096,   /* descriptors from this number on are not recorded */
	YIELDS = 1000, /* a waiting thread yields so often, then */
	SLEEPS = 200,  /* sleeps so often, 1 ms each */
};

static atomic_bool begun;
static _Atomic(uint64_t) kept[MOST / 64];
static atomic_int making;    /* threads that make a descriptor */
static __thread bool makes;  /* this thread is one of them */
static atomic_uint begins;   /* descriptors begun so far */
static atomic_uint in_vain;  /* value of `begins` when a thread last waited to the limit */
static atomic_int stopped;   /* threads that close descriptors */

static void forget(void)
{
	for (int i = 0; i < MOST / 64; i++)
		atomic_store(&kept[i], 0);
	atomic_store(&making, 0);
	atomic_store(&stopped, 0);
}

void vv_own_fds_begin(void)
{
	if (!atomic_exchange(&begun, true))
		pthread_atfork(NULL, NULL, forget);
}

/* Moves the descriptor to the last quarter of the allowed numbers. */
static int move_up(int fd)
{
	struct rlimit limit;
	int most = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < MOST ? (int)limit.rlim_cur : MOST;
	int up = fcntl(fd, F_DUPFD_CLOEXEC, most / 4 * 3);

	if (up < 0)
		return errno == EBADF ? -1 : fd; /* the program has closed it meanwhile */
	close(fd);
	return up;
}

/* Waits only briefly for threads that close descriptors: they may be slow, as a file system may
 * be. */
void vv_own_fds_make(void)
{
	for (int i = 0;; i++) {
		atomic_fetch_add(&making, 1);
		if (atomic_load(&stopped) <= 0 || i == YIELDS)
			break;
		atomic_fetch_sub(&making, 1);
		sched_yield();
	}
	makes = true;
	atomic_fetch_add(&begins, 1);
}

int vv_own_fds_made(int fd)
{
	int saved = errno;

	fd = fd < 0 ? fd : move_up(fd);
	if (fd >= 0 && fd < MOST && atomic_load(&begun))
		atomic_fetch_or(&kept[fd / 64], (uint64_t)1 << fd % 64);
	if (fd >= 0)
		errno = saved;
	makes = false;
	atomic_fetch_sub(&making, 1);
	return fd;
}

int vv_own_fds_open(const char *path, int flags, mode_t mode)
{
	vv_own_fds_make();
	return vv_own_fds_made(open(path, flags, mode));
}

int vv_own_fds_close(int fd)
{
	if (fd >= 0 && fd < MOST)
		atomic_fetch_and(&kept[fd / 64], ~((uint64_t)1 << fd % 64));
	return close(fd);
}

/* Not by nanosleep(3): a thread that is cancelled there would prevent all others from opening. */
static void wait_a_bit(int i)
{
	if (i < YIELDS)
		sched_yield();
	else
		syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

/* Waits briefly for threads that make a descriptor, and not twice for the same ones. A file system
 * may be slow, and the closing thread may have no time. */
void vv_own_fds_stop(void)
{
	int saved = errno, i;

	atomic_fetch_add(&stopped, 1);
	for (i = 0; i < YIELDS + SLEEPS && !makes && atomic_load(&making) > 0 && atomic_load(&in_vain) != atomic_load(&begins); i++)
		wait_a_bit(i);
	if (i == YIELDS + SLEEPS)
		atomic_store(&in_vain, atomic_load(&begins));
	errno = saved;
}

void vv_own_fds_go_on(void)
{
	atomic_fetch_sub(&stopped, 1);
}

bool vv_own_fds_has(int fd)
{
	return fd >= 0 && fd < MOST && atomic_load(&kept[fd / 64]) >> fd % 64 & 1;
}

int vv_own_fds_next(int fd)
{
	for (; fd < MOST; fd++)
		if (vv_own_fds_has(fd))
			return fd;
	return -1;
}
