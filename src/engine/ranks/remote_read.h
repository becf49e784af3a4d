/* Fills the regions of all ranks: from the rank's own storage node, from another one, or, for
 * damaged bytes, from another copy. All ranks call this together; a failure on one fails on all. */
#ifndef VV_ENGINE_RANKS_REMOTE_READ_H
#define VV_ENGINE_RANKS_REMOTE_READ_H

#include "engine/read/restore.h"
#include "engine/context.h"

/* The argument rc is the return code of this rank's part so far. Sets copied[i] if some bytes of
 * want i are from another copy than its runs name. */
int vv_remote_read_read(struct vv_context *ctx, int rc, const struct vv_want *want, size_t n, bool *copied);
/* The same for one store of all ranks, where many ranks need the same blocks. Each layer is read
 * and decoded by one rank of a host, which sends the others their bytes. */
int vv_remote_read_spread(struct vv_context *ctx, int rc, const struct vv_want *want, size_t n, bool *copied);
/* The same, where each layer is read by one rank of all. */
int vv_remote_read_once(struct vv_context *ctx, int rc, const struct vv_want *want, size_t n, bool *copied);

#endif
