/* Nicolae 2013, algorithm 2 (HASH_MERGER): two sets of (digest, number of holders, owner) become
 * one set of the most frequent, with balanced owners. The file also has the plan of the all-reduce
 * around it: recursive doubling for any number of ranks. Pure.
 *
 * Sets are in ascending order of digests. The paper leaves a choice for equal loads and equal
 * counts: here the lower rank and the lower digest win. The result therefore does not depend on
 * which set is called left, and all ranks end with the same set. */
#ifndef VV_CORE_RANKS_TOPK_MERGE_H
#define VV_CORE_RANKS_TOPK_MERGE_H

#include "core/format/digest.h"
#include <stdbool.h>

struct vv_tuple {
	struct vv_digest digest;
	uint32_t count;
	uint32_t rank;
};

static inline bool vv_topk_merge_before(const struct vv_digest *a, const struct vv_digest *b)
{
	return a->w[0] != b->w[0] ? a->w[0] < b->w[0] : a->w[1] < b->w[1];
}

/* There is room in `out` for n_left + n_right tuples, and it is neither set. At most `threshold` of
 * them are left. The number of ranks is `ranks`. VV_EPEER if a set is not in order, or has an
 * impossible rank or count. */
int vv_topk_merge_sets(const struct vv_tuple *left, size_t n_left, const struct vv_tuple *right, size_t n_right, uint32_t ranks,
		  size_t threshold, struct vv_tuple *out, size_t *n_out);

#define VV_TOPK_MERGE_NOBODY UINT32_MAX

enum vv_topk_merge_do { VV_TOPK_MERGE_IGNORE, VV_TOPK_MERGE_SETS, VV_TOPK_MERGE_REPLACE };

struct vv_topk_merge_step {
	/* receiver of the own set, and sender of the other: a rank, or VV_TOPK_MERGE_NOBODY */
	uint32_t to, from;
	/* action: nothing came, merge the other set with the own, or take the other instead */
	enum vv_topk_merge_do what;
};

/* The number of steps of the all-reduce, the same for every rank; in some steps a rank may have
 * nothing to do. */
uint32_t vv_topk_merge_steps(uint32_t ranks);
void vv_topk_merge_step(uint32_t rank, uint32_t ranks, uint32_t step, struct vv_topk_merge_step *out);

#endif
