/* A guard process that briefly outlives the supervisor. If the supervisor is killed, the guard
 * kills the program's group and removes the supervisor's file. The kernel would kill only the
 * direct child; the processes started by the child would continue, and hold the lineage. */
#ifndef VV_CLI_RUN_RUN_GUARD_H
#define VV_CLI_RUN_RUN_GUARD_H

#include <sys/types.h>

struct vv_run_guard {
	pid_t pid;
	int fd;
};

/* path: a file that the guard removes, too. */
int vv_run_guard_open(struct vv_run_guard *g, const char *path);
/* The group to kill; 0: none. */
void vv_run_guard_set(const struct vv_run_guard *g, pid_t group);
void vv_run_guard_close(struct vv_run_guard *g);

#endif
