/* An object that is being written to a store: store/backend/backend.h. */
#ifndef VV_STORE_BACKEND_PUT_H
#define VV_STORE_BACKEND_PUT_H

#include "base/pool.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct vv_store;

struct vv_put { /* an object being written; a backend embeds it first */
	struct vv_store *store;
	char *name;
	uint64_t written;
	/* put_submit takes bytes whose addresses, lengths and position are multiples of this; 0:
	 * none. */
	size_t unit;
};

/* A write in progress. */
struct vv_pending_write {
	void (*done)(struct vv_pending_write *w); /* the store reads the bytes no longer; called on any thread */
	/* For the store: */
	struct vv_task task;
	struct vv_store *store;
	void *owner;
	const struct iovec *iov;
	int n;
	uint64_t at;
	size_t bytes;
};

#endif
