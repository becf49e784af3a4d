/* After a restart: hashes regions in grains again, in the background where possible. */
#ifndef VV_ENGINE_GRAINS_REHASH_H
#define VV_ENGINE_GRAINS_REHASH_H

#include "engine/grains/grain_sets.h"

/* The regions have just been restored and hold the content of the session's table. may_be_late: a
 * thread can hash watched memory later. */
int vv_rehash_begin(struct varve *v, bool may_be_late);
/* Is memory left to be hashed by vv_rehash_run? */
bool vv_rehash_is_pending(const struct varve *v);
/* The restart failed after all. Forgets incomplete knowledge. */
void vv_rehash_drop(struct varve *v);
/* Called on the background thread. */
void vv_rehash_run(struct varve *v);
/* Cancels the hashing, since its result is not needed. */
void vv_rehash_cancel(struct varve *v);
/* After gc, older content is certain to exist only if the regions held it in the last epoch. */
void vv_rehash_after_gc(struct varve *v);

#endif
