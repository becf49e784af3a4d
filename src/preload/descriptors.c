/* Wrappers that keep the program from closing or replacing varve's descriptors. To the program
 * those numbers seem unused. */
#undef _FORTIFY_SOURCE
#pragma GCC visibility push(default) /* exports the functions of these headers */
#include <unistd.h>
#pragma GCC visibility pop

#include "base/own_fds.h"
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

enum call { CLOSE, CLOSE_RANGE, CLOSEFROM, DUP2, DUP3, CALLS };

static const char *const names[CALLS] = { "close", "close_range", "closefrom", "dup2", "dup3" };
static _Atomic(void *) found[CALLS];

static int missing(void)
{
	errno = ENOSYS;
	return -1;
}

static void *real(enum call c)
{
	void *f = atomic_load_explicit(&found[c], memory_order_relaxed);

	if (!f) {
		f = dlsym(RTLD_NEXT, names[c]);
		f = f ? f : (void *)missing;
		atomic_store_explicit(&found[c], f, memory_order_relaxed);
	}
	return f;
}

#define REAL(c, name) ((__typeof__(name) *)real(c))

/* All functions are found before main: dlsym must not run in a signal handler, where close may be
 * called. */
__attribute__((constructor(101))) static void find_all(void)
{
	for (enum call c = 0; c < CALLS; c++)
		real(c);
	vv_own_fds_begin();
}

static void go_on(void *none)
{
	(void)none;
	vv_own_fds_go_on();
}

static int refuse(int number)
{
	errno = number;
	return -1;
}

int close(int fd)
{
	int rc;

	vv_own_fds_stop();
	pthread_cleanup_push(go_on, NULL); /* the thread can be cancelled in close */
	rc = vv_own_fds_has(fd) ? refuse(EBADF) : REAL(CLOSE, close)(fd);
	pthread_cleanup_pop(1);
	return rc;
}

int dup2(int fd, int to)
{
	int rc;

	vv_own_fds_stop();
	rc = vv_own_fds_has(to) ? refuse(EBUSY) : REAL(DUP2, dup2)(fd, to);
	vv_own_fds_go_on();
	return rc;
}

int dup3(int fd, int to, int flags)
{
	int rc;

	vv_own_fds_stop();
	rc = vv_own_fds_has(to) ? refuse(EBUSY) : REAL(DUP3, dup3)(fd, to, flags);
	vv_own_fds_go_on();
	return rc;
}

#if __GLIBC_PREREQ(2, 34)
int close_range(unsigned first, unsigned last, int flags)
{
	int rc = 0;

	vv_own_fds_stop();
	for (int own; rc == 0 && first <= last && first <= INT_MAX && (own = vv_own_fds_next((int)first)) >= 0 && (unsigned)own <= last; first = (unsigned)own + 1)
		if ((unsigned)own > first)
			rc = REAL(CLOSE_RANGE, close_range)(first, (unsigned)own - 1, flags);
	if (rc == 0 && first <= last)
		rc = REAL(CLOSE_RANGE, close_range)(first, last, flags);
	vv_own_fds_go_on();
	return rc;
}

/* Calls the original closefrom if varve has no descriptor from `first` on. Returns whether it
 * did. */
static bool close_from(int first)
{
	bool all;

	vv_own_fds_stop();
	all = vv_own_fds_next(first < 0 ? 0 : first) < 0;
	if (all)
		REAL(CLOSEFROM, closefrom)(first);
	vv_own_fds_go_on();
	return all;
}

void closefrom(int first)
{
	/* The kernel lacks close_range. */
	if (!close_from(first) && close_range(first < 0 ? 0 : (unsigned)first, ~0u, 0) < 0)
		for (long fd = first, most = sysconf(_SC_OPEN_MAX); fd < most; fd++)
			close((int)fd);
}
#endif
