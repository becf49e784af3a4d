/* Exact dedup across ranks: the space of digests is divided, and each rank is the home rank of a part of it. Here is what a home rank
 * remembers from epoch to epoch (who stored what), and the messages between home ranks and ranks; core/ranks/owner_batch.h decides an epoch.
 *
 *   M1 claims    rank -> home rank    n digests, then n tags (u32): the new content of the rank, each digest once
 *   M2 queries   home rank -> rank    digests that the rank stored in an earlier epoch, as the home rank remembers
 *   M3 answers   rank -> home rank    a struct vv_owner_index_answer for each
 *   M4 decisions home rank -> rank    u32 for each claim
 *   M5 positions rank -> home rank    u64 for each decision STORE_SHARED: where in its layer of this epoch the rank puts the bytes
 *   M6 locations home rank -> rank    u64s for each decision: REMOTE: position; REMOTE_OLD: layer, position; and with copies > 1, for REMOTE
 *                                 and STORE_SHARED copies - 1 more, naming the other copies: rank << 40 | position, or VV_OWNER_INDEX_NO_COPY
 *
 * Everything is in the order of M1 (M2, M3: of M2). Numbers are as this machine has them in memory, without padding. */
#ifndef VV_CORE_RANKS_OWNER_INDEX_H
#define VV_CORE_RANKS_OWNER_INDEX_H

#include "core/format/digest.h"
#include <stdbool.h>

#define VV_OWNER_INDEX_RANKS_MAX (1u << 20)
#define VV_OWNER_INDEX_LEN_MAX (1u << 20)
#define VV_OWNER_INDEX_POS_MAX (1ull << 40)
#define VV_OWNER_INDEX_SEGMENTS (1u << 11) /* the hint of place wraps here */
#define VV_OWNER_INDEX_SEGMENT_CHUNKS 16
#define VV_OWNER_INDEX_COPIES_MAX 16
#define VV_OWNER_INDEX_NO_COPY UINT64_MAX
#define VV_OWNER_INDEX_NOBODY UINT32_MAX

static inline uint32_t vv_owner_index_home(const struct vv_digest *d, uint32_t ranks)
{
	return (uint32_t)((unsigned __int128)d->w[0] * ranks >> 64);
}

/* Brings a cache line: by a load for whose result nobody waits. There are processors that ignore prefetches (seen on a Neoverse V1
 * under a hypervisor), but none ignores this; in loops of a few instructions dozens of them are under way at once. */
static inline void vv_owner_index_load(const void *p)
{
	(void)*(const volatile char *)p;
}

/* ---- claims */

enum { VV_OWNER_INDEX_CLAIM = sizeof(struct vv_digest) + sizeof(uint32_t) }; /* bytes of M1 per claim */

/* chunk: the number of the chunk in the rank's order of memory. Neighbours get the same owner, so that runs stay long. */
static inline uint32_t vv_owner_index_tag(uint32_t len, uint64_t chunk)
{
	return len << 11 | (chunk / VV_OWNER_INDEX_SEGMENT_CHUNKS & (VV_OWNER_INDEX_SEGMENTS - 1));
}

static inline uint32_t vv_owner_index_tag_len(uint32_t tag)
{
	return tag >> 11;
}

static inline uint32_t vv_owner_index_tag_segment(uint32_t tag)
{
	return tag & (VV_OWNER_INDEX_SEGMENTS - 1);
}

/* ---- answers */

struct vv_owner_index_answer {
	uint64_t layer; /* 0: the rank does not have it any more */
	uint64_t pos;
};

/* ---- decisions */

enum vv_owner_index_kind {
	VV_OWNER_INDEX_STORE, /* store it: nobody else has it */
	VV_OWNER_INDEX_STORE_SHARED,  /* store it: others refer to it, or it is one of several copies */
	VV_OWNER_INDEX_REMOTE, /* its bytes go into the layer of another rank in this epoch */
	VV_OWNER_INDEX_REMOTE_OLD,   /* they are in an earlier layer of a rank */
};

static inline uint32_t vv_owner_index_decision(enum vv_owner_index_kind kind, uint32_t rank)
{
	return (uint32_t)kind << 30 | rank;
}

static inline enum vv_owner_index_kind vv_owner_index_kind(uint32_t decision)
{
	return (enum vv_owner_index_kind)(decision >> 30);
}

/* Whose layer it is: of STORE and STORE_SHARED the claimer's own. */
static inline uint32_t vv_owner_index_rank(uint32_t decision)
{
	return decision & ((1u << 30) - 1);
}

/* For the rank that got them, `self`: VV_EPEER unless all could be true. */
int vv_owner_index_check(const uint32_t *decision, size_t n, uint32_t self, uint32_t ranks);
/* Verdicts STORE_SHARED, which is the number of u64 in M5; and the number of u64 in M6. For both sides. */
size_t vv_owner_index_count_shared(const uint32_t *decision, size_t n);
size_t vv_owner_index_count_words(const uint32_t *decision, size_t n, uint32_t copies);

/* Where one claim's bytes are: one decision's part of M6. */
struct vv_owner_index_location {
	uint64_t layer;     /* REMOTE_OLD */
	uint64_t pos;       /* REMOTE_OLD and REMOTE */
	const uint64_t *copy; /* copies - 1 of them; NULL if none are named */
};

/* Reads the part of one decision at word[*at] and moves on; VV_EPEER if it cannot be. The caller has checked the decisions, and
 * that there are vv_owner_index_count_words of them. */
int vv_owner_index_next_location(const uint64_t *word, size_t *at, uint32_t decision, uint32_t ranks, uint32_t copies,
			struct vv_owner_index_location *out);

/* ---- what the home rank remembers: a cache, which may forget everything at any time */

struct vv_owner_index_entry {
	struct vv_digest digest;
	uint32_t owner; /* + 1; 0: empty */
	uint32_t generation;
};

enum { VV_OWNER_INDEX_COST = 3 * sizeof(struct vv_owner_index_entry) }; /* of what is remembered, at most: a slot in a table that has just grown */

struct vv_owner_index {
	struct vv_owner_index_entry *slot; /* open addressing, linear */
	size_t mask, n;
	size_t cap;          /* entries; the half of them that was added last is never forgotten for want of room */
	size_t young;        /* entries of this generation */
	uint32_t generation;
};

void vv_owner_index_init(struct vv_owner_index *j, size_t cap);
void vv_owner_index_set_cap(struct vv_owner_index *j, size_t cap); /* from now on; what is too much goes as others come */
void vv_owner_index_fini(struct vv_owner_index *j);
/* About n more will be added, so that room for them is made at once. */
void vv_owner_index_reserve(struct vv_owner_index *j, size_t n);
/* `rank` has stored these; what was said of them before is replaced. Never fails: without memory it forgets. */
void vv_owner_index_add(struct vv_owner_index *j, uint32_t rank, const struct vv_digest *d, size_t n);
void vv_owner_index_forget(struct vv_owner_index *j, const struct vv_digest *d); /* absent is fine */
/* Brings the cache line that a later find or add needs. */
void vv_owner_index_prefetch(const struct vv_owner_index *j, const struct vv_digest *d);
uint32_t vv_owner_index_find(const struct vv_owner_index *j, const struct vv_digest *d); /* a rank, or VV_OWNER_INDEX_NOBODY */

#endif
