/* Where ranks store: which of them see the same store, and which are on the same machine. */
#ifndef VV_ENGINE_RANKS_HOSTS_H
#define VV_ENGINE_RANKS_HOSTS_H

#include "engine/ranks/group.h"

/* All ranks, after each has opened its store: finds g->place, g->host and g->split. */
int vv_hosts_find(struct vv_group *g, struct vv_store *store, const char *lineage);

#endif
