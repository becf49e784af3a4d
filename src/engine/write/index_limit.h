/* Limits the digest index: the amount of stored content that is remembered. */
#ifndef VV_ENGINE_WRITE_INDEX_LIMIT_H
#define VV_ENGINE_WRITE_INDEX_LIMIT_H

#include "engine/context.h"

/* Loads the index again: the content of the regions, or of the epoch that is continued, and the
 * newest of the rest. */
int vv_index_limit_load(struct varve *v, struct vv_index_cache *out);
/* Does the index have all content of the epoch that is continued? */
bool vv_index_limit_is_complete(struct varve *v);
/* After an epoch: drops entries above the limit, and saves the cache to the store now and then. */
void vv_index_limit_enforce(struct varve *v);
/* Drops entries until there are `limit`, the oldest first, but none that a region uses. VV_ENOMEM:
 * nothing has changed. */
int vv_index_limit_shrink(struct varve *v, size_t limit);
/* After gc: drops entries of content that the store no longer has. On failure the index is
 * unusable: vv_retention_prune. */
int vv_index_limit_prune(struct varve *v);
/* The number of digests that this rank may remember as a home rank. */
size_t vv_index_limit_owner_entries(const struct varve *v);

#endif
