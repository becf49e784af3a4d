/* A process that may be asked for a checkpoint by a signal: one that does not catch it would be ended by it. */
#ifndef VV_CLI_RUN_LISTENER_H
#define VV_CLI_RUN_LISTENER_H

#include <stdbool.h>
#include <sys/types.h>

struct vv_listener {
	char state;  /* as in /proc: R, S, Z, ... */
	pid_t leader; /* of the threads: the process */
	unsigned long long caught; /* one bit for each signal */
};

/* false, with errno: it cannot be looked at. */
bool vv_listener_read(pid_t pid, struct vv_listener *out);
bool vv_listener_catches(const struct vv_listener *l, int sig);
/* Is it a child of the other, or of one of its children? */
bool vv_listener_is_below(pid_t pid, pid_t root);
/* Sends the signal to those processes of a group that catch it: how many. */
unsigned vv_listener_signal(pid_t group, int sig);
/* The same of its children and theirs, as far as they were started with the variable in their environment: not all launchers of MPI pass
 * signals on to their ranks. */
unsigned vv_listener_signal_below(pid_t pid, const char *variable, int sig);

#endif
