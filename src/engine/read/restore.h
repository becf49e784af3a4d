/* Reading through run tables: every stored block that is needed is read once, checked, and its bytes go where they
 * belong, on all cores. */
#ifndef VV_ENGINE_READ_RESTORE_H
#define VV_ENGINE_READ_RESTORE_H

#include "base/pool.h"
#include "engine/lineage/catalog.h"
#include "track/make_writable.h"

struct vv_want { /* bytes at..at+len of a region, to `to` */
	const struct vv_runs *runs;
	uint64_t at;
	uint64_t len;
	uint8_t *to;
	const char *name; /* of the region, for messages; NULL: memory of our own */
};

/* Fills all wants, or fails; what the destinations then hold is not defined. Memory of regions that the program has shut is opened meanwhile. */
int vv_restore_read(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_want *want, size_t n);

/* For those who write into wants themselves: opens what is shut of them. An error names the region and the bytes. */
int vv_restore_make_writable(const struct vv_want *want, size_t n, struct vv_make_writable *writable);
/* Shuts it again; `rc` is what came of it, and what is returned unless this fails, too. */
int vv_restore_protect_again(struct vv_make_writable *writable, int rc);

struct vv_windows { /* through which a want is read that is not filled in place */
	void *arg;
	size_t len;
	int (*get_buffer)(void *arg, uint8_t **out); /* memory for the next window */
	int (*on_filled)(void *arg, uint64_t at, size_t len); /* it holds the want's bytes at..at+len */
};

/* One want, whose `to` is not used. */
int vv_restore_windows(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_want *want, const struct vv_windows *w);

#endif
