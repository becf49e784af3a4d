/* A check that a lock is held, for functions with the comment "under the lock". It is compiled only
 * with VARVE_CHECK_LOCKS (CMakeLists.txt). It detects that some thread holds the lock, not which
 * one.
 *
 * Functions whose lock is no mutex have no VV_HELD; tests/meta/test_locks.py lists them. The table
 * of track/protected_range.h has none either: each of its callers has a lock of its own. */
#ifndef VV_BASE_HELD_H
#define VV_BASE_HELD_H

#ifdef VARVE_CHECK_LOCKS
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define VV_HELD(lock) vv_held_check((lock), #lock, __func__)

static inline void vv_held_check(pthread_mutex_t *lock, const char *name, const char *function)
{
	if (pthread_mutex_trylock(lock) == EBUSY)
		return;
	fprintf(stderr, "varve: %s was called without the lock %s\n", function, name);
	abort();
}
#else
#define VV_HELD(lock) ((void)0)
#endif

#endif
