/* Retention: the options keep and keep-every, and garbage collection after an epoch. */
#ifndef VV_ENGINE_RETAIN_H
#define VV_ENGINE_RETAIN_H

#include "engine/session.h"

/* `bytes`: of the epoch just laid down. Has gc been at work? */
bool vv_retain_run(struct varve *v, uint64_t bytes);
/* Where ranks have stores of their own: rank 0 says which epochs go (those below the cutoff that `every` does not divide), the leader
 * of each place drops them; and before a checkpoint in which any of them wants it, all take the space back together. */
void vv_retain_rule(struct varve *v, uint64_t bytes, uint64_t *cutoff, uint64_t *every);
void vv_retain_obey(struct varve *v, uint64_t bytes, uint64_t cutoff, uint64_t every);
/* After gc: the index and the regions forget content that the store no longer has. */
int vv_retain_prune(struct varve *v);
bool vv_retain_wants(const struct varve *v);
int vv_retain_reclaim(struct varve *v);

#endif
