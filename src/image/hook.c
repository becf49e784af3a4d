#include "image/hook.h"
#include "base/err.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* It reaches our pipes by /proc: criu closes what it inherits, and if we are gone there is nothing to open. */
static int write_it(const struct vv_hook *h, const char *action)
{
	char text[512];
	int pid = (int)getpid();
	int n = snprintf(text, sizeof(text),
			 "#!/bin/sh\n[ \"$CRTOOLS_SCRIPT_ACTION\" = %s ] || exit 0\n"
			 "exec 8>/proc/%d/fd/%d 9</proc/%d/fd/%d || exit 1\necho ready >&8 && read word <&9 && [ \"$word\" = go ]\n",
			 action, pid, h->ready[1], pid, h->go[0]);
	int fd = open(h->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	bool written = fd >= 0 && write(fd, text, (size_t)n) == n;

	if (fd >= 0 && close(fd) < 0)
		written = false;
	return written ? 0 : vv_err_sys(errno, "cannot write '%s'", h->path);
}

int vv_hook_open(struct vv_hook *h, struct vv_criu *c, const char *action)
{
	*h = (struct vv_hook)VV_HOOK_NONE;
	snprintf(h->path, sizeof(h->path), "%s/%s", c->folder, action);
	if (pipe2(h->ready, O_CLOEXEC) < 0 || pipe2(h->go, O_CLOEXEC) < 0)
		return vv_err_sys(errno, "cannot make a pipe");
	vv_criu_word(c, "--action-script");
	vv_criu_word(c, h->path);
	return write_it(h, action);
}

int vv_hook_go(struct vv_hook *h)
{
	return write(h->go[1], "go\n", 3) == 3 ? 0 : vv_err_sys(errno, "cannot speak to criu");
}

void vv_hook_close(struct vv_hook *h)
{
	for (int i = 0; i < 2; i++) {
		if (h->ready[i] >= 0)
			close(h->ready[i]);
		if (h->go[i] >= 0)
			close(h->go[i]);
		h->ready[i] = h->go[i] = -1;
	}
}
