/* All home ranks and all ranks in one process: an epoch of exact dedup with its six messages as bytes, as ranks would exchange them.
 * Content is a number below 2^32; its digest follows from it and tells it. */
#ifndef VV_TEST_OWNER_TRIAL_H
#define VV_TEST_OWNER_TRIAL_H

#include "core/ranks/owner_batch.h"

struct owner_trial_claim {
	uint32_t content, len;
	uint32_t decision;
	uint64_t pos; /* if this rank stores it, where */
	struct vv_owner_index_location where;
	uint64_t copy[VV_OWNER_INDEX_COPIES_MAX]; /* behind where.copy */
};

struct owner_trial_rank {
	struct owner_trial_claim *claim; /* the chunk's number is its place here */
	size_t n;
	uint64_t stored; /* bytes of this epoch */
};

struct owner_trial {
	uint32_t ranks, copies;
	const uint32_t *host; /* or NULL */
	struct vv_owner_index *judge; /* one per rank */
	struct owner_trial_rank *rank;
	/* what a rank knows of content that it stored earlier */
	struct vv_owner_index_answer (*place)(void *arg, uint32_t rank, uint32_t content);
	void *arg;
	size_t queries; /* of the last epoch */
};

struct vv_digest owner_trial_digest(uint32_t content);
/* Room for `cap` claims per rank; home ranks that remember up to `memory` digests. */
void owner_trial_open(struct owner_trial *t, uint32_t ranks, size_t cap, size_t memory);
void owner_trial_close(struct owner_trial *t);
/* Claims to decisions and places; learn: the epoch counts. */
void owner_trial_epoch(struct owner_trial *t, bool learn);
/* Bytes stored by the busiest rank over the average. */
double owner_trial_imbalance(const struct owner_trial *t);

#endif
