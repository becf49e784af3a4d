/* A restart as the layers were laid down: the oldest table's bytes whole, then what each later layer has over them, a window of the region after the other. Where many
 * small pieces lie over a large whole that is less work than to merge the tables first: most of what lies below is in pages that must be read and hashed
 * for their other bytes anyway. Whole pages are not copied one over the other: each comes from the newest layer that has it. It copies what is plain, in the page cache and as its digests say; everything else is for those who read by merged tables. */
#ifndef VV_ENGINE_READ_LAYER_BY_LAYER_H
#define VV_ENGINE_READ_LAYER_BY_LAYER_H

#include "base/pool.h"
#include "engine/read/restore.h"
#include "engine/lineage/run_table.h"

/* Is it worth trying? The wants are whole regions of the table, by name. */
bool vv_layer_by_layer_pays(const struct vv_run_table *t, const struct vv_want *want, size_t n);
/* Are all of them filled, and checked? If not they may hold anything, and nothing is said about why. */
bool vv_layer_by_layer_read(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_run_table *t, const struct vv_want *want, size_t n);

#endif
