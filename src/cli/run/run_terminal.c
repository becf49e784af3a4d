#include "cli/run/run_terminal.h"
#include <signal.h>
#include <unistd.h>

void vv_run_terminal_open(struct vv_run_terminal *t)
{
	sigset_t set;

	t->is_one = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &t->mode) == 0;
	sigemptyset(&set);
	/* otherwise a process that takes a terminal back is stopped */
	sigaddset(&set, SIGTTOU);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

bool vv_run_terminal_is_ours(const struct vv_run_terminal *t)
{
	return t->is_one && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

void vv_run_terminal_give(const struct vv_run_terminal *t, pid_t group)
{
	if (vv_run_terminal_is_ours(t))
		tcsetpgrp(STDIN_FILENO, group);
}

/* A program that was killed may have left echo off. */
void vv_run_terminal_take(const struct vv_run_terminal *t, pid_t group)
{
	if (t->is_one && tcgetpgrp(STDIN_FILENO) == group) {
		tcsetpgrp(STDIN_FILENO, getpgrp());
		tcsetattr(STDIN_FILENO, TCSADRAIN, &t->mode);
	}
}

void vv_run_terminal_pause(const struct vv_run_terminal *t)
{
	if (t->is_one)
		kill(0, SIGTSTP); /* the rest of our group; this process has blocked it */
	raise(SIGSTOP);
}
