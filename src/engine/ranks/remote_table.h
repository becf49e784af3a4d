/* Finds the layer of a rank that now runs elsewhere than when it stored the layer, by asking all
 * ranks. */
#ifndef VV_ENGINE_RANKS_REMOTE_TABLE_H
#define VV_ENGINE_RANKS_REMOTE_TABLE_H

#include "engine/context.h"

/* This rank's table of the epoch, from its own storage node or from another one; all ranks call
 * this. A table from elsewhere cannot be continued by a delta, which would be apart from its
 * parent. The table's depth shows that. */
int vv_remote_table_table(struct vv_context *ctx, int rc, uint64_t epoch, struct vv_run_table *out);
/* The tables of n ranks of an epoch that `ranks` ranks wrote. Each rank may ask for others. Without
 * a group, they are in this store. */
int vv_remote_table_many(struct vv_context *ctx, int rc, uint64_t epoch, uint32_t ranks, const uint32_t *rank, size_t n, struct vv_run_table *out);

#endif
