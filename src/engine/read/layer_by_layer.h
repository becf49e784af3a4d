/* A restart in the order of writing: the oldest table's bytes in full, then the bytes of each later
 * layer over them, window by window. With many small pieces over a large whole, that is less work
 * than merging the tables first. Most overwritten bytes are in pages that must be read and hashed
 * for their other bytes anyway. Whole pages are not copied over each other: each comes from the
 * newest layer that has it. It copies only bytes that are uncompressed, cached and matching their
 * digests; readers of merged tables do the rest. */
#ifndef VV_ENGINE_READ_LAYER_BY_LAYER_H
#define VV_ENGINE_READ_LAYER_BY_LAYER_H

#include "base/pool.h"
#include "engine/read/restore.h"
#include "engine/lineage/run_table.h"

/* Is it worth trying? The wants are whole regions of the table, by name. */
bool vv_layer_by_layer_pays(const struct vv_run_table *t, const struct vv_want *want, size_t n);
/* Returns true if all wants are filled and checked. Otherwise their content is undefined, and no
 * reason is reported. */
bool vv_layer_by_layer_read(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_run_table *t, const struct vv_want *want, size_t n);

#endif
