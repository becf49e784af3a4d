/* The life of an epoch of this rank: begun, stored, committed and accepted, or abandoned. */
#ifndef VV_ENGINE_SESSION_EPOCH_H
#define VV_ENGINE_SESSION_EPOCH_H

#include "engine/write/layer_writer.h"

/* At the call of varve_checkpoint. */
int vv_epoch_new(struct varve *v, struct vv_layer_writer **out);
void vv_epoch_free(struct vv_layer_writer *p);
/* Stores everything that was captured. A single rank commits the epoch as well; many ranks agree first (commit_ranks.h). */
int vv_epoch_store(struct vv_layer_writer *p);
/* The epoch is committed: the session continues from it. */
void vv_epoch_accept(struct vv_layer_writer *p);
/* Undoes an epoch that is not accepted, from whatever step it has reached: nothing of it is left in the store, the index or the regions. */
void vv_epoch_abandon(struct vv_layer_writer *p);
/* The ranks have given the epoch up: drops the state that they share about it. */
void vv_epoch_forget_shared(struct varve *v);

#endif
