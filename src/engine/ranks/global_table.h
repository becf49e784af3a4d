/* The state of all ranks in an epoch as one table: global arrays, lists and shared regions, each as
 * a region. Regions of single ranks are not in it. */
#ifndef VV_ENGINE_RANKS_GLOBAL_TABLE_H
#define VV_ENGINE_RANKS_GLOBAL_TABLE_H

#include "base/pool.h"
#include "engine/lineage/run_table.h"

/* The rank of such a table, where a rank is asked for. */
#define VV_GLOBAL_RANK UINT32_MAX

/* Composes the regions with that name, or all of them (NULL). */
int vv_global_table_load(const struct vv_lineage *lin, struct vv_pool *pool, uint64_t epoch, const char *name, struct vv_run_table *out);

#endif
