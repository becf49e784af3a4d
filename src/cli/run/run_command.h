/* What is to be run, looked at before: into some programs no library can be put. */
#ifndef VV_CLI_RUN_RUN_COMMAND_H
#define VV_CLI_RUN_RUN_COMMAND_H

enum vv_run_command_kind {
	VV_RUN_COMMAND_OPEN,   /* nothing is known to speak against it: a program, a script; or it is not there */
	VV_RUN_COMMAND_STATIC, /* it needs no loader */
	VV_RUN_COMMAND_RIGHTS, /* others than ours: the loader would take no library of ours */
};

/* As execvp finds it. */
enum vv_run_command_kind vv_run_command_look(const char *name);

#endif
