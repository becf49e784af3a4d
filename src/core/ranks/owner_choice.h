/* The choice of the owner of content that several ranks hold. It is the holder suggested by the
 * place of the chunk, unless the load is too much for that holder. */
#ifndef VV_CORE_RANKS_OWNER_CHOICE_H
#define VV_CORE_RANKS_OWNER_CHOICE_H

#include "core/ranks/owner_batch.h"

/* Fills c->copy and c->copies (position 0) for each group with several claimers, their number in
 * the group's rank, and c->load. The number of such groups is `shared`. On entry c->load is the
 * load that each rank has to store in any case. The argument `host` may be NULL. */
void vv_owner_choice_choose(struct vv_owner_batch *c, const uint32_t *host, size_t shared);

#endif
