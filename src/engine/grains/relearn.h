/* After a restart: hashes regions in grains again, in the background where possible. */
#ifndef VV_ENGINE_GRAINS_RELEARN_H
#define VV_ENGINE_GRAINS_RELEARN_H

#include "engine/grains/grain_sets.h"

/* Regions have just been restored and hold the content of the session's table. may_be_late: a thread can hash watched memory later. */
int vv_relearn_begin(struct varve *v, bool may_be_late);
/* Is memory left to be hashed by vv_relearn_run? */
bool vv_relearn_is_late(const struct varve *v);
/* It has not, after all: what is half known is forgotten. */
void vv_relearn_drop(struct varve *v);
/* On that thread. */
void vv_relearn_run(struct varve *v);
/* Nobody will need it. */
void vv_relearn_give_up(struct varve *v);
/* After gc: of older content only what the regions held in the last epoch is sure to be there. */
void vv_relearn_again(struct varve *v);

#endif
