/* Reads many regions side by side, block after block. Each needed block is read and decoded once,
 * and its parts are delivered to each region from the decoded block. (The same variable of many
 * files is in the same blocks.) */
#ifndef VV_ENGINE_READ_READ_MANY_H
#define VV_ENGINE_READ_READ_MANY_H

#include "base/pool.h"
#include "engine/lineage/catalog.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/uio.h>

enum { VV_READ_MANY_PARTS = 64 }; /* delivered at a time */

/* All functions are called from any thread, and for several regions at once. */
struct vv_read_many {
	void *arg;
	/* Is any part of region i still wanted? */
	bool (*is_wanted)(void *arg, size_t i);
	/* The bytes of region i from `at` on are in v[0..n-1], n <= VV_READ_MANY_PARTS. In any
	 * order. Long runs of zeros (holes.h) are left out. */
	void (*on_bytes)(void *arg, size_t i, uint64_t at, const struct iovec *v, int n);
	/* Region i cannot be read: the thread's error message has the reason. Called at most once
	 * for each; the region is then incomplete. */
	void (*on_error)(void *arg, size_t i, int rc);
	/* All of region i was delivered. */
	void (*on_complete)(void *arg, size_t i);
	atomic_uint_least64_t *blocks; /* may be NULL; counts the blocks that are read */
};

/* The number of files that may be open while regions are read, with enough descriptors left for
 * layers: at least one, at most `most`. */
size_t vv_read_many_files(size_t most, size_t descriptors_each);

/* Regions i = 0 .. n-1. Returns an error only for lack of memory, or for one that is of no single
 * region. Unreadable regions are reported by on_error. */
int vv_read_many_read(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_runs *const *runs, size_t n, const struct vv_read_many *to);

#endif
