/* Where the chunks of one state of the regions lie: what an index must have, so that the next epoch is incremental. */
#ifndef VV_ENGINE_NEEDS_H
#define VV_ENGINE_NEEDS_H

#include "core/dedup/index.h"
#include "engine/lineage/run_table.h"

struct vv_need { /* adjacent chunks of one layer; the last may be shorter */
	uint64_t layer, pos, end;
	uint64_t reach; /* how far any need of the layer goes that begins at or before pos */
	uint32_t chunk; /* 0: they are cut by content */
};

struct vv_needs { /* all zero is none */
	struct vv_need *v;
	size_t n, cap;
};

void vv_needs_fini(struct vv_needs *n);
int vv_needs_add(struct vv_needs *n, uint64_t layer, uint64_t pos, uint64_t len, uint32_t chunk);
/* All that a table has of this rank's layers, but of the regions that are left out (by number; NULL: none). */
int vv_needs_add_table(struct vv_needs *n, const struct vv_table *t, uint32_t rank, const bool *left_out);
/* After all are added, before any of the questions. */
void vv_needs_settle(struct vv_needs *n);

/* Anything of this layer? The chunk at this position of it? */
bool vv_needs_layer(const struct vv_needs *n, uint64_t layer);
bool vv_needs_chunk(const struct vv_needs *n, uint64_t layer, uint64_t pos);
/* Are all chunks among the first `entries` entries, which are in the order of their places? Of those that are cut by content: at least one at or before each
 * need, for what is oldest is forgotten first. */
bool vv_needs_met(const struct vv_needs *n, const struct vv_index *x, size_t entries);

#endif
