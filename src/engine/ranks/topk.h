/* ALL_REDUCE(HashFreq, HASH_MERGER) of Nicolae 2013: the most frequent digests of all ranks, with
 * their owners, on every rank. */
#ifndef VV_ENGINE_RANKS_TOPK_H
#define VV_ENGINE_RANKS_TOPK_H

#include "comm/comm.h"
#include "core/ranks/topk_merge.h"

/* Called by all ranks together. mine: n tuples in order of digests, of base/mem.h; the call takes
 * ownership, also on failure. The caller frees the result by vv_comm_free. It fails on all ranks or
 * on none, unless the comm breaks. */
int vv_topk_allreduce(struct vv_comm *c, struct vv_tuple *mine, size_t n, size_t threshold, struct vv_tuple **out, size_t *n_out);

#endif
