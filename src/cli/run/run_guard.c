#include "cli/run/run_guard.h"
#include "base/err.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Closes inherited files: a process that reads our output waits until all copies are closed. */
static void let_go(int keep)
{
	int fd = open("/dev/null", O_RDWR);

	for (int i = 0; fd >= 0 && i <= STDERR_FILENO; i++)
		dup2(fd, i);
	if (keep > 3)
		close_range(3, (unsigned)keep - 1, 0);
	close_range((unsigned)keep + 1, ~0u, 0);
}

__attribute__((noreturn)) static void guard(int fd, const char *path)
{
	pid_t group = 0, news;
	sigset_t all;
	ssize_t n;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	setsid();
	let_go(fd);
	while ((n = read(fd, &news, sizeof(news))) == sizeof(news) || (n < 0 && errno == EINTR))
		group = n < 0 ? group : news;
	if (group > 0)
		kill(-group, SIGKILL);
	unlink(path);
	_exit(0);
}

int vv_run_guard_open(struct vv_run_guard *g, const char *path)
{
	int ends[2];

	*g = (struct vv_run_guard){ .fd = -1 };
	if (pipe2(ends, O_CLOEXEC) < 0)
		return vv_err_sys(errno, "run: cannot make a pipe");
	g->pid = fork();
	if (g->pid == 0) {
		close(ends[1]);
		guard(ends[0], path);
	}
	close(ends[0]);
	g->fd = ends[1];
	return g->pid > 0 ? 0 : vv_err_sys(errno, "run: cannot start a process");
}

/* If the guard is gone, nothing can be done about it, and SIGPIPE is ignored. */
void vv_run_guard_set(const struct vv_run_guard *g, pid_t group)
{
	while (write(g->fd, &group, sizeof(group)) < 0 && errno == EINTR) {
	}
}

void vv_run_guard_close(struct vv_run_guard *g)
{
	if (g->fd >= 0) {
		vv_run_guard_set(g, 0);
		close(g->fd);
	}
	if (g->pid > 0)
		waitpid(g->pid, NULL, 0);
	*g = (struct vv_run_guard){ .fd = -1 };
}
