/* The terminal of the standard input, if it is one. The program has the terminal while it runs in
 * the foreground, so that it can read, and receives Ctrl-C and Ctrl-Z itself. The supervisor stops
 * when the program is stopped, as the waiting shell expects. */
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
/* Is this process in the foreground of the terminal, and can it give the terminal to another
 * group? */
bool vv_run_terminal_is_ours(const struct vv_run_terminal *t);
/* if it is ours */
void vv_run_terminal_give(const struct vv_run_terminal *t, pid_t group);
/* Takes the terminal back after the group has ended or was stopped. */
void vv_run_terminal_take(const struct vv_run_terminal *t, pid_t group);
/* Stops this process and the rest of its group; returns when the group is continued. */
void vv_run_terminal_pause(const struct vv_run_terminal *t);

#endif
