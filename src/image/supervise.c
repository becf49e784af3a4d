#include "image/supervise.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/err.h"
#include "image/restore/restore_one.h"
#include "image/process/process_tree.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

struct supervision {
	struct varve *v;
	const struct vv_lineage *lin;
	struct vv_pool *pool;
	const struct vv_supervise_options *opt;
	pid_t pid;      /* the program; 0: it does not run */
	int status;     /* how it ended */
	uint64_t epoch; /* the last good epoch; 0: none yet */
	uint64_t restarts;
	double due;
	bool dismissed; /* a signal has requested our end */
};

static sigset_t ours;

int vv_supervise_prepare(void)
{
	static const int heard[] = { SIGCHLD, SIGUSR1, SIGTERM, SIGINT, SIGHUP };

	ours = vv_child_block(heard, sizeof(heard) / sizeof(heard[0]));
	return vv_restore_one_adopt();
}

__attribute__((format(printf, 2, 3))) static void report(const struct supervision *t, const char *fmt, ...)
{
	char text[1200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	t->opt->report(t->opt->arg, text);
}

/* ---- the program ----------------------------------------------------------------------------- */

/* CRIU can save a program with its own session (setsid) and with files as streams. The output is
 * opened for appending: criu accepts that such a file has grown. */
static int start(struct supervision *t)
{
	int fd = open(t->opt->output, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600), rc;
	const struct vv_child how = { .argv = t->opt->command, .input = "/dev/null", .output = fd, .session = true, .masked = true, .mask = t->opt->mask };

	if (fd < 0)
		return vv_err_sys(errno, "cannot open '%s' for the program's output", t->opt->output);
	rc = vv_child_start(&how, &t->pid);
	close(fd);
	if (rc == 0)
		report(t, "process %d started", (int)t->pid);
	return rc;
}

static int revive(struct supervision *t)
{
	const struct vv_restore_one_options opt = { .memory = t->opt->memory };
	int rc = vv_restore_one_run(t->lin, t->epoch, t->pool, &opt, &t->pid);

	if (rc == 0)
		report(t, "process %d restored from epoch %" PRIu64, (int)t->pid, t->epoch);
	return rc;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void reap(struct supervision *t)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == t->pid) {
			t->pid = 0;
			t->status = status;
		}
}

static void checkpoint(struct supervision *t)
{
	const struct vv_dump_options opt = { .pid = &t->pid, .n_pids = 1, .leave_running = true, .memory = t->opt->memory, .segments = t->opt->segments,
					      .precopy = t->opt->precopy };
	struct vv_dump_report r = { 0 };
	double began = vv_clock_s();

	if (vv_dump_run(t->v, &opt, &r) == 0) {
		t->epoch = r.pack.epoch;
		t->opt->saved(t->opt->arg, &r);
	} else {
		reap(t);
		if (t->pid) /* else it has ended meanwhile, which is reported anyway */
			report(t, "no checkpoint: %s", vv_err_last());
	}
	vv_dump_report_fini(&r);
	t->due = began + t->opt->every_s;
}

static void wait_for_event(struct supervision *t)
{
	double left = t->opt->every_s > 0 ? t->due - vv_clock_s() : 3600;
	int signal_number = vv_child_await(&ours, left);

	reap(t); /* one signal may stand for several of its kind */
	if (!t->pid)
		return;
	if (signal_number && signal_number != SIGCHLD && signal_number != SIGUSR1) {
		t->dismissed = true;
		kill(t->pid, signal_number);
	} else if (signal_number == SIGUSR1 || (t->opt->every_s > 0 && vv_clock_s() >= t->due)) {
		checkpoint(t);
	}
}

int vv_supervise_run(struct varve *v, const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_supervise_options *opt, int *status,
		uint64_t *epoch)
{
	struct supervision t = { .v = v, .lin = lin, .pool = pool, .opt = opt, .epoch = opt->resume };
	char words[VV_CHILD_WORDS];
	int rc = t.epoch ? revive(&t) : start(&t);

	t.due = vv_clock_s() + opt->every_s;
	while (rc == 0) {
		while (t.pid)
			wait_for_event(&t);
		if (!vv_child_is_fine(t.status))
			report(&t, "the program %s", vv_child_describe(t.status, words));
		if (vv_child_is_fine(t.status) || t.dismissed)
			break;
		if (t.restarts == opt->max_restarts) {
			report(&t, "it was restarted %" PRIu64 " times, and is left as it is", t.restarts);
			break;
		}
		t.restarts++;
		/* Its remaining processes have numbers that a restore needs. */
		vv_process_tree_clear();
		rc = t.epoch ? revive(&t) : start(&t);
		t.due = vv_clock_s() + opt->every_s;
	}
	*status = t.status;
	*epoch = t.epoch;
	return rc;
}
