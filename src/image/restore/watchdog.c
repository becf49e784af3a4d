#include "image/restore/watchdog.h"
#include "base/err.h"
#include "image/process/fd_passing.h"
#include "image/process/process_tree.h"
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	WATCHDOGS = 2,
	COMMAND = STDIN_FILENO + 1, /* the pidfd of the command, in a watchdog */
	MOST = 4096, /* processes; further ones are found as descendants */
};

struct message {
	pid_t pid; /* 0: hold the descriptor; -1: regular end */
};

static int send_process(int to, pid_t pid, int fd)
{
	const struct message w = { pid };

	return vv_fd_passing_send(to, &w, sizeof(w), fd) == (ssize_t)sizeof(w) ? 0 : vv_err_sys(errno, "cannot send to the watchdog of a process");
}

/* Another process may have its number by now, unless its pidfd shows that it still lives. */
static void kill_tree(pid_t pid, int pidfd)
{
	struct vv_process_tree t = { 0 };

	if (pidfd_send_signal(pidfd, 0, NULL, 0) < 0 || vv_process_tree_list(pid, &t) < 0)
		return;
	pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
	for (size_t i = 1; i < t.n; i++)
		kill(t.pid[i], SIGKILL);
	vv_process_tree_fini(&t);
}

/* Receives the next message from the predecessor; false: the predecessor or the successor has
 * ended. */
static bool receive(int from, const struct vv_watchdog *next, struct message *w, int *fd)
{
	struct pollfd p[] = { { from, POLLIN, 0 }, { next->to, 0, 0 } };

	while (poll(p, 2, -1) < 0 && errno == EINTR)
		;
	return (p[0].revents || !p[1].revents) && vv_fd_passing_receive(from, w, sizeof(*w), fd) == (ssize_t)sizeof(*w);
}

/* The command may start criu after a watchdog has ended. So criu is killed repeatedly until the
 * command has ended or has closed its watchdog. */
static void end_criu(const char *folder, int from, const struct vv_watchdog *next)
{
	struct pollfd p[] = { { COMMAND, POLLIN, 0 }, { next->pid ? from : -1, 0, 0 } };
	const int pause_ms = 20;

	do
		vv_process_tree_end_criu(folder);
	while (poll(p, 2, pause_ms) == 0);
	vv_process_tree_end_criu(folder);
}

/* Held descriptors are just not closed. */
__attribute__((noreturn)) static void watch(int from, struct vv_watchdog *next, const char *folder)
{
	static struct {
		pid_t pid;
		int fd;
	} one[MOST];
	size_t n = 0;
	struct message w;
	int fd = -1;

	while (receive(from, next, &w, &fd)) {
		if (w.pid < 0) {
			vv_watchdog_close(next);
			_exit(0);
		}
		if (next->pid)
			send_process(next->to, w.pid, fd);
		if (w.pid > 0 && n < MOST) {
			one[n].pid = w.pid;
			one[n++].fd = fd;
		}
	}
	for (size_t i = 0; i < n; i++)
		kill_tree(one[i].pid, one[i].fd);
	if (folder)
		end_criu(folder, from, next);
	_exit(1);
}

static int open_some(struct vv_watchdog *g, const char *folder, int command, unsigned n)
{
	struct vv_watchdog next = VV_WATCHDOG_NONE;
	int ends[2];
	pid_t pid;

	*g = next;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return vv_err_sys(errno, "cannot make sockets for the watchdog of a process");
	pid = fork();
	if (pid == 0) {
		setsid(); /* no signals of the terminal, and none of our descriptors */
		prctl(PR_SET_NAME, "pages-watchdog");
		dup2(ends[0], STDIN_FILENO);
		dup2(command, COMMAND);
		close_range(COMMAND + 1, UINT_MAX, 0);
		if (n > 1)
			open_some(&next, folder, COMMAND, n - 1);
		watch(STDIN_FILENO, &next, folder);
	}
	close(ends[0]);
	if (pid < 0) {
		close(ends[1]);
		return vv_err_sys(errno, "cannot start the watchdog of a process");
	}
	*g = (struct vv_watchdog){ pid, ends[1] };
	return 0;
}

int vv_watchdog_open(struct vv_watchdog *g, const char *folder)
{
	int command = pidfd_open(getpid(), 0), rc;

	if (command < 0) {
		*g = (struct vv_watchdog)VV_WATCHDOG_NONE;
		return vv_err_sys(errno, "cannot make a descriptor of this process");
	}
	rc = open_some(g, folder, command, WATCHDOGS);
	close(command);
	return rc;
}

int vv_watchdog_hold(struct vv_watchdog *g, int fd)
{
	return send_process(g->to, 0, fd);
}

int vv_watchdog_watch(struct vv_watchdog *g, pid_t pid, int pidfd)
{
	return send_process(g->to, pid, pidfd);
}

void vv_watchdog_close(struct vv_watchdog *g)
{
	static const struct message all_is_well = { -1 };

	if (!g->pid)
		return;
	(void)!vv_fd_passing_send(g->to, &all_is_well, sizeof(all_is_well), -1);
	close(g->to);
	while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
		;
	*g = (struct vv_watchdog){ .to = -1 };
}
