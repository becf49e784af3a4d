/* Starting programs. The C library stores the process number while all signals are blocked. So it
 * writes into our variable, and we write into the caller's. */
#include "preload/wrap/wrap.h"

typedef int start(pid_t *pid, const char *what, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr, char *const argv[],
		  char *const env[]);

static int spawn(start *real, int *out, const char *what, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr,
		 char *const argv[], char *const env[])
{
	int mine = 0, saved = errno, rc = real(out ? &mine : NULL, what, actions, attr, argv, env);

	if (rc == 0 && out)
		*out = mine;
	if (rc == 0)
		errno = saved; /* hides the errors of the search for the program */
	return rc;
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr, char *const argv[],
		char *const env[])
{
	return spawn(REAL(posix_spawn), pid, path, actions, attr, argv, env);
}

int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr, char *const argv[],
		 char *const env[])
{
	return spawn(REAL(posix_spawnp), pid, file, actions, attr, argv, env);
}

#if __GLIBC_PREREQ(2, 39)
int pidfd_spawn(int *fd, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr, char *const argv[],
		char *const env[])
{
	return spawn(REAL(pidfd_spawn), fd, path, actions, attr, argv, env);
}

int pidfd_spawnp(int *fd, const char *file, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr, char *const argv[],
		 char *const env[])
{
	return spawn(REAL(pidfd_spawnp), fd, file, actions, attr, argv, env);
}
#endif
