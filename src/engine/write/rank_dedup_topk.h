/* collective=topk: the most frequent content is found by an all-reduce (Nicolae 2013, algorithm 1). */
#ifndef VV_ENGINE_FREQUENT_H
#define VV_ENGINE_FREQUENT_H

#include "engine/write/rank_dedup_priv.h"

/* The paper's way. All ranks together. */
int vv_frequent_ask(struct vv_talk *t);

#endif
