/* Exact dedup across ranks: the space of digests is divided, and each rank is the judge of a part of it. Here is what a judge
 * remembers from epoch to epoch (who stored what), and the messages between judges and ranks; core/ranks/judge_round.h decides an epoch.
 *
 *   M1 claims    rank -> judge    n digests, then n tags (u32): the new content of the rank, each digest once
 *   M2 queries   judge -> rank    digests that the rank stored in an earlier epoch, as the judge remembers
 *   M3 answers   rank -> judge    a struct vv_dedup_judge_place for each
 *   M4 verdicts  judge -> rank    u32 for each claim
 *   M5 lent      rank -> judge    u64 for each verdict LEND: where in its layer of this epoch the rank puts the bytes
 *   M6 where     judge -> rank    u64s for each verdict: REFER: position; OLD: layer, position; and with copies > 1, for REFER
 *                                 and LEND copies - 1 more, naming the other copies: rank << 40 | position, or VV_DEDUP_JUDGE_NO_COPY
 *
 * Everything is in the order of M1 (M2, M3: of M2). Numbers are as this machine has them in memory, without padding. */
#ifndef VV_CORE_RANKS_DEDUP_JUDGE_H
#define VV_CORE_RANKS_DEDUP_JUDGE_H

#include "core/format/digest.h"
#include <stdbool.h>

#define VV_DEDUP_JUDGE_RANKS_MAX (1u << 20)
#define VV_DEDUP_JUDGE_LEN_MAX (1u << 20)
#define VV_DEDUP_JUDGE_POS_MAX (1ull << 40)
#define VV_DEDUP_JUDGE_SEGMENTS (1u << 11) /* the hint of place wraps here */
#define VV_DEDUP_JUDGE_SEGMENT_CHUNKS 16
#define VV_DEDUP_JUDGE_COPIES_MAX 16
#define VV_DEDUP_JUDGE_NO_COPY UINT64_MAX
#define VV_DEDUP_JUDGE_NOBODY UINT32_MAX

static inline uint32_t vv_dedup_judge_of(const struct vv_digest *d, uint32_t ranks)
{
	return (uint32_t)((unsigned __int128)d->w[0] * ranks >> 64);
}

/* Brings a cache line: by a load for whose result nobody waits. There are processors that ignore prefetches (seen on a Neoverse V1
 * under a hypervisor), but none ignores this; in loops of a few instructions dozens of them are under way at once. */
static inline void vv_dedup_judge_touch(const void *p)
{
	(void)*(const volatile char *)p;
}

/* ---- claims */

enum { VV_DEDUP_JUDGE_CLAIM = sizeof(struct vv_digest) + sizeof(uint32_t) }; /* bytes of M1 per claim */

/* chunk: the number of the chunk in the rank's order of memory. Neighbours get the same owner, so that runs stay long. */
static inline uint32_t vv_dedup_judge_tag(uint32_t len, uint64_t chunk)
{
	return len << 11 | (chunk / VV_DEDUP_JUDGE_SEGMENT_CHUNKS & (VV_DEDUP_JUDGE_SEGMENTS - 1));
}

static inline uint32_t vv_dedup_judge_tag_len(uint32_t tag)
{
	return tag >> 11;
}

static inline uint32_t vv_dedup_judge_tag_segment(uint32_t tag)
{
	return tag & (VV_DEDUP_JUDGE_SEGMENTS - 1);
}

/* ---- answers */

struct vv_dedup_judge_place {
	uint64_t layer; /* 0: the rank does not have it any more */
	uint64_t pos;
};

/* ---- verdicts */

enum vv_dedup_judge_kind {
	VV_DEDUP_JUDGE_ALONE, /* store it: nobody else has it */
	VV_DEDUP_JUDGE_LEND,  /* store it: others refer to it, or it is one of several copies */
	VV_DEDUP_JUDGE_REFER, /* its bytes go into the layer of another rank in this epoch */
	VV_DEDUP_JUDGE_OLD,   /* they are in an earlier layer of a rank */
};

static inline uint32_t vv_dedup_judge_verdict(enum vv_dedup_judge_kind kind, uint32_t rank)
{
	return (uint32_t)kind << 30 | rank;
}

static inline enum vv_dedup_judge_kind vv_dedup_judge_kind(uint32_t verdict)
{
	return (enum vv_dedup_judge_kind)(verdict >> 30);
}

/* Whose layer it is: of ALONE and LEND the claimer's own. */
static inline uint32_t vv_dedup_judge_rank(uint32_t verdict)
{
	return verdict & ((1u << 30) - 1);
}

/* For the rank that got them, `self`: VV_EPEER unless all could be true. */
int vv_dedup_judge_check(const uint32_t *verdict, size_t n, uint32_t self, uint32_t ranks);
/* Verdicts LEND, which is the number of u64 in M5; and the number of u64 in M6. For both sides. */
size_t vv_dedup_judge_lends(const uint32_t *verdict, size_t n);
size_t vv_dedup_judge_words(const uint32_t *verdict, size_t n, uint32_t copies);

/* Where one claim's bytes are: one verdict's part of M6. */
struct vv_dedup_judge_where {
	uint64_t layer;     /* OLD */
	uint64_t pos;       /* OLD and REFER */
	const uint64_t *copy; /* copies - 1 of them; NULL if none are named */
};

/* Reads the part of one verdict at word[*at] and moves on; VV_EPEER if it cannot be. The caller has checked the verdicts, and
 * that there are vv_dedup_judge_words of them. */
int vv_dedup_judge_where_next(const uint64_t *word, size_t *at, uint32_t verdict, uint32_t ranks, uint32_t copies,
			struct vv_dedup_judge_where *out);

/* ---- what the judge remembers: a cache, which may forget everything at any time */

struct vv_dedup_judge_entry {
	struct vv_digest digest;
	uint32_t owner; /* + 1; 0: empty */
	uint32_t generation;
};

enum { VV_DEDUP_JUDGE_COST = 3 * sizeof(struct vv_dedup_judge_entry) }; /* of what is remembered, at most: a slot in a table that has just grown */

struct vv_dedup_judge {
	struct vv_dedup_judge_entry *slot; /* open addressing, linear */
	size_t mask, n;
	size_t cap;          /* entries; the half of them that was added last is never forgotten for want of room */
	size_t young;        /* entries of this generation */
	uint32_t generation;
};

void vv_dedup_judge_init(struct vv_dedup_judge *j, size_t cap);
void vv_dedup_judge_allow(struct vv_dedup_judge *j, size_t cap); /* from now on; what is too much goes as others come */
void vv_dedup_judge_fini(struct vv_dedup_judge *j);
/* About n more will be added, so that room for them is made at once. */
void vv_dedup_judge_expect(struct vv_dedup_judge *j, size_t n);
/* `rank` has stored these; what was said of them before is replaced. Never fails: without memory it forgets. */
void vv_dedup_judge_add(struct vv_dedup_judge *j, uint32_t rank, const struct vv_digest *d, size_t n);
void vv_dedup_judge_forget(struct vv_dedup_judge *j, const struct vv_digest *d); /* absent is fine */
/* Brings the cache line that a later find or add needs. */
void vv_dedup_judge_bring(const struct vv_dedup_judge *j, const struct vv_digest *d);
uint32_t vv_dedup_judge_find(const struct vv_dedup_judge *j, const struct vv_digest *d); /* a rank, or VV_DEDUP_JUDGE_NOBODY */

#endif
