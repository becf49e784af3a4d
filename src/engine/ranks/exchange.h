/* Messages from every rank to every rank: consecutive bytes, and the lengths for and from each. All
 * ranks call each of these together and pass their return code so far. A failure on one rank fails
 * on all. */
#ifndef VV_ENGINE_RANKS_EXCHANGE_H
#define VV_ENGINE_RANKS_EXCHANGE_H

#include "base/buf.h"
#include "engine/ranks/group.h"

struct vv_exchange {
	uint8_t *out, *in;
	uint64_t *out_len, *in_len;
	uint64_t in_sum;
};

/* Room for `out` bytes. */
int vv_exchange_new(struct vv_exchange *m, uint32_t ranks, size_t out);
/* Once the group is broken, the memory is only set aside: other ranks may still write it. */
void vv_exchange_free(struct vv_exchange *m, const struct vv_group *g);
/* Makes room for the incoming bytes, in whole units. in_len is known. */
int vv_exchange_alloc_in(struct vv_exchange *m, uint32_t ranks, uint64_t unit);
/* Sends out, by out_len; incoming bytes are whole units. */
int vv_exchange_send(struct vv_exchange *m, struct vv_group *g, int rc, uint64_t unit);
/* The same with in_len known. */
int vv_exchange_reply(struct vv_exchange *m, struct vv_group *g, int rc, uint64_t unit);
/* Every rank gets the bytes of every rank, at most `most` from each. */
int vv_exchange_gather(struct vv_exchange *m, struct vv_group *g, int rc, const void *mine, size_t n, size_t most);
static inline const uint8_t *vv_exchange_from(const struct vv_exchange *m, const struct vv_group *g, uint32_t rank)
{
	return m->in + rank * (m->in_sum / g->size);
}

#endif
