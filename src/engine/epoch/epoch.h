/* The life of an epoch of this rank: begun, stored, committed and accepted, or abandoned. */
#ifndef VV_ENGINE_EPOCH_EPOCH_H
#define VV_ENGINE_EPOCH_EPOCH_H

#include "engine/write/layer_writer.h"

/* Begins an epoch, in the call of varve_checkpoint. */
int vv_epoch_new(struct varve *v, struct vv_layer_writer **out);
void vv_epoch_free(struct vv_layer_writer *p);
/* Stores all captured memory. A single rank also commits the epoch. Several ranks agree first
 * (commit_ranks.h). */
int vv_epoch_store(struct vv_layer_writer *p);
/* The session continues from the epoch. It is committed or, among ranks, stored on this rank. */
void vv_epoch_accept(struct vv_layer_writer *p);
/* Undoes an epoch that was not accepted, at any step. Nothing of it remains in the store, the index
 * or the regions. */
void vv_epoch_abandon(struct vv_layer_writer *p);
/* Drops the shared state of an epoch that the ranks have given up. */
void vv_epoch_forget_shared(struct varve *v);

#endif
