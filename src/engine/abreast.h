/* Several regions read side by side, window by window. What was stored together (the same variable of many files lies in the same blocks) is
 * wanted at about the same time then, and a block that holds something of all of them is decoded once, not once for each. */
#ifndef VV_ENGINE_ABREAST_H
#define VV_ENGINE_ABREAST_H

#include "base/pool.h"
#include "engine/catalog.h"

enum { VV_ABREAST_MOST = 128 }; /* regions at a time */

struct vv_abreast {
	void *arg;
	/* Bytes at..at+n of region i are at p. Comes from any thread, for several regions at once and for stretches of one in any order. Long
	 * runs of zeros may be left out. */
	int (*there)(void *arg, size_t i, uint64_t at, const uint8_t *p, size_t n);
	/* Region i could not be read, or `there` failed: the thread's message says why. Which one is given up? If it is not i, which wants what was
	 * given up (space), `there` is tried again for i. */
	size_t (*lost)(void *arg, size_t i, int rc);
};

/* Regions i = 0 .. n-1, at most VV_ABREAST_MOST. An error is one of memory, or of no region alone; those that were given up are none. */
int vv_abreast_read(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_runs *const *runs, const uint64_t *len, size_t n,
		    const struct vv_abreast *to);

#endif
