/* All judges and all ranks in one process: an epoch of exact dedup with its six messages as bytes, as ranks would exchange them.
 * Content is a number below 2^32; its digest follows from it and tells it. */
#ifndef VV_TEST_COURT_H
#define VV_TEST_COURT_H

#include "core/ranks/judge_round.h"

struct court_claim {
	uint32_t content, len;
	uint32_t verdict;
	uint64_t pos; /* if this rank stores it, where */
	struct vv_dedup_judge_where where;
	uint64_t copy[VV_DEDUP_JUDGE_COPIES_MAX]; /* behind where.copy */
};

struct court_rank {
	struct court_claim *claim; /* the chunk's number is its place here */
	size_t n;
	uint64_t stored; /* bytes of this epoch */
};

struct court {
	uint32_t ranks, copies;
	const uint32_t *host; /* or NULL */
	struct vv_dedup_judge *judge; /* one per rank */
	struct court_rank *rank;
	/* what a rank knows of content that it stored earlier */
	struct vv_dedup_judge_place (*place)(void *arg, uint32_t rank, uint32_t content);
	void *arg;
	size_t queries; /* of the last epoch */
};

struct vv_digest court_digest(uint32_t content);
/* Room for `cap` claims per rank; judges that remember up to `memory` digests. */
void court_open(struct court *t, uint32_t ranks, size_t cap, size_t memory);
void court_close(struct court *t);
/* Claims to verdicts and places; learn: the epoch counts. */
void court_epoch(struct court *t, bool learn);
/* Bytes stored by the busiest rank over the average. */
double court_imbalance(const struct court *t);

#endif
