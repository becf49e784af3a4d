/* In which of several rounds a rank requests bytes from another one. Pure, deterministic. */
#ifndef VV_CORE_RANKS_REQUEST_ROUNDS_H
#define VV_CORE_RANKS_REQUEST_ROUNDS_H

#include "base/splitmix64.h"
#include <stdbool.h>
#include <stdint.h>

struct vv_request_rounds { /* the requests of one rank to another */
	uint32_t from, to;
	uint64_t bytes;  /* of all its requests */
	uint64_t rounds; /* at least 1 */
};

/* Is the request of `len` bytes due by this round, after requests of `asked` bytes? By the last
 * round all are. The round of the first request is pseudo-random, so that pairs with few requests
 * are spread evenly over the rounds of a rank. */
static inline bool vv_request_rounds_is_due(const struct vv_request_rounds *p, uint64_t asked, uint64_t len, uint64_t round)
{
	uint64_t phase = vv_splitmix64((uint64_t)p->from << 32 | p->to) % p->rounds;

	return asked * p->rounds + len * phase < p->bytes * (round + 1);
}

#endif
