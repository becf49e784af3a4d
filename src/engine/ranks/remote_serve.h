/* Answers the requests of other ranks for layers in this rank's store
 * (engine/ranks/remote_read.h). */
#ifndef VV_ENGINE_RANKS_REMOTE_SERVE_H
#define VV_ENGINE_RANKS_REMOTE_SERVE_H

#include "base/pool.h"
#include "engine/ranks/exchange.h"
#include "engine/read/salvage.h"

enum { VV_REMOTE_SERVE_MOST = 256 << 10 }; /* limit of one request in bytes */

struct vv_request {
	uint64_t layer, pos, len;
	uint64_t token; /* of the requested era (core/format/era_table.h); 0: not known */
};

/* Can all requests be answered? len[r]: bytes that rank r gets. */
int vv_remote_serve_check(const struct vv_exchange *ask, uint32_t size, uint64_t *len);
/* Writes the answers to all requests, one after the other. Bytes that are not intact, or of another
 * era than requested, are listed in `bad`, which is empty before. */
int vv_remote_serve_read(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_exchange *ask, uint8_t *to, struct vv_salvage_needs *bad,
		  struct vv_warned *warned);

#endif
