/* The one pass over all bytes: hashes each grain and compares its digest with the previous one. */
#ifndef VV_SPACE_HASH_PASS_H
#define VV_SPACE_HASH_PASS_H

#include "base/err.h"
#include "base/pool.h"
#include "space/last_digests.h"
#include "space/space.h"
#include <stdatomic.h>

enum { VV_HASH_PASS_HELPERS = 63 };

/* The first fault on memory that is not there. */
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
	/* the slice in progress */
	uint32_t begin, end;
	uint32_t *changed, *zeros;
	atomic_size_t next; /* next task to take */
	struct vv_hash_pass_fault fault;
	size_t n_helpers;
	struct vv_hash_pass_helper {
		struct vv_task task;
		struct vv_hash_pass *sweep;
	} helper[VV_HASH_PASS_HELPERS];
};

/* The other threads of the pool begin to hash numbers begin..end-1, which are of one slice. For
 * each tile, `changed` gets a bit for each changed grain, `zeros` for each changed grain that is
 * zero. `past` gets their present digests. */
void vv_hash_pass_begin(struct vv_hash_pass *s, uint32_t begin, uint32_t end, uint32_t *changed, uint32_t *zeros);
/* Helps, and returns when all is done. No begun slice is fine. */
int vv_hash_pass_end(struct vv_hash_pass *s);
/* Calls fn(arg, i) for 0 <= i < n, on the pool if there is one, guarded by the guard of the
 * options. */
int vv_hash_pass_each(const struct vv_sieve_options *opt, struct vv_pool *pool, size_t n, void (*fn)(void *arg, size_t i), void *arg);

#endif
