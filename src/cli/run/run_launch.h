/* The command line that starts a program of many ranks: a launcher, and for each rank `varve run --rank`, which becomes the program. */
#ifndef VV_CLI_RUN_RUN_LAUNCH_H
#define VV_CLI_RUN_RUN_LAUNCH_H

#include "cli/run/run_plan.h"

struct vv_run_launch {
	char **word; /* NULL behind the last */
	size_t n, cap;
};

/* Ranks may be where this host's programs are not: on other hosts, in containers that $VARVE_MPIRUN names. */
bool vv_run_launch_is_elsewhere(const struct vv_run_plan *plan);
/* By $VARVE_MPIRUN (words between blanks), srun in a job of Slurm's, else mpirun. What the environment has of varve now goes to every rank as words of env(1):
 * each launcher has an option of its own for that, or none, but all of them pass words on. */
int vv_run_launch_init(struct vv_run_launch *l, const struct vv_run_plan *plan);
void vv_run_launch_fini(struct vv_run_launch *l);

#endif
