/* collective=topk: the most frequent content is found by an all-reduce (Nicolae 2013, algorithm
 * 1). */
#ifndef VV_ENGINE_WRITE_RANK_DEDUP_TOPK_H
#define VV_ENGINE_WRITE_RANK_DEDUP_TOPK_H

#include "engine/write/rank_dedup_priv.h"

/* The paper's algorithm. Called by all ranks together. */
int vv_rank_dedup_topk_exchange(struct vv_rank_dedup_priv *t);

#endif
