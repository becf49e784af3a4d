/* A file system that knows what a loss of power would leave of it. Calls go to a real folder; beside it a model keeps what
 * is durable: a file's content as of its last fsync, a folder's entries as of the last fsync of the folder. Everything
 * since is pending, and any part of it may survive or not. There is one per process, for any number of threads. */
#ifndef VV_TEST_POWERFS_H
#define VV_TEST_POWERFS_H

#include "base/fs.h"

enum power_loss {
	POWER_NOTHING, /* nothing survives that was not made durable */
	POWER_NAMES,   /* all changes of folders survive, but of content no more than was made durable */
	POWER_HALVES,  /* the same, and half of what was written since */
	POWER_RANDOM   /* any part of the changes of folders, and any part of the content, by seed */
};

const struct vv_fs *powerfs(void);
/* Begins with `base`, a folder that is there, durable and empty. */
void powerfs_start(const char *base);
/* Called before every call that changes something below base, on whatever thread that is; NULL = nothing is. */
void powerfs_watch(void (*before)(void *arg), void *arg);
/* The n-th call from now on, and all after it, fail: the process is gone, the machine is not. 0: calls work again. */
void powerfs_die(long n);
/* Only the n-th call from now on fails. */
void powerfs_fail(long n);
/* Has it come to that? */
int powerfs_died(void);
/* A number that stands for what would survive. */
uint64_t powerfs_hash(enum power_loss loss, uint64_t seed);
/* Lays it down in the folder `to`. */
void powerfs_survivors(enum power_loss loss, uint64_t seed, const char *to);

#endif
