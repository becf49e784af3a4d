/* What `varve run` was asked to do. */
#ifndef VV_CLI_RUN_RUN_PLAN_H
#define VV_CLI_RUN_RUN_PLAN_H

#include "cli/base/verb_context.h"
#include <limits.h>

struct vv_run_plan {
	struct vv_verb_context *job;
	char *const *command; /* NULL behind the last word */
	char store[PATH_MAX]; /* by a path that holds in every folder */
	char lineage[VV_NAME_LINEAGE_MAX + 1];
	char preload[PATH_MAX]; /* libvarve_preload.so */
	uint64_t first;         /* the epoch to begin with: 0 is none, UINT64_MAX the newest */
	uint64_t retries;
	uint64_t ranks;         /* started by a launcher; 0: the program itself */
	uint64_t rehearse;      /* checkpoints after a restart that is only tried; 0: none is */
	double grace_s;
	bool globals;
	bool mpi_as_asked;      /* MPI's thread level is the program's */
	bool last;              /* SIGUSR1 asks for the last checkpoint, as SIGTERM does */
	int signal;             /* that the program takes as a request; 0: none */
};

#endif
