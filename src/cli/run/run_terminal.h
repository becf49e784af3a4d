/* The terminal that is our standard input, if it is one: the program has it while it runs in the foreground, so that it can read, and hears Ctrl-C and Ctrl-Z
 * itself; we stop when it is stopped, as one that waits for our shell would expect. */
#ifndef VV_CLI_RUN_RUN_TERMINAL_H
#define VV_CLI_RUN_RUN_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

struct vv_run_terminal {
	bool is_one;
	struct termios mode; /* as we found it */
};

void vv_run_terminal_open(struct vv_run_terminal *t);
/* Are we in its foreground, and could let somebody else be? */
bool vv_run_terminal_is_ours(const struct vv_run_terminal *t);
void vv_run_terminal_give(const struct vv_run_terminal *t, pid_t group); /* if it is ours */
/* The group has ended or was stopped. */
void vv_run_terminal_take(const struct vv_run_terminal *t, pid_t group);
/* Stops us and what else is in our group; returns when somebody lets us go on. */
void vv_run_terminal_pause(const struct vv_run_terminal *t);

#endif
