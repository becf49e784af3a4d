/* The one pass over all bytes: each grain is hashed, and its digest compared with the one that it had. */
#ifndef VV_SPACE_HASH_PASS_H
#define VV_SPACE_HASH_PASS_H

#include "base/err.h"
#include "base/pool.h"
#include "space/last_digests.h"
#include "space/space.h"
#include <stdatomic.h>

enum { VV_HASH_PASS_HELPERS = 63 };

/* What was met first of memory that is not there. */
struct vv_hash_pass_fault {
	atomic_int has_error;
	struct vv_err_state error;
};

struct vv_hash_pass {
	const struct vv_sieve_options *opt;
	struct vv_pool *pool; /* NULL: this thread alone */
	const struct vv_span *span;
	size_t n_spans;
	struct vv_last_digests *past;
	struct vv_digest zero; /* of a grain of zeros */
	/* the slice that is swept */
	uint32_t begin, end;
	uint32_t *changed, *zeros;
	atomic_size_t next; /* what to take next, in tasks */
	struct vv_hash_pass_fault fault;
	size_t n_helpers;
	struct vv_hash_pass_helper {
		struct vv_task task;
		struct vv_hash_pass *sweep;
	} helper[VV_HASH_PASS_HELPERS];
};

/* Numbers begin..end-1, of one slice, are swept by the others of the pool from now on. For each tile, `changed` gets a bit for each grain that
 * has changed, `zeros` for those of them that are zero; their past becomes what they hold now. */
void vv_hash_pass_begin(struct vv_hash_pass *s, uint32_t begin, uint32_t end, uint32_t *changed, uint32_t *zeros);
/* Helps, and returns when all is done; none begun is fine. */
int vv_hash_pass_end(struct vv_hash_pass *s);
/* fn(arg, i) for 0 <= i < n, by the pool if there is one, guarded as the options say. */
int vv_hash_pass_each(const struct vv_sieve_options *opt, struct vv_pool *pool, size_t n, void (*fn)(void *arg, size_t i), void *arg);

#endif
