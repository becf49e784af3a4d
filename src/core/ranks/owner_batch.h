/* One epoch at a home rank: the claims of all ranks are grouped by digest, and each digest gets its
 * owner. The bytes to be stored are balanced among the ranks, and neighbouring chunks go to the
 * same rank. A home rank sees a uniform sample of the content of all ranks, so loads balanced at
 * each home rank are balanced in total. Pure, deterministic. The messages are in
 * core/ranks/owner_index.h.
 *
 * Order: open -> queries -> (M2, M3) -> answer -> decide -> (M4, M5) -> set_positions ->
 * get_locations -> (M6) -> commit, once the epoch is committed -> close.
 *
 * Without queries (or when there are none) answer is left out. A batch can be closed at any time.
 * Everything that comes from ranks is checked: VV_EPEER, and the batch can only be closed. */
#ifndef VV_CORE_RANKS_OWNER_BATCH_H
#define VV_CORE_RANKS_OWNER_BATCH_H

#include "core/ranks/owner_index.h"

struct vv_owner_batch_group;

struct vv_owner_batch { /* all zero is the empty batch; fields are for reading only */
	struct vv_owner_index *owners;
	uint32_t ranks, copies;
	const uint8_t *claims; /* the caller's */
	size_t n;              /* claims */
	size_t *first;         /* of rank r: claims first[r] .. first[r + 1] - 1 */
	struct vv_owner_batch_group *group;
	size_t n_groups;
	uint32_t *group_of;          /* by claim */
	uint32_t *holder;      /* the ranks that claim a group, if there are several */
	/* bytes per rank, of this home rank's part; after decide: the load of each */
	uint64_t *load;
	uint64_t *query_owner;       /* owner << 32 | group, in the order of the queries */
	struct vv_digest *query;
	size_t n_queries;
	struct vv_owner_index_answer *answer; /* answers */
	uint64_t *copy;        /* rank << 40 | position of content that is stored for others */
	const uint32_t *decision; /* the caller's */
};

/* claims: the M1 of all ranks, one after the other; len: bytes of each. The claims are used until
 * close, len only here. */
int vv_owner_batch_open(struct vv_owner_batch *c, struct vv_owner_index *j, uint32_t ranks, const void *claims, const uint64_t *len);
void vv_owner_batch_close(struct vv_owner_batch *c);

/* M2: n_to[r] digests for rank r, one after the other in c->query, c->n_queries in all. */
int vv_owner_batch_queries(struct vv_owner_batch *c, uint64_t *n_to);
/* M3, in the order of the queries. len is in bytes. */
int vv_owner_batch_answer(struct vv_owner_batch *c, const void *answers, uint64_t len);

/* M4: `decision` has room for c->n and stays until close. The decisions on rank r's claims begin at
 * c->first[r]. The host of each rank is in `host`, or NULL if each rank has its own. Content held
 * by several hosts is stored on `copies` of them, 1 to VV_OWNER_INDEX_COPIES_MAX. */
int vv_owner_batch_decide(struct vv_owner_batch *c, const uint32_t *host, uint32_t copies, uint32_t *decision);

/* M5 of all ranks, one after the other; len: bytes of each. */
int vv_owner_batch_set_positions(struct vv_owner_batch *c, const void *lent, const uint64_t *len);
/* Writes M6 of all ranks into `word`, which has room for vv_owner_index_count_words of all
 * decisions. The part of rank r has vv_owner_index_count_words of its decisions. */
void vv_owner_batch_get_locations(const struct vv_owner_batch *c, uint64_t *word);

/* The epoch is committed: the home rank remembers the owner of each content. Content that was
 * claimed again is remembered longer than other content. */
void vv_owner_batch_commit(struct vv_owner_batch *c);

#endif
