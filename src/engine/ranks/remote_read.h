/* Filling the regions of all ranks, wherever the bytes lie: in this rank's own place, in the place of another one, or, where they are
 * damaged, in another copy. All ranks come here together; what fails on one fails on all. */
#ifndef VV_ENGINE_RANKS_REMOTE_READ_H
#define VV_ENGINE_RANKS_REMOTE_READ_H

#include "engine/read/restore.h"
#include "engine/context.h"

/* `rc` is what became of this rank's part so far. copied[i]: bytes of want i are not from where its runs say. */
int vv_remote_read_read(struct vv_context *ctx, int rc, const struct vv_want *want, size_t n, bool *copied);
/* The same of one store for all, for what lies in the same blocks on many ranks: each layer is read and decoded by one rank of a host, which hands the others
 * their bytes. */
int vv_remote_read_spread(struct vv_context *ctx, int rc, const struct vv_want *want, size_t n, bool *copied);

#endif
