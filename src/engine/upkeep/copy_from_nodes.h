/* Copies an epoch of ranks with stores of their own to a store that all of them reach. The storage
 * nodes copy their layers side by side, without a lock. The layers need none: nothing refers to
 * them until one rank, under the lock, finds all of them and commits the epoch. */
#ifndef VV_ENGINE_UPKEEP_COPY_FROM_NODES_H
#define VV_ENGINE_UPKEEP_COPY_FROM_NODES_H

#include "engine/upkeep/copy_lineage.h"
#include "engine/upkeep/reachable.h"

/* Copies the layers of this storage node that the epoch needs. The epoch's own layers come last, so
 * they show that the others are there. VV_EMISMATCH: the destination has another epoch of this
 * number, or another lineage of this name. */
int vv_copy_from_nodes_run(const struct vv_copy_request *q, uint64_t epoch, const struct vv_reachable *layers);

/* Commits the epoch at the destination when all that it needs is there. Calls `wait` before each
 * further look, until that returns an error. No storage node copies a newer epoch meanwhile. */
int vv_copy_from_nodes_commit(const struct vv_copy_request *q, uint64_t epoch, int (*wait)(void *arg), void *arg);

#endif
