/* Programs that are started and looked after: a process with a group or a session of its own, and how it ended, in words. */
#ifndef VV_BASE_CHILD_H
#define VV_BASE_CHILD_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A program in one of several folders, with colons between them. */
bool vv_child_find(const char *name, const char *folders, char path[PATH_MAX]);

struct vv_child {
	char *const *argv; /* NULL behind the last */
	const char *input; /* a file to read from; NULL: our own standard input */
	int output;        /* its standard output and error; -1: our own */
	bool session;      /* of its own; else a process group of its own */
	bool terminal;     /* the group has the terminal that is our standard input */
	bool dies_with_parent;        /* it is killed when the thread that starts it ends */
	bool masked;       /* has a umask of its own: */
	mode_t mask;
};

/* Signals that were blocked reach it, and those that somebody made us deaf to it does not hear either. An error if the program cannot be executed. */
int vv_child_start(const struct vv_child *how, pid_t *pid);

/* Blocks signals for vv_child_await, but for those that we were made deaf to (nohup): these stay unheard. Before there are threads. */
sigset_t vv_child_block(const int *signals, size_t n);
/* One of them, or 0 if none came in time. */
int vv_child_await(const sigset_t *signals, double seconds);

/* Of a status of wait(2). */
bool vv_child_is_fine(int status);
int vv_child_code(int status); /* as a shell has it: 128 and the signal */
enum { VV_CHILD_WORDS = 80 };
const char *vv_child_describe(int status, char words[VV_CHILD_WORDS]); /* "was killed by signal 9 (Killed)" */

#endif
