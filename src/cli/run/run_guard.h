/* A process beside us that outlives us for a moment: if we are killed, it kills the program's group, and removes what we would have. The kernel would do so for our child alone; what that has
 * started in turn would run on, and hold the lineage. */
#ifndef VV_CLI_RUN_RUN_GUARD_H
#define VV_CLI_RUN_RUN_GUARD_H

#include <sys/types.h>

struct vv_run_guard {
	pid_t pid;
	int fd;
};

/* path: a file that goes, too. */
int vv_run_guard_open(struct vv_run_guard *g, const char *path);
/* Which group; 0: none. */
void vv_run_guard_set(const struct vv_run_guard *g, pid_t group);
void vv_run_guard_close(struct vv_run_guard *g);

#endif
