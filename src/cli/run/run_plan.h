/* The request to `varve run`. */
#ifndef VV_CLI_RUN_RUN_PLAN_H
#define VV_CLI_RUN_RUN_PLAN_H

#include "cli/base/verb_context.h"
#include <limits.h>

struct vv_run_plan {
	struct vv_verb_context *job;
	char *const *command; /* NULL behind the last word */
	char store[PATH_MAX]; /* an absolute path */
	char lineage[VV_NAME_LINEAGE_MAX + 1];
	char preload[PATH_MAX]; /* libvarve_preload.so */
	uint64_t first;         /* the epoch to begin with: 0 is none, UINT64_MAX the newest */
	uint64_t retries;
	uint64_t ranks;         /* started by a launcher; 0: the program itself */
	/* checkpoints after a restart that is only rehearsed; 0: no rehearsal */
	uint64_t rehearse;
	double grace_s;
	bool globals;
	bool free_unreachable;
	bool mpi_as_asked;      /* the program chooses MPI's thread level */
	bool last;              /* SIGUSR1 asks for the last checkpoint, as SIGTERM does */
	int signal;             /* the request signal of the program; 0: none */
};

#endif
