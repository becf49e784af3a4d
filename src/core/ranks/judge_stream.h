/* Exact dedup across ranks of content that comes in rounds, each digest before the rank that is its judge (vv_dedup_judge_of): the judge's part, which
 * knows the places of all that was stored in the epoch. Where core/ranks/judge_round.h hears everything first, a docket takes what comes, and decides at once.
 *
 *   to the judge     u64: 0 if the rank will claim no more, else 1; u64 for each STORE of the round before: where the rank put it;
 *                    then for each claim a digest and its segment (u32)
 *   from the judge   u64 for each SOON of the round before: the place; then u64 for each claim: the verdict
 *
 * Both in the order of the claims. Numbers are as this machine has them in memory, without padding. Pure, deterministic. */
#ifndef VV_CORE_RANKS_JUDGE_STREAM_H
#define VV_CORE_RANKS_JUDGE_STREAM_H

#include "core/dedup/index.h"
#include "core/ranks/dedup_judge.h"

enum vv_judge_stream_kind {
	VV_JUDGE_STREAM_STORE, /* it is yours to store */
	VV_JUDGE_STREAM_SOON,  /* a rank stores it in this round */
	VV_JUDGE_STREAM_HERE,  /* a rank has it */
};

enum { VV_JUDGE_STREAM_CLAIM = sizeof(struct vv_digest) + sizeof(uint32_t) };

/* A verdict: the kind, whose it is, and where it lies in that rank's layer, if that is known. */
static inline uint64_t vv_judge_stream_verdict(enum vv_judge_stream_kind kind, uint32_t rank, uint64_t pos)
{
	return (uint64_t)kind << 60 | (uint64_t)rank << 40 | pos;
}

static inline enum vv_judge_stream_kind vv_judge_stream_kind(uint64_t verdict)
{
	return (enum vv_judge_stream_kind)(verdict >> 60);
}

static inline uint32_t vv_judge_stream_rank(uint64_t verdict)
{
	return (uint32_t)(verdict >> 40) & (VV_DEDUP_JUDGE_RANKS_MAX - 1);
}

static inline uint64_t vv_judge_stream_pos(uint64_t verdict)
{
	return verdict & (VV_DEDUP_JUDGE_POS_MAX - 1);
}

/* For the rank that got it, `self`: could it be true? */
static inline bool vv_judge_stream_can_be(uint64_t verdict, uint32_t self, uint32_t ranks)
{
	return vv_judge_stream_kind(verdict) <= VV_JUDGE_STREAM_HERE && vv_judge_stream_rank(verdict) < ranks &&
	       (vv_judge_stream_kind(verdict) == VV_JUDGE_STREAM_HERE || (vv_judge_stream_kind(verdict) == VV_JUDGE_STREAM_STORE) == (vv_judge_stream_rank(verdict) == self));
}

struct vv_judge_stream_due { /* entries of `young`, by rank, in the order of its claims */
	uint32_t *entry;
	size_t n, cap;
	size_t *of; /* how many of them are rank r's */
};

struct vv_judge_stream { /* fields are for reading only */
	uint32_t ranks;
	size_t limit;
	struct vv_index young, old; /* the source of an entry is the rank that stores it, and has no layer */
	struct vv_judge_stream_due told;  /* places that STORErs will tell */
	struct vv_judge_stream_due owed;  /* to who was told SOON */
	uint64_t *reply;            /* of all ranks, one behind the other */
	size_t replies_cap;
	uint64_t *reply_len;        /* bytes to each */
	uint64_t more;              /* ranks that will claim more */
};

/* limit: digests that are remembered; at least the half of them that came last. What is forgotten is stored again if it comes back. */
int vv_judge_stream_init(struct vv_judge_stream *d, uint32_t ranks, size_t limit);
void vv_judge_stream_fini(struct vv_judge_stream *d);
/* A round: what all ranks said, one behind the other; len: bytes of each. Afterwards reply, reply_len and more say what there is to be said.
 * VV_EPEER: somebody said what cannot be. After a failure it can only be closed. */
int vv_judge_stream_hear(struct vv_judge_stream *d, const uint8_t *said, const uint64_t *len);

#endif
