/* What the program finds around it: the library in front of all others, addresses that are the same every time, and the terms of engine/run_protocol.h in its
 * environment. */
#ifndef VV_CLI_RUN_RUN_ENV_H
#define VV_CLI_RUN_RUN_ENV_H

#include "cli/run/run_plan.h"

/* Where this command is. */
int vv_run_env_self(char path[PATH_MAX]);
/* $VARVE_PRELOAD, or beside the command, as it was built or installed. */
int vv_run_env_library(char path[PATH_MAX]);
/* url: NULL is the default. */
int vv_run_env_store(const char *url, char out[PATH_MAX]);
/* After the name of the command: what cannot be part of a lineage's name becomes '-'. */
void vv_run_env_lineage(const char *command, char out[VV_NAME_LINEAGE_MAX + 1]);

/* The terms, for programs that are started from now on; events: NULL if nobody listens. */
int vv_run_env_terms(const struct vv_run_plan *plan, const char *events);
int vv_run_env_restart(uint64_t epoch); /* as in the plan */
/* For a rehearsal: into this store; the epochs are those of struct vv_rehearse. */
int vv_run_env_rehearse(const char *store, uint64_t look, uint64_t last);
/* The library, and addresses: only for the program itself, not for what starts it. */
int vv_run_env_enter(const char *library);

#endif
