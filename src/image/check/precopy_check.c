/* The kernel sees writes that go through the page tables of the process. A device, or the kernel
 * in the background (io_uring, aio), writes into pages that it pinned earlier. System calls do
 * so as well (O_DIRECT), but they end (vv_inject_syscall_wait_pending in
 * image/process/inject_syscall.h). */
#include "image/check/precopy_check.h"
#include "base/err.h"
#include "image/process/process_tree.h"
#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool starts_with_one_of(const char *s, const char *const *word)
{
	while (*word && strncmp(s, *word, strlen(*word)) != 0)
		word++;
	return *word;
}

/* Returns the text after the name in a line of the status. */
static const char *status_of(const char *status, const char *name)
{
	const char *at = strstr(status, name);

	return at ? at + strlen(name) + strspn(at + strlen(name), " \t") : "";
}

/* Its rights are those of the user who started it. */
static bool has_one_user(const char *status)
{
	unsigned id[4];

	return sscanf(status_of(status, "\nUid:"), "%u %u %u %u", &id[0], &id[1], &id[2], &id[3]) == 4 && id[0] == id[1] && id[1] == id[2] && id[2] == id[3];
}

static int check_status(pid_t pid)
{
	char text[4096];

	if (vv_process_tree_read(pid, "status", text, sizeof(text)) <= 0)
		return vv_err_set(VV_ENOTSUP, "it has ended");
	if (!strchr("RSD", status_of(text, "\nState:")[0]))
		return vv_err_set(VV_ENOTSUP, "it does not run");
	if (atoi(status_of(text, "\nTracerPid:")) != 0)
		return vv_err_set(VV_ENOTSUP, "it is traced by process %d", atoi(status_of(text, "\nTracerPid:")));
	if (atoi(status_of(text, "\nSeccomp:")) != 0)
		return vv_err_set(VV_ENOTSUP, "it is confined by seccomp");
	return has_one_user(text) ? 0 : vv_err_set(VV_ENOTSUP, "it has the rights of more than one user");
}

static int check_descriptor(pid_t pid, const char *fd)
{
	static const char *const kinds[] = { "[eventfd", "[eventpoll", "[signalfd", "[timerfd", "inotify", "[inotify", "[fanotify", "[pidfd", NULL };
	static const char *const devices[] = { "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/kmsg", "/dev/tty", "/dev/pts/",
					       "/dev/ptmx", "/dev/console", "/dev/shm/", "/dev/mqueue/", NULL };
	char path[64], link[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%.16s", (int)pid, fd);
	n = readlink(path, link, sizeof(link) - 1);
	link[n < 0 ? 0 : n] = '\0';
	if ((strncmp(link, "anon_inode:", 11) == 0 && !starts_with_one_of(link + 11, kinds)) ||
	    (strncmp(link, "/dev/", 5) == 0 && !starts_with_one_of(link, devices)))
		return vv_err_set(VV_ENOTSUP, "its memory may be written by what is behind descriptor %s, '%.100s'", fd, link);
	return 0;
}

static int check_descriptors(pid_t pid)
{
	char path[64];
	const struct dirent *e;
	DIR *d;
	int rc = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	if (!d)
		return vv_err_set(VV_ENOTSUP, "what it has open cannot be seen");
	while (rc == 0 && (e = readdir(d)))
		if (e->d_name[0] != '.')
			rc = check_descriptor(pid, e->d_name);
	closedir(d);
	return rc;
}

/* Looks for the ring of io_setup(2). */
static int check_aio(pid_t pid)
{
	char path[64], line[PATH_MAX + 128];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, " /[aio]");
	if (f)
		fclose(f);
	return found ? vv_err_set(VV_ENOTSUP, "its memory may be written by asynchronous reads (aio)") : 0;
}

int vv_precopy_check_check(pid_t pid)
{
	int rc = check_status(pid);

	if (rc == 0)
		rc = check_descriptors(pid);
	return rc ? rc : check_aio(pid);
}
