#include "image/tend.h"
#include "base/clock.h"
#include "base/err.h"
#include "image/revive.h"
#include "image/tree.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct tend {
	struct varve *v;
	const struct vv_lineage *lin;
	struct vv_pool *pool;
	const struct vv_tend_options *opt;
	pid_t pid;      /* the program; 0: it is not there */
	int status;     /* how it ended */
	uint64_t epoch; /* the last good one; 0: none yet */
	uint64_t restarts;
	double due;
	bool dismissed; /* we were told to end */
};

static const int ours[] = { SIGCHLD, SIGUSR1, SIGTERM, SIGINT, SIGHUP };

static sigset_t our_signals(void)
{
	sigset_t s;

	sigemptyset(&s);
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		sigaddset(&s, ours[i]);
	return s;
}

void vv_tend_prepare(void)
{
	sigset_t s = our_signals();

	sigprocmask(SIG_BLOCK, &s, NULL);
	vv_revive_adopt();
}

__attribute__((format(printf, 2, 3))) static void tell(const struct tend *t, const char *fmt, ...)
{
	char text[1200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	t->opt->tell(t->opt->arg, text);
}

/* ---- the program ------------------------------------------------------------------------------------------------------------- */

/* A session of its own, and files as its streams: what CRIU can save. It appends: criu does not mind that such a file has grown. */
static int spawn(const struct tend *t, const posix_spawn_file_actions_t *files, pid_t *pid)
{
	posix_spawnattr_t attr;
	sigset_t all, none;
	mode_t mask;
	int err;

	posix_spawnattr_init(&attr);
	sigfillset(&all);
	sigemptyset(&none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	mask = umask(t->opt->mask);
	err = posix_spawnp(pid, t->opt->command[0], files, &attr, t->opt->command, environ);
	umask(mask);
	posix_spawnattr_destroy(&attr);
	return err ? vv_err_sys(err, "cannot start '%s'", t->opt->command[0]) : 0;
}

static int start(struct tend *t)
{
	posix_spawn_file_actions_t files;
	int fd = open(t->opt->output, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600), rc;

	if (fd < 0)
		return vv_err_sys(errno, "cannot open '%s' for the program's output", t->opt->output);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, fd, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&files, fd, STDERR_FILENO);
	rc = spawn(t, &files, &t->pid);
	posix_spawn_file_actions_destroy(&files);
	close(fd);
	if (rc == 0)
		tell(t, "process %d started", (int)t->pid);
	return rc;
}

static int revive(struct tend *t)
{
	const struct vv_revive_options opt = { .extra = t->opt->extra, .n_extra = t->opt->n_extra };
	int rc = vv_revive_run(t->lin, t->epoch, t->pool, &opt, &t->pid);

	if (rc == 0)
		tell(t, "process %d restored from epoch %" PRIu64, (int)t->pid, t->epoch);
	return rc;
}

/* ---- events ------------------------------------------------------------------------------------------------------------------ */

static void checkpoint(struct tend *t)
{
	const struct vv_dump_options opt = { .pid = t->pid, .leave_running = true, .extra = t->opt->extra, .n_extra = t->opt->n_extra };
	struct vv_dump_report r = { 0 };
	double began = vv_clock_s();

	if (vv_dump_run(t->v, &opt, &r) == 0) {
		t->epoch = r.pack.epoch;
		tell(t, "epoch %" PRIu64 ": %" PRIu64 " bytes of memory, %" PRIu64 " stored, frozen for %.0f ms", r.pack.epoch, r.pack.raw, r.pack.layer,
		     r.frozen_s * 1e3);
	} else {
		tell(t, "no checkpoint: %s", vv_err_last());
	}
	vv_dump_report_fini(&r);
	t->due = began + t->opt->every_s;
}

static void reap(struct tend *t)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == t->pid) {
			t->pid = 0;
			t->status = status;
		}
}

static void wait_for_event(struct tend *t)
{
	sigset_t s = our_signals();
	double left = t->opt->every_s > 0 ? t->due - vv_clock_s() : 3600;
	struct timespec patience = { .tv_sec = left > 0 ? (time_t)left : 0, .tv_nsec = left > 0 ? (long)((left - (double)(time_t)left) * 1e9) : 0 };
	int signal_number = sigtimedwait(&s, NULL, &patience);

	reap(t); /* signals of one kind may be told once for many */
	if (!t->pid)
		return;
	if (signal_number == SIGUSR1 || (signal_number < 0 && errno == EAGAIN && t->opt->every_s > 0)) {
		checkpoint(t);
	} else if (signal_number > 0 && signal_number != SIGCHLD) {
		t->dismissed = true;
		kill(t->pid, signal_number);
	}
}

static bool ended_well(const struct tend *t)
{
	return WIFEXITED(t->status) && WEXITSTATUS(t->status) == 0;
}

static void tell_end(const struct tend *t)
{
	if (WIFSIGNALED(t->status))
		tell(t, "the program was killed by signal %d (%s)", WTERMSIG(t->status), strsignal(WTERMSIG(t->status)));
	else if (!ended_well(t))
		tell(t, "the program ended with status %d", WEXITSTATUS(t->status));
}

int vv_tend_run(struct varve *v, const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_tend_options *opt, int *status)
{
	struct tend t = { .v = v, .lin = lin, .pool = pool, .opt = opt, .epoch = opt->resume };
	int rc = t.epoch ? revive(&t) : start(&t);

	t.due = vv_clock_s() + opt->every_s;
	while (rc == 0) {
		while (t.pid)
			wait_for_event(&t);
		tell_end(&t);
		if (ended_well(&t) || t.dismissed)
			break;
		if (t.restarts == opt->max_restarts) {
			tell(&t, "it was restarted %" PRIu64 " times, and is left as it is", t.restarts);
			break;
		}
		t.restarts++;
		vv_tree_clear(); /* what is left of it has numbers that a restore needs */
		rc = t.epoch ? revive(&t) : start(&t);
		t.due = vv_clock_s() + opt->every_s;
	}
	*status = t.status;
	return rc;
}
