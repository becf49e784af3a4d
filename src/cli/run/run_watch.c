#include "cli/run/run_watch.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/run/listener.h"
#include "cli/run/run_command.h"
#include "cli/run/run_drain.h"
#include "cli/run/run_env.h"
#include "cli/run/run_epochs.h"
#include "cli/run/run_events.h"
#include "cli/run/run_guard.h"
#include "cli/run/run_launch.h"
#include "cli/run/run_messages.h"
#include "cli/run/run_terminal.h"
#include "cli/base/text.h"
#include "engine/run_protocol.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const double tick = 0.1; /* seconds between two reads of the events */
/* seconds that others may hold the lineage: ranks that die on other hosts */
static const double letting_go = 2, letting_go_after_death = 10;
/* an exit with an error so soon, before any checkpoint, would only be repeated */
static const double at_once = 1;

enum { DEATHS = 2 };                           /* at one epoch: then the epoch is at fault */
/* LAST: the last checkpoint was requested */
enum stage { RUNS, LAST, TERMINATED, KILLED };

struct run_watch {
	const struct vv_run_plan *plan;
	struct vv_run_messages tell;
	struct vv_run_sums sums;
	struct vv_run_epochs epochs;
	struct vv_run_events events;
	struct vv_run_terminal terminal;
	struct vv_run_launch launch;
	struct vv_run_guard guard;
	sigset_t signals;
	uint64_t next;    /* the epoch to start from, as in the plan */
	uint64_t dead_at; /* the epoch from which it died, */
	unsigned deaths;  /* so many times in a row */
	double died;      /* when; 0: it has not */
	bool dismissed;   /* it is not to be restarted */
	struct vv_lock_holder rival; /* the process that has the lineage in its place */

	struct { /* of the program as it runs now */
		pid_t pid; /* and group; 0: it does not */
		int status;
		bool ready;  /* it has reached its first call: it accepts requests */
		bool wished; /* a checkpoint was requested before that */
		bool unable, refused, damaged, unread;
		uint64_t newest;                 /* of the lineage when it was started */
		/* the epoch that it restarted from, or, before it is ready, will restart from; 0:
		 * none */
		uint64_t base;
		uint64_t taken, durable, failed; /* the newest of each */
		double started, taken_at, safe_at; /* work done since safe_at is lost if it dies */
		enum stage stage;
		uint64_t before_last; /* the last checkpoint is above this */
		double deadline;
	} run;
};

#define REPORT(w, event, epoch, ...) vv_run_messages_line(&(w)->tell, event, epoch, __VA_ARGS__)
#define WARN(w, event, epoch, ...) vv_run_messages_warn(&(w)->tell, event, epoch, __VA_ARGS__)

/* Reports the fault and tries nevertheless: the command may start another process that is the
 * program. */
static void look_at_command(struct run_watch *w)
{
	const char *name = w->plan->command[0];
	enum vv_run_command_kind kind = vv_run_command_kind_of(name);

	if (kind == VV_RUN_COMMAND_STATIC)
		WARN(w, "closed", 0, "'%s' is linked statically, and no library can be put in front of its malloc: it takes no checkpoints. Link it dynamically, "
		     "or save the whole process (varve image)", name);
	if (kind == VV_RUN_COMMAND_RIGHTS)
		WARN(w, "closed", 0, "'%s' has rights of its own (set-id, capabilities), and the loader puts no library in front of such: it takes no "
		     "checkpoints. Run it as its owner", name);
}

/* ---- start and end --------------------------------------------------------------------------- */

/* A command that has finished its work repeats it from the start, as it would without varve. */
static int begin_new_run(struct run_watch *w)
{
	uint64_t epoch = 0;
	int rc = vv_run_epochs_ended(&w->epochs, &epoch);

	if (rc == 0 && epoch) {
		REPORT(w, "anew", epoch, "the program had ended well after epoch %" PRIu64 ": this is a new run (--restart %" PRIu64 " continues from there)",
		     epoch, epoch);
		w->next = 0;
	}
	return rc;
}

/* Is the newest epoch here the newest of all stores? Then the program restarts from it even if a
 * tier cannot be reached. */
static bool is_watched(const struct run_watch *w)
{
	return w->next == UINT64_MAX && w->died > 0 && w->run.newest && vv_conf_text(&w->plan->job->conf, "tiers")[0];
}

