/* The inspection of a command before it runs: some programs cannot preload a library. */
#ifndef VV_CLI_RUN_RUN_COMMAND_H
#define VV_CLI_RUN_RUN_COMMAND_H

enum vv_run_command_kind {
	/* no objection is known: a program, a script; or it does not exist, or not on this host */
	VV_RUN_COMMAND_OPEN,
	VV_RUN_COMMAND_STATIC, /* it needs no loader */
	/* privileges of another user: the loader would not preload our library */
	VV_RUN_COMMAND_RIGHTS,
};

/* exit statuses, as of a shell */
enum { VV_RUN_COMMAND_CLOSED = 126, VV_RUN_COMMAND_ABSENT = 127 };

/* Does the program exist on this host? 0, or errno: ENOENT, or EACCES if it cannot be executed. */
int vv_run_command_check(const char *name);
/* Searches as execvp does. */
enum vv_run_command_kind vv_run_command_kind_of(const char *name);

#endif
