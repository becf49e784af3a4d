/* One epoch before a judge: the claims of all ranks are grouped by digest, and each digest gets its owner, so that the bytes to
 * be stored are balanced among the ranks and neighbouring chunks go to the same one. A judge sees a uniform sample of everyone's
 * content, so what is balanced before each judge is balanced in all. Pure, deterministic; core/ranks/dedup_judge.h has the messages.
 *
 * open -> queries -> (M2, M3) -> answer -> decide -> (M4, M5) -> lent -> where -> (M6) -> learn, once the epoch counts -> close.
 * Without queries (or when there are none) answer is left out. close is possible at any time. All that comes from ranks is
 * checked: VV_EPEER, and the case can only be closed. */
#ifndef VV_CORE_RANKS_JUDGE_ROUND_H
#define VV_CORE_RANKS_JUDGE_ROUND_H

#include "core/ranks/dedup_judge.h"

struct vv_case_group;

struct vv_judge_round { /* all zero is the empty case; fields are for reading only */
	struct vv_dedup_judge *judge;
	uint32_t ranks, copies;
	const uint8_t *claims; /* the caller's */
	size_t n;              /* claims */
	size_t *first;         /* of rank r: claims first[r] .. first[r + 1] - 1 */
	struct vv_case_group *group;
	size_t n_groups;
	uint32_t *of;          /* the group of each claim */
	uint32_t *holder;      /* the ranks that claim a group, where there are several */
	uint64_t *load;        /* bytes per rank, of this judge's part; after decide: what each has to store */
	uint64_t *asked;       /* owner << 32 | group, in the order of the queries */
	struct vv_digest *query;
	size_t n_queries;
	struct vv_dedup_judge_place *place; /* answers */
	uint64_t *copy;        /* rank << 40 | position of what is stored for others */
	const uint32_t *verdict; /* the caller's */
};

/* claims: the M1 of all ranks, one behind the other; len: bytes of each. Both are used until close (len only here). */
int vv_judge_round_open(struct vv_judge_round *c, struct vv_dedup_judge *j, uint32_t ranks, const void *claims, const uint64_t *len);
void vv_judge_round_close(struct vv_judge_round *c);

/* M2: n_to[r] digests for rank r, in c->query one behind the other, c->n_queries in all. */
int vv_judge_round_queries(struct vv_judge_round *c, uint64_t *n_to);
/* M3, in the order of the queries. len is in bytes. */
int vv_judge_round_answer(struct vv_judge_round *c, const void *answers, uint64_t len);

/* M4: verdict has room for c->n and stays until close; rank r's are those of its claims, from c->first[r] on. host: of each rank,
 * or NULL if each has its own. copies: 1 .. VV_DEDUP_JUDGE_COPIES_MAX; what several hosts hold is stored on so many of them. */
int vv_judge_round_decide(struct vv_judge_round *c, const uint32_t *host, uint32_t copies, uint32_t *verdict);

/* M5 of all ranks, one behind the other; len: bytes of each. */
int vv_judge_round_lent(struct vv_judge_round *c, const void *lent, const uint64_t *len);
/* M6 of all ranks into `word`, which has room for vv_dedup_judge_words of all verdicts; those of rank r are as many as
 * vv_dedup_judge_words says of its verdicts. */
void vv_judge_round_where(const struct vv_judge_round *c, uint64_t *word);

/* The epoch counts: the judge remembers who stored what, and what came back longer than what did not. */
void vv_judge_round_learn(struct vv_judge_round *c);

#endif
