/* What other ranks ask for of the layers that lie in this one's store (engine/ranks/remote_read.h). */
#ifndef VV_ENGINE_RANKS_REMOTE_SERVE_H
#define VV_ENGINE_RANKS_REMOTE_SERVE_H

#include "base/pool.h"
#include "engine/ranks/exchange.h"
#include "engine/read/salvage.h"

enum { VV_REMOTE_SERVE_MOST = 256 << 10 }; /* bytes of one request */

struct vv_request {
	uint64_t layer, pos, len;
	uint64_t token; /* of the era that is meant (core/format/era_table.h); 0: not known */
};

/* Can all be answered? len[r]: bytes that rank r gets. */
int vv_remote_serve_check(const struct vv_exchange *ask, uint32_t size, uint64_t *len);
/* The answers to all requests, one behind the other; what is not whole, or not what was meant, is added to `bad`. */
int vv_remote_serve_read(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_exchange *ask, uint8_t *to, struct vv_salvage_needs *bad,
		  struct vv_warned *warned);

#endif
