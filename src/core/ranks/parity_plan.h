/* The layout of parity: which blocks of which layers form a stripe, and who stores its parity. It
 * follows from the lengths and failure domains of the layers alone, so every rank computes the
 * same. The blocks of a stripe lie in different domains. */
#ifndef VV_CORE_RANKS_PARITY_PLAN_H
#define VV_CORE_RANKS_PARITY_PLAN_H

#include "core/format/parity.h"
#include "core/ranks/erasure_code.h"

enum { VV_PARITY_BLOCKS = 1 << 22 }; /* the most data blocks of a plan, */
#define VV_PARITY_STEPS (1ull << 30)  /* the most blocks times layers, */
#define VV_PARITY_CELLS (2ull * VV_PARITY_BLOCKS) /* and the most stripes times their blocks: memory of a plan */

struct vv_parity_block { /* of a stripe: a block of a member's layer, or of its parity */
	uint64_t at;     /* position of the block in it */
	uint32_t number; /* among the blocks of that layer or parity, from 0 on */
	uint32_t member;
	uint32_t len;    /* parity: the longest block of the stripe */
};

struct vv_parity_plan {
	struct vv_erasure_code code;
	uint32_t block_len;
	size_t n_members, n_stripes;
	/* Of each stripe k + m blocks: the data, the parity. Data blocks of length 0 are absent,
	 * behind the others. */
	struct vv_parity_block *block;
	uint64_t *parity_len; /* of each member: the sum of its parity blocks, */
	uint64_t *n_parity;   /* and their number */
};

static inline uint64_t vv_parity_plan_blocks(uint64_t len, uint32_t block_len)
{
	return len / block_len + (len % block_len != 0);
}

/* VV_EINVAL if the members have fewer domains than a stripe has blocks, or too many blocks. */
int vv_parity_plan_make(struct vv_parity_plan *p, const struct vv_parity_head *head);
/* Only the stripes with parity of rank `head->rank`, which has `most` bytes at most, else
 * VV_EINVAL. So an object asks for no more memory than fits its length. */
int vv_parity_plan_make_own(struct vv_parity_plan *p, const struct vv_parity_head *head, uint64_t most);
void vv_parity_plan_fini(struct vv_parity_plan *p);

static inline const struct vv_parity_block *vv_parity_plan_stripe(const struct vv_parity_plan *p, size_t stripe)
{
	return p->block + stripe * (p->code.k + p->code.m);
}

/* The number of data blocks of a stripe. */
unsigned vv_parity_plan_data(const struct vv_parity_plan *p, const struct vv_parity_block *stripe);

/* The number of sets into which the domains are divided, each of at least `width`, or all in one.
 * Domain d is in set d modulo this number. */
size_t vv_parity_plan_sets(size_t n_domains, size_t width);

#endif
