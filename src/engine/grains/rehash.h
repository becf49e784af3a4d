/* After a restart: hashes regions in grains again, in the background where possible. */
#ifndef VV_ENGINE_GRAINS_REHASH_H
#define VV_ENGINE_GRAINS_REHASH_H

#include "engine/grains/grain_sets.h"

/* Regions have just been restored and hold the content of the session's table. may_be_late: a thread can hash watched memory later. */
int vv_rehash_begin(struct varve *v, bool may_be_late);
/* Is memory left to be hashed by vv_rehash_run? */
bool vv_rehash_is_pending(const struct varve *v);
/* It has not, after all: what is half known is forgotten. */
void vv_rehash_drop(struct varve *v);
/* On that thread. */
void vv_rehash_run(struct varve *v);
/* Nobody will need it. */
void vv_rehash_cancel(struct varve *v);
/* After gc: of older content only what the regions held in the last epoch is sure to be there. */
void vv_rehash_after_gc(struct varve *v);

#endif
