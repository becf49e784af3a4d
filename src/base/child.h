/* Starts programs and waits for them: a process in its own group or session, and a description of
 * its end. */
#ifndef VV_BASE_CHILD_H
#define VV_BASE_CHILD_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Finds a program in one of several folders, separated by colons. */
bool vv_child_find(const char *name, const char *folders, char path[PATH_MAX]);

struct vv_child {
	char *const *argv; /* NULL behind the last one */
	const char *input; /* a file to read from; NULL: this process's standard input */
	int output;        /* for its standard output and error; -1: those of this process */
	bool session;      /* its own session; else its own process group */
	bool terminal;     /* its group gets the terminal of our standard input */
	bool dies_with_parent;        /* killed when the thread that started it ends */
	bool masked;       /* with its own umask: */
	mode_t mask;
};

/* Blocked signals are unblocked in the child. It ignores the signals that this process was started
 * to ignore. An error if the program cannot be executed. */
int vv_child_start(const struct vv_child *how, pid_t *pid);

/* Blocks signals for vv_child_await, except those that this process was started to ignore (nohup).
 * To be called before there are threads. */
sigset_t vv_child_block(const int *signals, size_t n);
/* Returns one of the signals, or 0 if none came in time. */
int vv_child_await(const sigset_t *signals, double seconds);

/* For a status of wait(2). */
bool vv_child_is_fine(int status);
int vv_child_code(int status); /* as in a shell: 128 plus the signal */
enum { VV_CHILD_WORDS = 80 };
/* "was killed by signal 9 (Killed)" */
const char *vv_child_describe(int status, char words[VV_CHILD_WORDS]);

#endif
