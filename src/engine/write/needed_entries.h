/* The positions of the chunks of one state of the regions: the entries that an index must have for
 * an incremental next epoch. */
#ifndef VV_ENGINE_WRITE_NEEDED_ENTRIES_H
#define VV_ENGINE_WRITE_NEEDED_ENTRIES_H

#include "core/dedup/index.h"
#include "engine/lineage/run_table.h"

struct vv_need { /* adjacent chunks of one layer; the last may be shorter */
	uint64_t layer, pos, end;
	uint64_t reach; /* the highest end of the layer's needs that begin at or before pos */
	uint32_t chunk; /* 0: cut by content */
};

struct vv_needed_entries { /* all zero is none */
	struct vv_need *v;
	size_t n, cap;
};

void vv_needed_entries_fini(struct vv_needed_entries *n);
int vv_needed_entries_add(struct vv_needed_entries *n, uint64_t layer, uint64_t pos, uint64_t len, uint32_t chunk);
/* Adds all chunks of a table in this rank's layers, except those of regions that are left out (by
 * number; NULL: none). */
int vv_needed_entries_add_table(struct vv_needed_entries *n, const struct vv_run_table *t, uint32_t rank, const bool *left_out);
/* After all are added, before any query. */
void vv_needed_entries_sort(struct vv_needed_entries *n);

/* Is any chunk of this layer needed? The chunk at this position of it? */
bool vv_needed_entries_layer(const struct vv_needed_entries *n, uint64_t layer);
bool vv_needed_entries_chunk(const struct vv_needed_entries *n, uint64_t layer, uint64_t pos);
/* Are all chunks among the first `entries` entries, which are ordered by position? For chunks cut
 * by content: at least one at or before each need, since the oldest entries are dropped first. */
bool vv_needed_entries_are_in(const struct vv_needed_entries *n, const struct vv_index *x, size_t entries);

#endif
