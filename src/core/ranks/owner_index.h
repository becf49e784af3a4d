/* Exact dedup across ranks: each rank is the home rank of a part of the space of digests. This file
 * has the memory of a home rank, which maps content to the rank that stored it. It also has the
 * messages between ranks and home ranks; core/ranks/owner_batch.h decides an epoch.
 *
 * M1 claims     rank -> home rank  Digests, then as many tags (u32): the new content, each once.
 * M2 queries    home rank -> rank  Digests that the rank stored in an earlier epoch, as remembered.
 * M3 answers    rank -> home rank  A struct vv_owner_index_answer for each.
 * M4 decisions  home rank -> rank  A u32 for each claim.
 * M5 positions  rank -> home rank  A u64 for each STORE_SHARED: position of the bytes in its layer.
 * M6 locations  home rank -> rank  For each decision u64s. REMOTE: position. REMOTE_OLD: layer,
 *     position. With copies > 1, REMOTE and STORE_SHARED have copies - 1 more for the other copies:
 *     rank << 40 | position, or VV_OWNER_INDEX_NO_COPY.
 * Everything is in the order of M1 (M2, M3: of M2), in this machine's byte order, unpadded. */
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

/* Prefetches a cache line by a load whose result is not used. Some processors ignore prefetch
 * instructions (seen on a Neoverse V1 under a hypervisor), but none ignores a load. In loops of a
 * few instructions dozens of loads are in progress at once. */
static inline void vv_owner_index_load(const void *p)
{
	(void)*(const volatile char *)p;
}

/* ---- claims */

/* bytes of M1 per claim */
enum { VV_OWNER_INDEX_CLAIM = sizeof(struct vv_digest) + sizeof(uint32_t) };

/* chunk: the number of the chunk in the rank's order of memory. Neighbours get the same owner, so
 * that runs stay long. */
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
	uint64_t layer; /* 0: the rank does not have the content any more */
	uint64_t pos;
};

/* ---- decisions */

enum vv_owner_index_kind {
	VV_OWNER_INDEX_STORE, /* store it: no other rank has it */
	/* store it: others refer to it, or it is one of several copies */
	VV_OWNER_INDEX_STORE_SHARED,
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

/* The rank whose layer has the bytes; for STORE and STORE_SHARED the claimer itself. */
static inline uint32_t vv_owner_index_rank(uint32_t decision)
{
	return decision & ((1u << 30) - 1);
}

/* Checks the decisions that rank `self` received: VV_EPEER if one of them is impossible. */
int vv_owner_index_check(const uint32_t *decision, size_t n, uint32_t self, uint32_t ranks);
/* The number of STORE_SHARED decisions, which is that of u64 in M5; and the number of u64 in M6. */
size_t vv_owner_index_count_shared(const uint32_t *decision, size_t n);
size_t vv_owner_index_count_words(const uint32_t *decision, size_t n, uint32_t copies);

/* The place of one claim's bytes: one decision's part of M6. */
struct vv_owner_index_location {
	uint64_t layer;     /* REMOTE_OLD */
	uint64_t pos;       /* REMOTE_OLD and REMOTE */
	const uint64_t *copy; /* copies - 1 of them; NULL if none are named */
};

/* Reads the part of one decision at word[*at] and advances *at; VV_EPEER if it is impossible. The
 * caller has checked the decisions, and that there are vv_owner_index_count_words of them. */
int vv_owner_index_next_location(const uint64_t *word, size_t *at, uint32_t decision, uint32_t ranks, uint32_t copies,
			struct vv_owner_index_location *out);

/* ---- the memory of the home rank: a cache, which may forget everything at any time */

struct vv_owner_index_entry {
	struct vv_digest digest;
	uint32_t owner; /* + 1; 0: empty */
	uint32_t generation;
};

/* bytes per remembered digest at most: a slot in a table that has just grown */
enum { VV_OWNER_INDEX_COST = 3 * sizeof(struct vv_owner_index_entry) };

struct vv_owner_index {
	struct vv_owner_index_entry *slot; /* open addressing, linear */
	size_t mask, n;
	/* entries; the half of them that was added last is never forgotten for want of room */
	size_t cap;
	size_t young;        /* entries of this generation */
	uint32_t generation;
};

void vv_owner_index_init(struct vv_owner_index *j, size_t cap);
/* from now on; the excess is removed as others are added */
void vv_owner_index_set_cap(struct vv_owner_index *j, size_t cap);
void vv_owner_index_fini(struct vv_owner_index *j);
/* Makes room for about n more at once. */
void vv_owner_index_reserve(struct vv_owner_index *j, size_t n);
/* Records or replaces the owner of these digests. Never fails: without memory it forgets. */
void vv_owner_index_add(struct vv_owner_index *j, uint32_t rank, const struct vv_digest *d, size_t n);
/* A digest that is absent is ignored. */
void vv_owner_index_forget(struct vv_owner_index *j, const struct vv_digest *d);
/* Prefetches the cache line that a later find or add needs. */
void vv_owner_index_prefetch(const struct vv_owner_index *j, const struct vv_digest *d);
/* a rank, or VV_OWNER_INDEX_NOBODY */
uint32_t vv_owner_index_find(const struct vv_owner_index *j, const struct vv_digest *d);

#endif
