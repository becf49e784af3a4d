#include "image/process/private_devpts.h"
#include "base/err.h"
#include "image/process/process_tree.h"
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

static const char source[] = "varve"; /* identifies our mount */

int vv_private_devpts_open(void)
{
	static const char why[] = "cannot give the process a private devpts";

	if (unshare(CLONE_NEWNS) < 0)
		return vv_err_sys(errno, "%s", why);
	/* Later mounts outside are visible inside. */
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ||
	    mount(source, "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620,gid=5") < 0 ||
	    mount("/dev/pts/ptmx", "/dev/ptmx", NULL, MS_BIND, NULL) < 0)
		return vv_err_sys(errno, "%s", why);
	return 0;
}

bool vv_private_devpts_has(pid_t pid)
{
	char path[64], line[PATH_MAX], words[64];
	bool found = false;
	FILE *f;

	if (!vv_process_tree_is_apart(pid, getpid(), "mnt"))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
	snprintf(words, sizeof(words), " - devpts %s ", source);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, " /dev/pts ") && strstr(line, words);
	if (f)
		fclose(f);
	return found;
}
