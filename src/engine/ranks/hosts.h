/* Finds the ranks that see the same store, and those on the same machine. */
#ifndef VV_ENGINE_RANKS_HOSTS_H
#define VV_ENGINE_RANKS_HOSTS_H

#include "engine/ranks/group.h"

/* Called by all ranks, after each has opened its store. Sets g->storage_node, g->host and
 * g->has_local_stores. */
int vv_hosts_find(struct vv_group *g, struct vv_store *store, const char *lineage);
/* Called by all ranks. *shared: `store` is the same store on all ranks. NULL: this rank has
 * none. */
int vv_hosts_share(struct vv_group *g, struct vv_store *store, const char *lineage, bool *shared);
/* A text that no other machine has. */
void vv_hosts_machine(char out[64]);

#endif