static int start(struct run_watch *w)
{
	const struct vv_run_plan *p = w->plan;
	struct vv_child how = { .argv = p->command, .output = -1, .dies_with_parent = true, .terminal = vv_run_terminal_is_ours(&w->terminal) };
	int rc = vv_run_epochs_await(&w->epochs, w->died > 0 ? letting_go_after_death : letting_go);

	memset(&w->run, 0, sizeof(w->run));
	if (rc == 0 && w->next == UINT64_MAX && w->died == 0)
		rc = begin_new_run(w);
	if (rc == 0)
		rc = vv_run_epochs_newest(&w->epochs, UINT64_MAX, &w->run.newest);
	w->run.base = w->next == UINT64_MAX ? w->run.newest : w->next;
	if (rc == 0)
		rc = vv_run_env_restart(is_watched(w) ? w->run.newest : w->next);
	if (rc == 0 && p->ranks) { /* its words contain the environment */
		vv_run_launch_fini(&w->launch);
		rc = vv_run_launch_init(&w->launch, p);
		how.argv = w->launch.word;
	}
	if (rc == 0)
		rc = vv_child_start(&how, &w->run.pid);
	vv_run_guard_set(&w->guard, w->run.pid);
	w->run.started = w->run.safe_at = vv_clock_s();
	if (rc == 0)
		REPORT(w, "started", 0, "process %d started: %s, lineage '%s' of '%s'", (int)w->run.pid, how.argv[0], p->lineage, p->store);
	return rc;
}

static void signal_group(const struct run_watch *w, int sig)
{
	if (w->run.pid > 0) /* kill(0) would signal our own group */
		kill(-w->run.pid, sig);
}

static void terminate(struct run_watch *w)
{
	signal_group(w, SIGTERM);
	signal_group(w, SIGCONT);
	w->run.stage = TERMINATED;
	w->run.deadline = vv_clock_s() + w->plan->grace_s;
}

static void kill_program(struct run_watch *w)
{
	signal_group(w, SIGKILL);
	w->run.stage = KILLED;
}

/* While the program is a zombie, its number is not reused, so the rest of its group can be killed.
 * The group of a program that ended successfully may continue. */
static void reap(struct run_watch *w)
{
	siginfo_t info = { .si_pid = 0 };
	pid_t pid = w->run.pid;

	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || !info.si_pid)
		return;
	if (info.si_code != CLD_EXITED || info.si_status != 0)
		signal_group(w, SIGKILL);
	vv_run_terminal_take(&w->terminal, pid);
	vv_run_guard_set(&w->guard, 0);
	waitpid(pid, &w->run.status, 0);
	w->run.pid = 0;
}

