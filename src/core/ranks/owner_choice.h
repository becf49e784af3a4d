/* Who stores what several ranks hold: the holder that the place of the chunk suggests, unless that is too much for it. */
#ifndef VV_CORE_RANKS_OWNER_CHOICE_H
#define VV_CORE_RANKS_OWNER_CHOICE_H

#include "core/ranks/owner_batch.h"

/* Fills c->copy, c->copies for each group with several claimers (position 0), the number of them in the group's rank, and c->load.
 * `shared` is the number of such groups; c->load is what each rank has to store in any case. host may be NULL. */
void vv_owner_choice_choose(struct vv_owner_batch *c, const uint32_t *host, size_t shared);

#endif
