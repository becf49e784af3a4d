/* The session of one rank among many: opening, waiting and closing, which all ranks do together. */
#ifndef VV_ENGINE_SESSION_RANK_SESSION_H
#define VV_ENGINE_SESSION_RANK_SESSION_H

#include "engine/context.h"

struct varve_comm;

/* Opening, first step: forms the group and compares the options. `rc` is this rank's result so far; all ranks fail together. */
int vv_rank_session_join(struct varve *v, const struct varve_comm *plug, int rc);
/* Second step, with the store open: finds and locks the lineage. */
int vv_rank_session_attach(struct varve *v, const char *lineage, int rc);
void vv_rank_session_leave(struct varve *v);
/* In calls that one rank makes for itself: lets the commit of an epoch proceed. Returns whether `epoch` still waits for it. */
bool vv_rank_session_progress(struct varve *v, uint64_t epoch, bool wait);
/* varve_wait: checks that all ranks wait, and for the same epoch. */
int vv_rank_session_wait(struct varve *v, uint64_t epoch);
/* varve_due: the clock of rank 0 decides; a request to any rank counts for all. */
int vv_rank_session_due(struct varve *v, bool asked, int due);

#endif
