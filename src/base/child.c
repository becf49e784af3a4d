#include "base/child.h"
#include "base/err.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

bool vv_child_find(const char *name, const char *folders, char path[PATH_MAX])
{
	while (*folders) {
		size_t n = strcspn(folders, ":");

		if (n && snprintf(path, PATH_MAX, "%.*s/%s", (int)n, folders, name) < PATH_MAX && access(path, X_OK) == 0)
			return true;
		folders += n + (folders[n] == ':');
	}
	return false;
}

/* ---- start ----------------------------------------------------------------------------------- */

static bool place(const struct vv_child *how)
{
	if (how->session ? setsid() < 0 : setpgid(0, 0) < 0)
		return false;
	if (how->terminal) /* SIGTTOU is still blocked */
		tcsetpgrp(STDIN_FILENO, getpid());
	if (how->masked)
		umask(how->mask);
	return true;
}

static bool connect_streams(const struct vv_child *how)
{
	int fd = how->input ? open(how->input, O_RDONLY | O_CLOEXEC) : -1;

	if (how->input && (fd < 0 || dup2(fd, STDIN_FILENO) < 0))
		return false;
	return how->output < 0 || (dup2(how->output, STDOUT_FILENO) >= 0 && dup2(how->output, STDERR_FILENO) >= 0);
}

/* Runs between fork and exec, so nothing here takes a lock. Restores the default for signals that
 * only varve itself ignores: broken pipes and file size limits. */
__attribute__((noreturn)) static void become(const struct vv_child *how, pid_t parent, int report)
{
	struct sigaction normal = { .sa_handler = SIG_DFL };
	sigset_t none;
	int err;

	sigemptyset(&none);
	if (how->dies_with_parent && (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent))
		_exit(127);
	if (place(how) && connect_streams(how)) {
		sigaction(SIGPIPE, &normal, NULL);
		sigaction(SIGXFSZ, &normal, NULL);
		sigaction(SIGCHLD, &normal, NULL);
		sigprocmask(SIG_SETMASK, &none, NULL);
		execvp(how->argv[0], how->argv);
	}
	err = errno;
	if (write(report, &err, sizeof(err)) < 0)
		_exit(127);
	_exit(126);
}

static ssize_t read_report(int fd, int *err)
{
	ssize_t n;

	while ((n = read(fd, err, sizeof(*err))) < 0 && errno == EINTR) {
	}
	return n;
}

int vv_child_start(const struct vv_child *how, pid_t *pid)
{
	pid_t parent = getpid(), child;
	int ends[2], err = 0;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return vv_err_sys(errno, "cannot make a pipe");
	child = fork();
	if (child == 0)
		become(how, parent, ends[1]);
	err = child < 0 ? errno : 0;
	close(ends[1]);
	if (child > 0 && read_report(ends[0], &err) > 0)
		waitpid(child, NULL, 0);
	close(ends[0]);
	if (err)
		return vv_err_sys(err, "cannot start '%s'", how->argv[0]);
	*pid = child;
	return 0;
}

/* ---- signals --------------------------------------------------------------------------------- */

sigset_t vv_child_block(const int *signals, size_t n)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < n; i++) {
		struct sigaction was;

		if (signals[i] == SIGCHLD)
			/* a process that ignores it cannot wait for its children */
			signal(SIGCHLD, SIG_DFL);
		if (sigaction(signals[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN)
			sigaddset(&set, signals[i]);
	}
	sigprocmask(SIG_BLOCK, &set, NULL);
	return set;
}

int vv_child_await(const sigset_t *signals, double seconds)
{
	time_t whole = seconds > 0 ? (time_t)seconds : 0;
	struct timespec patience = { .tv_sec = whole, .tv_nsec = seconds > 0 ? (long)((seconds - (double)whole) * 1e9) : 0 };
	int got = sigtimedwait(signals, NULL, &patience);

	return got > 0 ? got : 0;
}

/* ---- exit status ----------------------------------------------------------------------------- */

bool vv_child_is_fine(int status)
{
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int vv_child_code(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

const char *vv_child_describe(int status, char words[VV_CHILD_WORDS])
{
	if (WIFSIGNALED(status))
		snprintf(words, VV_CHILD_WORDS, "was killed by signal %d (%.40s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(words, VV_CHILD_WORDS, "ended with status %d", WEXITSTATUS(status));
	return words;
}
