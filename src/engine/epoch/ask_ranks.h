/* Asks the other ranks which content they hold, before any of it is placed. */
#ifndef VV_ENGINE_EPOCH_ASK_RANKS_H
#define VV_ENGINE_EPOCH_ASK_RANKS_H

#include "engine/memory/tiles.h"

/* Hashes and dedups everything, and then asks the other ranks. rc: this rank's result so far. */
int vv_ask_ranks_run(struct vv_layer_writer *p, int rc);
/* Announces, before anything is write-protected, that the ranks will be asked. After a failure,
 * withdraws that. */
void vv_ask_ranks_expect(struct varve *v, bool coming);

#endif
