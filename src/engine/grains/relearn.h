/* After a restart: hashes regions in grains again, in the background where possible. */
#ifndef VV_ENGINE_RECALL_H
#define VV_ENGINE_RECALL_H

#include "engine/grains/grain_sets.h"

/* Regions have just been restored and hold the content of the session's table. may_be_late: a thread can hash watched memory later. */
int vv_recall_begin(struct varve *v, bool may_be_late);
/* Is memory left to be hashed by vv_recall_run? */
bool vv_recall_is_late(const struct varve *v);
/* It has not, after all: what is half known is forgotten. */
void vv_recall_drop(struct varve *v);
/* On that thread. */
void vv_recall_run(struct varve *v);
/* Nobody will need it. */
void vv_recall_give_up(struct varve *v);
/* After gc: of older content only what the regions held in the last epoch is sure to be there. */
void vv_recall_again(struct varve *v);

#endif
