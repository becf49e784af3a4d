/* The session of one rank among many. All ranks open, wait and close together. */
#ifndef VV_ENGINE_SESSION_RANK_SESSION_H
#define VV_ENGINE_SESSION_RANK_SESSION_H

#include "engine/context.h"

struct varve_comm;

/* First step of opening: forms the group and compares the options. rc: this rank's result so far.
 * All ranks fail together. */
int vv_rank_session_join(struct varve *v, const struct varve_comm *plug, int rc);
/* Second step, with an open store: finds and locks the lineage. */
int vv_rank_session_attach(struct varve *v, const char *lineage, int rc);
void vv_rank_session_leave(struct varve *v);
/* For calls that one rank makes alone: advances the commit of an epoch. Returns true if `epoch`
 * still waits for it. */
bool vv_rank_session_progress(struct varve *v, uint64_t epoch, bool wait);
/* For varve_wait: checks that all ranks wait for the same epoch. */
int vv_rank_session_wait(struct varve *v, uint64_t epoch);
/* For varve_due: the clock of rank 0 decides. A request to any rank applies to all. */
int vv_rank_session_due(struct varve *v, bool asked, int due);

#endif
