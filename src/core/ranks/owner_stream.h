/* Exact dedup across ranks of content that comes in rounds, each digest before the rank that is its home rank (vv_owner_index_home): the home rank's part, which
 * knows the places of all that was stored in the epoch. Where core/ranks/owner_batch.h hears everything first, a stream takes what comes, and decides at once.
 *
 *   to the home rank     u64: 0 if the rank will claim no more, else 1; u64 for each STORE of the round before: where the rank put it;
 *                    then for each claim a digest and its segment (u32)
 *   from the home rank   u64 for each PENDING of the round before: the place; then u64 for each claim: the decision
 *
 * Both in the order of the claims. Numbers are as this machine has them in memory, without padding. Pure, deterministic. */
#ifndef VV_CORE_RANKS_OWNER_STREAM_H
#define VV_CORE_RANKS_OWNER_STREAM_H

#include "core/dedup/index.h"
#include "core/ranks/owner_index.h"

enum vv_owner_stream_kind {
	VV_OWNER_STREAM_STORE, /* it is yours to store */
	VV_OWNER_STREAM_PENDING,  /* a rank stores it in this round */
	VV_OWNER_STREAM_STORED,  /* a rank has it */
};

enum { VV_OWNER_STREAM_CLAIM = sizeof(struct vv_digest) + sizeof(uint32_t) };

/* A decision: the kind, whose it is, and where it lies in that rank's layer, if that is known. */
static inline uint64_t vv_owner_stream_decision(enum vv_owner_stream_kind kind, uint32_t rank, uint64_t pos)
{
	return (uint64_t)kind << 60 | (uint64_t)rank << 40 | pos;
}

static inline enum vv_owner_stream_kind vv_owner_stream_kind(uint64_t decision)
{
	return (enum vv_owner_stream_kind)(decision >> 60);
}

static inline uint32_t vv_owner_stream_rank(uint64_t decision)
{
	return (uint32_t)(decision >> 40) & (VV_OWNER_INDEX_RANKS_MAX - 1);
}

static inline uint64_t vv_owner_stream_pos(uint64_t decision)
{
	return decision & (VV_OWNER_INDEX_POS_MAX - 1);
}

/* For the rank that got it, `self`: could it be true? */
static inline bool vv_owner_stream_is_valid(uint64_t decision, uint32_t self, uint32_t ranks)
{
	return vv_owner_stream_kind(decision) <= VV_OWNER_STREAM_STORED && vv_owner_stream_rank(decision) < ranks &&
	       (vv_owner_stream_kind(decision) == VV_OWNER_STREAM_STORED || (vv_owner_stream_kind(decision) == VV_OWNER_STREAM_STORE) == (vv_owner_stream_rank(decision) == self));
}

struct vv_owner_stream_pending { /* entries of `young`, by rank, in the order of its claims */
	uint32_t *entry;
	size_t n, cap;
	size_t *of; /* how many of them are rank r's */
};

struct vv_owner_stream { /* fields are for reading only */
	uint32_t ranks;
	size_t limit;
	struct vv_index young, old; /* the source of an entry is the rank that stores it, and has no layer */
	struct vv_owner_stream_pending awaited;  /* places that STORErs will tell */
	struct vv_owner_stream_pending owed;  /* to who was told PENDING */
	uint64_t *reply;            /* of all ranks, one behind the other */
	size_t replies_cap;
	uint64_t *reply_len;        /* bytes to each */
	uint64_t more;              /* ranks that will claim more */
};

/* limit: digests that are remembered; at least the half of them that came last. What is forgotten is stored again if it comes back. */
int vv_owner_stream_init(struct vv_owner_stream *d, uint32_t ranks, size_t limit);
void vv_owner_stream_fini(struct vv_owner_stream *d);
/* A round: what all ranks said, one behind the other; len: bytes of each. Afterwards reply, reply_len and more say what there is to be said.
 * VV_EPEER: somebody said what cannot be. After a failure it can only be closed. */
int vv_owner_stream_run(struct vv_owner_stream *d, const uint8_t *said, const uint64_t *len);

#endif
