/* Nicolae 2013: content that several ranks hold is stored by one of them. What is new to a rank becomes a claim; the ranks tell each other
 * (core/ranks/owner_index.h, core/ranks/topk_merge.h), and each claim is then the rank's own to store, or refers to another rank's layer. */
#ifndef VV_ENGINE_WRITE_RANK_DEDUP_H
#define VV_ENGINE_WRITE_RANK_DEDUP_H

#include "engine/write/layer_writer.h"

enum vv_claim_state {
	VV_CLAIM_LOCAL,     /* this rank stores it */
	VV_CLAIM_SHARED,     /* the same, and others refer to it: its position is given already */
	VV_CLAIM_PLACED,   /* it is in the payload */
	VV_CLAIM_REMOTE, /* another rank has it */
};

/* Claim k is entry old_entries + k of the index: so r->now of a chunk names its claim from the survey on. */
struct vv_claims {
	size_t n, cap;
	uint32_t *tag;   /* core/ranks/owner_index.h: length, and where it lies */
	uint8_t *state;
	bool *shared;    /* other chunks of this rank hold the same, and rely on it */
	uint64_t *pos;   /* of those shared */
	uint64_t shared_bytes;   /* bytes that others refer to */
	uint64_t remote_bytes;
	uint64_t ns;     /* that the asking took */
};

int vv_rank_dedup_begin(struct vv_layer_writer *p);
void vv_rank_dedup_end(struct vv_layer_writer *p);

/* The chunk's content is new to this rank: r->now names its claim. `chunk`: its number in the order of memory. */
int vv_rank_dedup_claim(struct vv_layer_writer *p, struct vv_region *r, size_t i, uint64_t chunk, const struct vv_digest *d);
/* The ranks tell each other; all of them come here, with what became of their surveys. Afterwards every claim is LOCAL, SHARED or
 * REMOTE. promise: gives all shared content its position in the payload. */
int vv_rank_dedup_exchange(struct vv_layer_writer *p, int rc, int (*promise)(struct vv_layer_writer *p));

/* The channel on which an epoch is talked about: that of the thread which does it. */
struct vv_comm *vv_rank_dedup_comm(const struct varve *v);
/* The epoch counts: the home ranks remember who stored what. Or it does not, or there is no more use for what was said. */
void vv_rank_dedup_commit(struct varve *v);
void vv_rank_dedup_discard(struct varve *v);

static inline bool vv_rank_dedup_is_claim(const struct vv_layer_writer *p, uint32_t now)
{
	return p->claims && now >= VV_CHUNK_FIRST && now - VV_CHUNK_FIRST >= p->old_entries &&
	       now - VV_CHUNK_FIRST - p->old_entries < p->claims->n;
}

static inline size_t vv_rank_dedup_number(const struct vv_layer_writer *p, uint32_t now)
{
	return now - VV_CHUNK_FIRST - p->old_entries;
}

#endif
