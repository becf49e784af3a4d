/* The home rank's part of exact dedup across ranks for content that comes in rounds. Each digest
 * goes to its home rank (vv_owner_index_home), which knows the places of all content stored in the
 * epoch. A batch (core/ranks/owner_batch.h) receives all claims before it decides; a stream decides
 * each round at once.
 *
 * To the home rank    A u64: 0 if the rank will claim no more, else 1. A u64 for each STORE of the
 *                     round before: its place. For each claim a digest and its segment (u32).
 * From the home rank  A u64 for each PENDING of the round before: the place. A u64 for each claim:
 *                     the decision.
 *
 * Both are in the order of the claims. Numbers have this machine's byte order and no padding. Pure,
 * deterministic. */
#ifndef VV_CORE_RANKS_OWNER_STREAM_H
#define VV_CORE_RANKS_OWNER_STREAM_H

#include "core/dedup/index.h"
#include "core/ranks/owner_index.h"

enum vv_owner_stream_kind {
	VV_OWNER_STREAM_STORE, /* the claimer stores it */
	VV_OWNER_STREAM_PENDING,  /* a rank stores it in this round */
	VV_OWNER_STREAM_STORED,  /* a rank has it */
};

enum { VV_OWNER_STREAM_CLAIM = sizeof(struct vv_digest) + sizeof(uint32_t) };

/* A decision: the kind, the rank that stores the content, and the position in that rank's layer, if
 * it is known. */
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

/* Is the decision possible for the rank `self` that received it? */
static inline bool vv_owner_stream_is_valid(uint64_t decision, uint32_t self, uint32_t ranks)
{
	return vv_owner_stream_kind(decision) <= VV_OWNER_STREAM_STORED && vv_owner_stream_rank(decision) < ranks &&
	       (vv_owner_stream_kind(decision) == VV_OWNER_STREAM_STORED || (vv_owner_stream_kind(decision) == VV_OWNER_STREAM_STORE) == (vv_owner_stream_rank(decision) == self));
}

struct vv_owner_stream_pending { /* entries of `young`, by rank, in the order of its claims */
	uint32_t *entry;
	size_t n, cap;
	size_t *of; /* the number of them by rank */
};

struct vv_owner_stream { /* fields are for reading only */
	uint32_t ranks;
	size_t limit;
	/* the source of an entry is the rank that stores it; there is no layer */
	struct vv_index young, old;
	struct vv_owner_stream_pending awaited;  /* places that ranks with STORE will report */
	struct vv_owner_stream_pending owed;  /* places owed to ranks with PENDING */
	uint64_t *reply;            /* to all ranks, one after the other */
	size_t replies_cap;
	uint64_t *reply_len;        /* bytes to each */
	uint64_t more;              /* ranks that will claim more */
};

/* limit: digests that are remembered; at least the newest half of them is. Forgotten content is
 * stored again if it comes back. */
int vv_owner_stream_init(struct vv_owner_stream *d, uint32_t ranks, size_t limit);
void vv_owner_stream_fini(struct vv_owner_stream *d);
/* Runs a round with the messages of all ranks, one after the other; len: bytes of each. The results
 * are in reply, reply_len and more. VV_EPEER: a message is impossible. After a failure the stream
 * can only be closed. */
int vv_owner_stream_run(struct vv_owner_stream *d, const uint8_t *said, const uint64_t *len);

#endif
