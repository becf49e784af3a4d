/* A rank that runs elsewhere than when it stored its layer finds it by asking all. */
#ifndef VV_ENGINE_RANKS_REMOTE_TABLE_H
#define VV_ENGINE_RANKS_REMOTE_TABLE_H

#include "engine/context.h"

/* This rank's table of the epoch, from its own place or from whoever has it; all ranks come here. One that came from elsewhere cannot
 * be continued by a delta, which would lie apart from its parent: its depth says so. */
int vv_remote_table_table(struct vv_context *ctx, int rc, uint64_t epoch, struct vv_run_table *out);

#endif
