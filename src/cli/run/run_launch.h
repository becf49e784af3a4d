/* The command line that starts a program of many ranks: a launcher, and for each rank `varve run
 * --as-rank`, which becomes the program. */
#ifndef VV_CLI_RUN_RUN_LAUNCH_H
#define VV_CLI_RUN_RUN_LAUNCH_H

#include "cli/run/run_plan.h"

struct vv_run_launch {
	char **word; /* NULL behind the last */
	size_t n, cap;
};

/* Ranks may run where this host's programs are not available: on other hosts, or in containers that
 * $VARVE_MPIRUN names. */
bool vv_run_launch_is_elsewhere(const struct vv_run_plan *plan);
/* Uses $VARVE_MPIRUN (words separated by blanks), srun in a Slurm job, else mpirun. The present
 * varve variables of the environment go to every rank as words of env(1). Each launcher has its own
 * option for variables, or none, but all of them pass words on. */
int vv_run_launch_init(struct vv_run_launch *l, const struct vv_run_plan *plan);
void vv_run_launch_fini(struct vv_run_launch *l);

#endif
