/* Where ranks store: which of them see the same store, and which are on the same machine. */
#ifndef VV_ENGINE_WHOSE_H
#define VV_ENGINE_WHOSE_H

#include "engine/ranks/group.h"

/* All ranks, after each has opened its store: finds g->place, g->host and g->split. */
int vv_whose_find(struct vv_ranks *g, struct vv_store *store, const char *lineage);

#endif
