/* The environment of the program: the preloaded library, addresses that are the same in every run,
 * and the variables of engine/run_protocol.h. */
#ifndef VV_CLI_RUN_RUN_ENV_H
#define VV_CLI_RUN_RUN_ENV_H

#include "cli/run/run_plan.h"

/* The path of this command. */
int vv_run_env_self(char path[PATH_MAX]);
/* $VARVE_PRELOAD, or the library beside the command, in the build or the installation. */
int vv_run_env_library(char path[PATH_MAX]);
/* url: NULL is the default. */
int vv_run_env_store(const char *url, char out[PATH_MAX]);
/* A lineage's name from the name of the command: characters that are not allowed become '-'. */
void vv_run_env_lineage(const char *command, char out[VV_NAME_LINEAGE_MAX + 1]);

/* Sets the variables for programs that are started from now on; events: NULL if no process reads
 * them. */
int vv_run_env_terms(const struct vv_run_plan *plan, const char *events);
int vv_run_env_restart(uint64_t epoch); /* as in the plan */
/* For a rehearsal in this store; the epochs are those of struct vv_rehearse. */
int vv_run_env_rehearse(const char *store, uint64_t look, uint64_t last);
/* Sets up the library and the addresses: only for the program itself, not for its launcher. */
int vv_run_env_enter(const char *library);

#endif
