/* Asks the other ranks which content they hold, before any of it is placed. */
#ifndef VV_ENGINE_SESSION_ASK_RANKS_H
#define VV_ENGINE_SESSION_ASK_RANKS_H

#include "engine/memory/tiles.h"

/* The part of it that must be done before the other ranks can be asked, and the asking; `rc`: what went before, on this rank. */
int vv_ask_ranks_run(struct vv_layer_writer *p, int rc);
/* Before anything is write-protected: the ranks will be asked; or, after a failure, they will not. */
void vv_ask_ranks_expect(struct varve *v, bool coming);

#endif
