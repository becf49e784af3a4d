/* A process from which a checkpoint may be requested by a signal: a process that does not catch the
 * signal would die of it. */
#ifndef VV_CLI_RUN_LISTENER_H
#define VV_CLI_RUN_LISTENER_H

#include <stdbool.h>
#include <sys/types.h>

struct vv_listener {
	char state;  /* a letter of /proc: R, S, Z, ... */
	pid_t leader; /* of the threads: the process */
	unsigned long long caught; /* one bit for each signal */
};

/* false, with errno: the process cannot be examined. */
bool vv_listener_read(pid_t pid, struct vv_listener *out);
bool vv_listener_catches(const struct vv_listener *l, int sig);
/* Is it a child of the other, or of one of its descendants? */
bool vv_listener_is_below(pid_t pid, pid_t root);
/* Sends the signal to the processes of a group that catch it. Returns their number. */
unsigned vv_listener_signal(pid_t group, int sig);
/* The same for all descendants of a process that were started with the variable in their
 * environment. Not all MPI launchers pass signals on to their ranks. */
unsigned vv_listener_signal_below(pid_t pid, const char *variable, int sig);

#endif
