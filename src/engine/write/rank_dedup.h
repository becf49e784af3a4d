/* Nicolae 2013: content of several ranks is stored by one of them. Content new to a rank becomes a
 * claim, and the ranks exchange claims (core/ranks/owner_index.h, core/ranks/topk_merge.h). The
 * rank then stores the claim itself, or refers to another rank's layer. */
#ifndef VV_ENGINE_WRITE_RANK_DEDUP_H
#define VV_ENGINE_WRITE_RANK_DEDUP_H

#include "engine/write/layer_writer.h"

enum vv_claim_state {
	VV_CLAIM_LOCAL,     /* this rank stores it */
	VV_CLAIM_SHARED,     /* the same, and others refer to it: its position is promised */
	VV_CLAIM_PLACED,   /* it is in the payload */
	VV_CLAIM_REMOTE, /* another rank has it */
};

/* Claim k is entry old_entries + k of the index: so r->now of a chunk names its claim from the
 * survey on. */
struct vv_claims {
	size_t n, cap;
	uint32_t *tag;   /* core/ranks/owner_index.h: length, and location */
	uint8_t *state;
	bool *shared;    /* other chunks of this rank have the same content and rely on it */
	uint64_t *pos;   /* of the shared ones */
	bool kept_promises; /* content with a promised position has been placed */
	uint64_t shared_bytes;   /* bytes that others refer to */
	uint64_t ns;     /* time of the exchange */
};

int vv_rank_dedup_begin(struct vv_layer_writer *p);
void vv_rank_dedup_end(struct vv_layer_writer *p);

/* The chunk's content is new to this rank: r->now names its claim. `chunk`: its number in the order
 * of memory. */
int vv_rank_dedup_claim(struct vv_layer_writer *p, struct vv_region *r, size_t i, uint64_t chunk, const struct vv_digest *d);
/* Exchanges the claims. All ranks call this, with the return codes of their surveys. Afterwards
 * every claim is LOCAL, SHARED or REMOTE. promise: gives all shared content its position in the
 * payload. */
int vv_rank_dedup_exchange(struct vv_layer_writer *p, int rc, int (*promise)(struct vv_layer_writer *p));

/* The channel for the exchange of an epoch: that of the thread which stores it. */
struct vv_comm *vv_rank_dedup_comm(const struct varve *v);
/* After a commit of the epoch, the home ranks remember the owners of its content. Otherwise
 * vv_rank_dedup_discard drops the messages of the epoch; also when they are not needed any more. */
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
