/* Opening and closing a session. */
#ifndef VV_ENGINE_SESSION_SESSION_H
#define VV_ENGINE_SESSION_SESSION_H

#include "engine/context.h"

struct varve_comm;

/* comm: the ranks of the program, or NULL for a single one. */
int vv_session_open(const struct varve_comm *comm, const char *store, const char *lineage, const char *options, varve **out);

#endif
