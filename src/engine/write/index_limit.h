/* The digest index is bounded: how much of the stored content is remembered. */
#ifndef VV_ENGINE_WRITE_INDEX_LIMIT_H
#define VV_ENGINE_WRITE_INDEX_LIMIT_H

#include "engine/context.h"

/* How much of what is stored is remembered. The index, read anew: what the regions hold, or the epoch that is
 * continued, and of the rest what is newest. */
int vv_index_limit_load(struct varve *v, struct vv_index_cache *out);
/* Does the index know all that the epoch holds which is continued? */
bool vv_index_limit_is_complete(struct varve *v);
/* After an epoch: what is too much leaves the index, and the store gets a copy of it now and then. */
void vv_index_limit_enforce(struct varve *v);
/* Entries leave the index until there are `limit`, the oldest first, but none that a region holds. VV_ENOMEM: all is as it was. */
int vv_index_limit_shrink(struct varve *v, size_t limit);
/* After gc: entries of content that the store no longer has leave the index. On failure the index is of no use: vv_retention_prune. */
int vv_index_limit_prune(struct varve *v);
/* Digests that this rank may remember as a judge. */
size_t vv_index_limit_owner_entries(const struct varve *v);

#endif
