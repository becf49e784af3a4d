/* Reads through run tables, on all cores: every needed block is read once and checked, and its
 * bytes go to their destinations. */
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

/* Fills all wants, or fails; the content of the destinations is then undefined. Regions that the
 * program has write-protected are unprotected meanwhile. */
int vv_restore_read(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_want *want, size_t n);

/* For callers that write into wants themselves: unprotects their protected memory. An error names
 * the region and the bytes. */
int vv_restore_make_writable(const struct vv_want *want, size_t n, struct vv_make_writable *writable);
/* Protects it again. Returns `rc`, the result so far, unless this fails, too. */
int vv_restore_protect_again(struct vv_make_writable *writable, int rc);

struct vv_windows { /* for reading a want that is not filled in place */
	void *arg;
	size_t len;
	int (*get_buffer)(void *arg, uint8_t **out); /* memory for the next window */
	/* it has the want's bytes at..at+len */
	int (*on_filled)(void *arg, uint64_t at, size_t len);
};

/* Reads one want, whose `to` is not used. */
int vv_restore_windows(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_want *want, const struct vv_windows *w);

#endif