/* If the program was stopped at the terminal, the supervisor stops, too. */
static void follow_stop(struct run_watch *w)
{
	siginfo_t info = { .si_pid = 0 };

	if (waitid(P_PID, (id_t)w->run.pid, &info, WSTOPPED | WNOHANG) < 0 || !info.si_pid || info.si_status == SIGSTOP || !w->terminal.is_one)
		return;
	vv_run_terminal_take(&w->terminal, w->run.pid);
	vv_run_terminal_pause(&w->terminal);
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

/* It is enough if one rank receives the request. Ranks of this host get the signal directly, others
 * from the launcher, if it passes signals on. */
static bool ask_ranks(pid_t launcher, int sig)
{
	bool below = vv_listener_signal_below(launcher, VV_RUN_PROTOCOL_LINEAGE, sig) > 0;

	return below || kill(launcher, sig) == 0;
}

/* Requests go only to processes that catch the signal: others would die of it. */
static bool ask(struct run_watch *w)
{
	int sig = w->plan->signal;

	if (sig && (w->plan->ranks ? ask_ranks(w->run.pid, sig) : vv_listener_signal(w->run.pid, sig) > 0))
		return true;
	WARN(w, "unasked", 0, sig ? "no process of the program listens for requests" : "the option signal is none: the program cannot be asked for a checkpoint");
	return false;
}

static void request_checkpoint(struct run_watch *w)
{
	if (w->run.unable)
		WARN(w, "unasked", 0, "the program cannot take checkpoints");
	else if (!w->run.ready)
		w->run.wished = true;
	else if (ask(w))
		REPORT(w, "asked", 0, "a checkpoint was asked for");
}

/* Each call waits for less: the last checkpoint, then the end, then nothing. A stopped program
 * receives no signals and must be continued. */
static void end(struct run_watch *w)
{
	w->dismissed = true;
	if (w->run.stage >= TERMINATED) {
		kill_program(w);
	} else if (w->run.stage != RUNS || !w->run.ready || w->run.unable || !ask(w)) {
		terminate(w);
	} else {
		signal_group(w, SIGCONT);
		w->run.stage = LAST;
		w->run.before_last = w->run.taken;
		w->run.deadline = vv_clock_s() + w->plan->grace_s;
		REPORT(w, "last", 0, "the last checkpoint was asked for; the program may take %s for it", vv_text_duration(w->plan->grace_s).s);
	}
}

/* Continues the way to the program's end. */
static void advance(struct run_watch *w)
{
	bool late = vv_clock_s() >= w->run.deadline;

	if (w->run.stage == LAST && (w->run.durable > w->run.before_last || w->run.failed > w->run.before_last || late)) {
		if (w->run.durable <= w->run.before_last)
			WARN(w, "late", 0, "the last checkpoint did not become durable%s", late ? " in time" : "");
		terminate(w);
	} else if (w->run.stage == TERMINATED && late) {
		WARN(w, "killed", 0, "the program did not end in %s: it is killed", vv_text_duration(w->plan->grace_s).s);
		kill_program(w);
	}
}

/* ---- events ---------------------------------------------------------------------------------- */

static void handle_start(struct run_watch *w, const struct vv_run_event *e)
{
	double now = vv_clock_s();

	if (w->died > 0)
		w->sums.lost_s += now - w->died;
	w->died = 0;
	w->run.ready = true;
	w->run.unable = false; /* that was another process of the program */
	w->run.base = e->kind == VV_RUN_EVENT_RESTORED ? e->epoch : 0;
	w->run.safe_at = now;
	if (w->run.base)
		REPORT(w, e->word, e->epoch, "the program continues from epoch %" PRIu64 "%s%s", e->epoch, e->text[0] ? "; " : "", e->text);
	else
		REPORT(w, e->word, 0, "the program begins at its start");
	if (w->run.wished)
		request_checkpoint(w);
	w->run.wished = false;
}

static void handle_durable(struct run_watch *w, uint64_t epoch)
{
	uint64_t memory, stored;

	if (epoch > w->run.durable) {
		w->run.durable = epoch;
		w->run.safe_at = w->run.taken == epoch ? w->run.taken_at : vv_clock_s();
	}
	w->sums.epochs++;
	if (vv_run_epochs_size(&w->epochs, epoch, &memory, &stored) < 0) {
		/* it may be dropped already */
		REPORT(w, "durable", epoch, "epoch %" PRIu64 " is durable", epoch);
		return;
	}
	w->sums.measured++;
	w->sums.memory += memory;
	w->sums.stored += stored;
	vv_run_messages_durable(&w->tell, epoch, memory, stored);
}

/* Epoch 0: the call failed before it had an epoch. The requested checkpoint has failed
 * nevertheless. */
static void handle_failed(struct run_watch *w, const struct vv_run_event *e)
{
	w->run.failed = e->epoch ? e->epoch : w->run.taken + 1;
	w->sums.failed++;
	if (e->epoch)
		WARN(w, e->word, e->epoch, "epoch %" PRIu64 " is not stored: %s", e->epoch, e->text);
	else
		WARN(w, e->word, 0, "no checkpoint was taken: %s", e->text);
}

/* Two commands that start at the same moment both find the lineage free. The program that reaches
 * its first call later would run without checkpoints. */
static bool has_rival(struct run_watch *w)
{
	struct vv_lock_holder h;
	pid_t group;

	if (!w->run.pid || w->plan->ranks || vv_run_epochs_holder(&w->epochs, &h) != 1 || h.pid <= 0)
		return false;
	group = getpgid((pid_t)h.pid);
	if (group < 0 || group == w->run.pid || vv_listener_is_below((pid_t)h.pid, w->run.pid))
		return false;
	w->rival = h;
	return true;
}

/* The program may consist of several processes, one of which is the first. */
static void handle_unable(struct run_watch *w, const struct vv_run_event *e)
{
	w->run.unable = !w->run.ready;
	if (w->run.unable)
		WARN(w, e->word, 0, "no checkpoints can be taken: %s", e->text);
	else
		WARN(w, e->word, 0, "another process of the program calls varve_checkpoint_here, too, and goes without: %s", e->text);
	if (w->run.unable && has_rival(w)) {
		WARN(w, "stopped", 0, "it is none of the program's processes that has the lineage: the program is killed");
		kill_program(w);
	}
}

static void handle_event(struct run_watch *w, const struct vv_run_event *e)
{
	switch (e->kind) {
	case VV_RUN_EVENT_RESTORED:
	case VV_RUN_EVENT_FRESH:
		handle_start(w, e);
		break;
	case VV_RUN_EVENT_TAKEN:
		w->run.taken = e->epoch;
		w->run.taken_at = vv_clock_s();
		REPORT(w, e->word, e->epoch, "epoch %" PRIu64 " is taken%s%s", e->epoch, e->text[0] ? ", " : "", e->text);
		break;
	case VV_RUN_EVENT_DURABLE:
		handle_durable(w, e->epoch);
		break;
	case VV_RUN_EVENT_FAILED:
		handle_failed(w, e);
		break;
	case VV_RUN_EVENT_DAMAGED:
	case VV_RUN_EVENT_REFUSED:
	case VV_RUN_EVENT_UNREAD:
		w->run.refused = true;
		w->run.damaged = e->kind == VV_RUN_EVENT_DAMAGED;
		w->run.unread = e->kind == VV_RUN_EVENT_UNREAD;
		w->run.base = e->epoch ? e->epoch : w->run.base;
		WARN(w, e->word, w->run.base, "epoch %" PRIu64 " cannot be restored: %s", w->run.base, e->text);
		break;
	default:
		handle_unable(w, e);
	}
}

static void handle_events(struct run_watch *w)
{
	struct vv_run_event e;

	while (vv_run_events_next(&w->events, &e))
		handle_event(w, &e);
}

/* Finds epochs that the program could not report because it died: the store has them. */
static void find_unreported_epochs(struct run_watch *w)
{
	uint64_t known = w->run.durable > w->run.newest ? w->run.durable : w->run.newest, epoch = UINT64_MAX;

	while (vv_run_epochs_newest(&w->epochs, epoch, &epoch) == 0 && epoch > known)
		handle_durable(w, epoch);
}

/* The machine may be switched off before the next copy by the program. */
static void drain(struct run_watch *w)
{
	char *tier = vv_run_drain_tier(w->plan);
	uint64_t epoch = 0;

	if (tier && vv_run_drain(&w->epochs, tier, &epoch) < 0)
		WARN(w, "undrained", 0, "the newest epoch in '%s' has no copy in tier '%s': %s", w->plan->store, tier, vv_err_last());
	else if (epoch)
		REPORT(w, "drained", epoch, "epoch %" PRIu64 " was copied from '%s' to tier '%s'", epoch, w->plan->store, tier);
	vv_mem_free(tier);
}

static void handle_signal(struct run_watch *w, int sig)
{
	switch (sig) {
	case SIGTERM:
		end(w);
		break;
	case SIGUSR1:
		if (w->plan->last)
			end(w);
		else
			request_checkpoint(w);
		break;
	case SIGINT:
	case SIGHUP:
	case SIGQUIT:
		w->dismissed = true;
		signal_group(w, sig);
		break;
	case SIGTSTP:
		signal_group(w, sig);
		vv_run_terminal_pause(&w->terminal);
		break;
	case SIGCONT:
		vv_run_terminal_give(&w->terminal, w->run.pid);
		signal_group(w, sig);
		break;
	case SIGWINCH:
		signal_group(w, sig);
		break;
	default:
		kill(w->run.pid, sig);
	}
}

/* Without a running program a signal only decides whether it is restarted. */
static void handle_signal_without_program(struct run_watch *w, int sig)
{
	w->dismissed |= sig == SIGTERM || sig == SIGINT || sig == SIGHUP || sig == SIGQUIT || (sig == SIGUSR1 && w->plan->last);
}

/* Events that the program wrote before it died are handled before its death is judged. */
static void supervise_run(struct run_watch *w)
{
	while (w->run.pid) {
		int sig = vv_child_await(&w->signals, tick);

		reap(w);
		handle_events(w);
		if (w->run.pid && sig && sig != SIGCHLD)
			handle_signal(w, sig);
		else
			handle_signal_without_program(w, sig);
		if (w->run.pid) {
			follow_stop(w);
			advance(w);
		}
	}
	find_unreported_epochs(w);
	drain(w);
}

/* ---- again? ---------------------------------------------------------------------------------- */

/* Falls back to the newest intact epoch before the one that it restarted from. Returns false if
 * there is none; then `otherwise` is reported. */
static bool fall_back(struct run_watch *w, const char *why, const char *event, const char *otherwise)
{
	uint64_t older = 0, whole = 0;
	int rc = vv_run_epochs_newest(&w->epochs, w->run.base, &older);

	if (rc == 0 && older) {
		REPORT(w, "checking", w->run.base, "%s: the one before it is read and checked", why);
		rc = vv_run_epochs_newest_intact(&w->epochs, w->run.base, &whole);
	}
	w->deaths = 0;
	if (rc < 0) {
		WARN(w, event, w->run.base, "%s, and older epochs cannot be read (%s): %s", why, vv_err_last(), otherwise);
	} else if (!whole) {
		WARN(w, event, w->run.base, "%s, and %s: %s", why, older ? "no older one is intact" : "there is no older one", otherwise);
	} else {
		REPORT(w, "fallback", whole, "falls back to epoch %" PRIu64, whole);
		w->next = whole;
	}
	return whole > 0;
}

static bool after_refusal(struct run_watch *w)
{
	char why[80];

	if (w->run.damaged) {
		snprintf(why, sizeof(why), "epoch %" PRIu64 " is damaged", w->run.base);
		return fall_back(w, why, "stopped", "the program is left as it is. The same command will find the same; --restart none starts from the beginning");
	}
	if (w->run.unread) {
		WARN(w, "stopped", w->run.base, "the store cannot be read now, and no older epoch is taken for that: the same command tries again");
		return false;
	}
	WARN(w, "stopped", w->run.base, "the program does not fit the epoch: run the program that wrote it, or start from the beginning (--restart none, or another --lineage)");
	return false;
}

/* The epoch that the same command would begin with, as in the plan. */
static uint64_t next_time(struct run_watch *w)
{
	uint64_t epoch = w->plan->first, newest, ended;

	if (epoch == UINT64_MAX && vv_run_epochs_newest(&w->epochs, UINT64_MAX, &newest) == 0 && vv_run_epochs_ended(&w->epochs, &ended) == 0)
		epoch = ended ? 0 : newest;
	return epoch;
}

static void give_up(struct run_watch *w)
{
	uint64_t epoch = next_time(w);
	char where[40] = "at its start", often[60] = "it";

	if (epoch == UINT64_MAX)
		snprintf(where, sizeof(where), "with the newest epoch");
	else if (epoch)
		snprintf(where, sizeof(where), "with epoch %" PRIu64, epoch);
	if (w->sums.restarts)
		snprintf(often, sizeof(often), "it was restarted %" PRIu64 " time%s, and", w->sums.restarts, w->sums.restarts == 1 ? "" : "s");
	WARN(w, "stopped", 0, "%s is left as it is; the same command begins %s", often, where);
}

/* An epoch is at fault only for deaths after it was restored. A program that dies before that is
 * just started again. */
static bool after_death(struct run_watch *w)
{
	char why[120];

	if (w->sums.restarts == w->plan->retries) {
		give_up(w);
		return false;
	}
	if (w->run.durable > w->run.base) {
		w->next = UINT64_MAX;
		w->deaths = 0;
		return true;
	}
	if (!w->run.ready || !w->run.base)
		return true;
	w->deaths = w->run.base == w->dead_at ? w->deaths + 1 : 1;
	w->dead_at = w->run.base;
	if (w->deaths < DEATHS)
		return true;
	snprintf(why, sizeof(why), "the program came from epoch %" PRIu64 " %u times, and died before a newer one was durable", w->run.base, w->deaths);
	fall_back(w, why, "same", "it is tried again");
	return true;
}

/* At a terminal the program receives Ctrl-C itself: it did not crash, the user ended it. */
static bool is_interrupted(const struct run_watch *w)
{
	int code = vv_child_code(w->run.status);

	return w->terminal.is_one && (code == 128 + SIGINT || code == 128 + SIGQUIT);
}

/* Did the program end on request? A request for the last checkpoint alone ends no program. */
static bool is_as_asked(const struct run_watch *w)
{
	return is_interrupted(w) || (w->dismissed && w->run.stage != LAST);
}

/* The program was not found, by the supervisor or by a script before its first call. It will not be
 * found the next time either. */
static bool is_absent(const struct run_watch *w)
{
	int code = vv_child_code(w->run.status);

	return !w->run.ready && (code == VV_RUN_COMMAND_ABSENT || code == VV_RUN_COMMAND_CLOSED);
}

/* An error of its own, in its arguments or its input. A shell reports the signal that killed its
 * command as a status above 128: that is a crash. */
static bool is_mistaken(const struct run_watch *w)
{
	bool begun = w->run.taken || w->run.durable || (w->run.ready && w->run.base);

	return !begun && WIFEXITED(w->run.status) && WEXITSTATUS(w->run.status) <= 128 && w->died - w->run.started < at_once;
}

static bool again(struct run_watch *w)
{
	char words[VV_CHILD_WORDS];
	int sig;

	if (vv_child_is_fine(w->run.status)) {
		if (!w->run.ready && !w->run.unable)
			REPORT(w, "silent", 0, "the program has ended without a call of varve_checkpoint_here: it has none, or is linked statically, or runs with "
			     "other rights than ours");
		if (w->run.ready && !w->dismissed && vv_run_epochs_end(&w->epochs) < 0)
			WARN(w, "unmarked", 0, "that the program has ended well cannot be noted, the next run will go on from the newest epoch: %s", vv_err_last());
		return false;
	}
	while ((sig = vv_child_await(&w->signals, 0)))
		/* a batch system signals both processes at once */
		handle_signal_without_program(w, sig);
	REPORT(w, "ended", 0, is_as_asked(w) ? "the program ended, as asked: it %s" : "the program %s", vv_child_describe(w->run.status, words));
	if (is_absent(w)) {
		WARN(w, "stopped", 0, "the command, or one that it starts, was not found or cannot be executed: it is not started again");
		return false;
	}
	if (w->dismissed || is_interrupted(w))
		return false;
	w->died = vv_clock_s();
	w->sums.lost_s += w->died - w->run.safe_at;
	if (w->run.refused)
		return after_refusal(w);
	if (is_mistaken(w)) {
		WARN(w, "stopped", 0, "that was within %s of its start, and before any checkpoint: it is not started again", vv_text_duration(at_once).s);
		give_up(w);
		return false;
	}
	if (!after_death(w))
		return false;
	w->sums.restarts++;
	REPORT(w, "restart", 0, "restart %" PRIu64 " of %" PRIu64, w->sums.restarts, w->plan->retries);
	return true;
}

/* A program that was killed leaves its lock in S3. A later writer on another machine cannot tell
 * that the program is dead. */
static void release_lock(struct run_watch *w)
{
	struct vv_err_state error;

	vv_err_save(0, &error);
	if (!vv_child_is_fine(w->run.status) && vv_run_epochs_await(&w->epochs, letting_go) < 0)
		vv_err_clear();
	vv_err_restore(&error);
}

void vv_run_watch_prepare(void)
{
	static const int kept[] = { SIGTERM, SIGUSR1, SIGUSR2 };

	vv_child_block(kept, sizeof(kept) / sizeof(kept[0]));
}

int vv_run_watch(const struct vv_run_plan *plan)
{
	static const int heard[] = { SIGCHLD, SIGTERM, SIGUSR1, SIGUSR2, SIGINT, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH };
	struct run_watch w = { .plan = plan, .epochs.plan = plan, .events.fd = -1, .guard.fd = -1, .next = plan->first };
	int rc;

	w.signals = vv_child_block(heard, sizeof(heard) / sizeof(heard[0]));
	vv_run_terminal_open(&w.terminal);
	rc = vv_run_messages_open(&w.tell, vv_args_value(plan->job->args, "log"), plan->job->args->quiet, plan->job->args->json);
	if (rc == 0)
		rc = vv_run_events_open(&w.events, plan->ranks);
	if (rc == 0)
		rc = vv_run_env_terms(plan, w.events.path);
	if (rc == 0 && !plan->ranks)
		rc = vv_run_env_enter(plan->preload);
	if (rc == 0)
		rc = vv_run_guard_open(&w.guard, w.events.path);
	if (rc == 0) {
		look_at_command(&w);
		rc = start(&w);
	}
	while (rc == 0) {
		supervise_run(&w);
		if (w.rival.pid)
			rc = vv_err_set(VV_EBUSY, "run: lineage '%s' of '%s' is being written by %s: the program was killed, for it would have gone without checkpoints",
					plan->lineage, plan->store, w.rival.words);
		else if (again(&w))
			rc = start(&w);
		else
			break;
	}
	release_lock(&w);
	w.sums.status = rc ? 2 : vv_child_code(w.run.status);
	if (rc == 0)
		vv_run_messages_summary(&w.tell, &w.sums);
	vv_run_guard_close(&w.guard);
	vv_run_events_close(&w.events);
	vv_run_messages_close(&w.tell);
	vv_run_launch_fini(&w.launch);
	return rc ? rc : w.sums.status;
}
