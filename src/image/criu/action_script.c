#include "image/criu/action_script.h"
#include "base/err.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* The script opens our descriptors by /proc: CRIU closes inherited ones, and after our end there is
 * nothing to open. It waits for the end of a pipe, which comes when we close the pipe or are
 * killed. Its result then depends only on a file, which one write sets to "go" for all hooks that
 * share it. */
static int write_it(const struct vv_action_script *h, const char *action)
{
	char text[512];
	int pid = (int)getpid();
	int n = snprintf(text, sizeof(text),
			 "#!/bin/sh\n[ \"$CRTOOLS_SCRIPT_ACTION\" = %s ] || exit 0\n"
			 "exec 7</proc/%d/fd/%d 8>/proc/%d/fd/%d 9</proc/%d/fd/%d || exit 1\n"
			 "echo \"${CRTOOLS_INIT_PID:-0}\" >&8 || exit 1\nread word <&9\nread word <&7 && [ \"$word\" = go ]\n",
			 action, pid, h->word, pid, h->ready[1], pid, h->go[0]);
	int fd = open(h->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	bool written = fd >= 0 && write(fd, text, (size_t)n) == n;

	if (fd >= 0 && close(fd) < 0)
		written = false;
	return written ? 0 : vv_err_sys(errno, "cannot write '%s'", h->path);
}

int vv_action_script_may_run(const char *folder)
{
	struct statvfs v;

	if (statvfs(folder, &v) == 0 && !(v.f_flag & ST_NOEXEC))
		return 0;
	return vv_err_set(VV_ENOTSUP, "no program may be run in '%s' (noexec), where criu's hook would lie: set TMPDIR to another folder", folder);
}

int vv_action_script_open(struct vv_action_script *h, struct vv_criu *c, const char *action, const struct vv_action_script *with)
{
	*h = (struct vv_action_script)VV_ACTION_SCRIPT_NONE;
	snprintf(h->path, sizeof(h->path), "%s/%s", c->folder, action);
	if (vv_action_script_may_run(c->folder) < 0)
		return VV_ENOTSUP;
	if (pipe2(h->ready, O_CLOEXEC) < 0 || pipe2(h->go, O_CLOEXEC) < 0)
		return vv_err_sys(errno, "cannot make a pipe");
	h->word = with ? fcntl(with->word, F_DUPFD_CLOEXEC, 0) : memfd_create("varve-hook", MFD_CLOEXEC);
	if (h->word < 0)
		return vv_err_sys(errno, "cannot make a file in memory");
	vv_criu_add_arg(c, "--action-script");
	vv_criu_add_arg(c, h->path);
	return write_it(h, action);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int vv_action_script_go(struct vv_action_script *h)
{
	if (write(h->word, "go\n", 3) != 3)
		return vv_err_sys(errno, "cannot speak to criu");
	close_fd(&h->go[1]);
	return 0;
}

void vv_action_script_close(struct vv_action_script *h)
{
	for (int i = 0; i < 2; i++) {
		close_fd(&h->ready[i]);
		close_fd(&h->go[i]);
	}
	close_fd(&h->word);
}
