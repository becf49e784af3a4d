/* Many regions read side by side, block after block: each stored block that any of them needs is read and decoded once, and what it holds of each
 * is handed over, from where it was decoded to. (The same variable of many files lies in the same blocks.) */
#ifndef VV_ENGINE_READ_READ_MANY_H
#define VV_ENGINE_READ_READ_MANY_H

#include "base/pool.h"
#include "engine/lineage/catalog.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/uio.h>

enum { VV_READ_MANY_PARTS = 64 }; /* handed over at a time */

/* All come from any thread, and for several regions at once. */
struct vv_read_many {
	void *arg;
	/* Is anything of region i still wanted? */
	bool (*is_wanted)(void *arg, size_t i);
	/* The bytes of region i from `at` on are in v[0..n-1], n <= VV_READ_MANY_PARTS. In any order. Long runs of zeros (holes.h) are left out. */
	void (*on_bytes)(void *arg, size_t i, uint64_t at, const struct iovec *v, int n);
	/* Region i cannot be read: the thread's message says why. At most once for each, and then it is not whole. */
	void (*on_error)(void *arg, size_t i, int rc);
	/* All of region i was handed over. */
	void (*on_complete)(void *arg, size_t i);
	atomic_uint_least64_t *blocks; /* may be NULL; counts how many are read */
};

/* How many files may be open while regions are read, so that enough descriptors are left for layers: at least one, at most `most`. */
size_t vv_read_many_files(size_t most, size_t descriptors_each);

/* Regions i = 0 .. n-1. An error is one of memory, or of no region alone; those that are lost are none. */
int vv_read_many_read(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_runs *const *runs, size_t n, const struct vv_read_many *to);

#endif
