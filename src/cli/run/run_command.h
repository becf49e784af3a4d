/* What is to be run, looked at before: into some programs no library can be put. */
#ifndef VV_CLI_RUN_RUN_COMMAND_H
#define VV_CLI_RUN_RUN_COMMAND_H

enum vv_run_command_kind {
	VV_RUN_COMMAND_OPEN,   /* nothing is known to speak against it: a program, a script; or it is not there, or not here */
	VV_RUN_COMMAND_STATIC, /* it needs no loader */
	VV_RUN_COMMAND_RIGHTS, /* others than ours: the loader would take no library of ours */
};

enum { VV_RUN_COMMAND_CLOSED = 126, VV_RUN_COMMAND_ABSENT = 127 }; /* exit statuses, as of a shell */

/* Is there such a program on this host? 0, or errno: ENOENT, or EACCES if it cannot be executed. */
int vv_run_command_check(const char *name);
/* As execvp finds it. */
enum vv_run_command_kind vv_run_command_kind_of(const char *name);

#endif
