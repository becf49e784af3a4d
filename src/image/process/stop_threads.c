#include "image/process/stop_threads.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "image/process/process_tree.h"
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	PATIENCE_MS = 100,       /* limit for the stop of a waiting thread */
	PATIENCE_MOST_MS = 2000, /* limit for a thread that waits for a processor */
	PASSES = 8,
};

static bool is_running(pid_t tid)
{
	char text[512];
	const char *at = vv_process_tree_read(tid, "stat", text, sizeof(text)) > 0 ? strrchr(text, ')') : NULL;

	return at && at[1] == ' ' && at[2] == 'R';
}

static bool is_too_long(const struct vv_stop_threads *h, pid_t tid)
{
	uint64_t ms = h->began ? (vv_clock_ns() - h->began) / 1000000 : 0;

	return ms > PATIENCE_MOST_MS || (ms > PATIENCE_MS && !is_running(tid));
}

bool vv_stop_threads_wait(const struct vv_stop_threads *h, pid_t tid, int *status)
{
	static const struct timespec a_while = { 0, 10000000 };
	sigset_t child;
	pid_t got;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	while ((got = waitpid(tid, status, __WALL | WNOHANG)) == 0 && !is_too_long(h, tid))
		sigtimedwait(&child, NULL, &a_while);
	return got == tid;
}

bool vv_stop_threads_is_stop(int status)
{
	return status >> 16 == PTRACE_EVENT_STOP;
}

/* Waits until an interrupted thread has stopped; an earlier signal is delivered first. Returns 1 if
 * it has stopped, 0 if it has ended. */
static int await_stop(struct vv_stop_threads *h, pid_t tid)
{
	int status;

	for (;;) {
		if (!vv_stop_threads_wait(h, tid, &status))
			return vv_err_set(VV_ENOTSUP, "thread %d does not come to a stop", (int)tid);
		if (!WIFSTOPPED(status))
			return 0;
		if (vv_stop_threads_is_stop(status))
			return WSTOPSIG(status) == SIGTRAP ? 1 : vv_err_set(VV_ENOTSUP, "it is stopped");
		vv_registers_call(PTRACE_CONT, tid, 0, (uintptr_t)WSTOPSIG(status));
	}
}

static int hold(struct vv_stop_threads *h, pid_t tid)
{
	struct vv_restart_syscall_seen seen;

	if (vv_registers_call(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD) < 0)
		return errno == ESRCH ? 0 : vv_err_set(VV_ENOTSUP, "it cannot be traced: %s", strerror(errno));
	if (vv_mem_room(&h->thread, h->n, &h->cap, sizeof(*h->thread)) < 0)
		return VV_ENOMEM;
	vv_restart_syscall_record(tid, &seen);
	h->thread[h->n++] = (struct vv_stop_threads_thread){ .tid = tid, .seen = seen };
	vv_registers_call(PTRACE_INTERRUPT, tid, 0, 0);
	return 0;
}

static bool is_held(const struct vv_stop_threads *h, pid_t tid)
{
	size_t i = 0;

	while (i < h->n && h->thread[i].tid != tid)
		i++;
	return i < h->n;
}

static size_t count_threads(pid_t pid)
{
	char text[4096];
	const char *at = vv_process_tree_read(pid, "status", text, sizeof(text)) > 0 ? strstr(text, "\nThreads:") : NULL;

	return at ? (size_t)strtoul(at + strlen("\nThreads:"), NULL, 10) : 0;
}

/* Calls act for all listed threads; *n becomes their number. */
static int pass_threads(struct vv_stop_threads *h, int (*act)(struct vv_stop_threads *h, pid_t tid), size_t *n)
{
	char path[64];
	const struct dirent *e;
	DIR *d;
	int rc = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)h->pid);
	d = opendir(path);
	for (*n = 0; rc == 0 && d && (e = readdir(d));) {
		pid_t tid = (pid_t)atoi(e->d_name);

		rc = tid > 0 ? act(h, tid) : 0;
		*n += tid > 0;
	}
	if (d)
		closedir(d);
	return rc;
}

/* Calls act for all threads. The list may be cut off where a thread ends: then there are more
 * threads than were listed. */
static int each_thread(struct vv_stop_threads *h, int (*act)(struct vv_stop_threads *h, pid_t tid))
{
	for (int i = 0; i < PASSES; i++) {
		size_t n;
		int rc = pass_threads(h, act, &n);

		if (rc || count_threads(h->pid) <= n)
			return rc;
	}
	return vv_err_set(VV_ENOTSUP, "its threads come and go too fast");
}

static int hold_if_new(struct vv_stop_threads *h, pid_t tid)
{
	return is_held(h, tid) ? 0 : hold(h, tid);
}

/* Repeats until no running thread is left that could create others. */
int vv_stop_threads_all(struct vv_stop_threads *h)
{
	size_t stopped = 0;
	int rc = hold(h, h->pid);

	do {
		if (rc == 0)
			rc = each_thread(h, hold_if_new);
		for (; rc >= 0 && stopped < h->n; stopped++) {
			rc = await_stop(h, h->thread[stopped].tid);
			h->thread[stopped].stopped = rc > 0;
			rc = rc < 0 ? rc : 0;
		}
		if (rc == 0)
			rc = each_thread(h, hold_if_new);
	} while (rc == 0 && stopped < h->n);
	if (rc == 0 && (!h->n || !h->thread[0].stopped))
		rc = vv_err_set(VV_ENOTSUP, "it is ending");
	return rc;
}

/* ---- resuming threads ------------------------------------------------------------------------ */

/* Continues a thread into its call if it has to be followed; otherwise detaches it. */
static void send_back(struct vv_stop_threads_thread *t)
{
	struct vv_registers_regs r;

	if (!t->is_redirected && vv_registers_get(t->tid, &r)) {
		vv_restart_syscall_rewind(t->tid, &t->seen, false, &r, &t->way);
		t->way.followed = t->way.followed && vv_registers_block(t->tid, &t->signals);
		vv_registers_put(t->tid, &r);
	} else if (t->is_redirected && !t->way.followed) {
		vv_registers_unblock(t->tid, &t->signals);
	}
	vv_registers_call(t->way.followed ? PTRACE_SYSCALL : PTRACE_DETACH, t->tid, 0, 0);
}

/* A thread in its call stays traced until we end: a detach at a stop in the call would interrupt it
 * once more. */
static void follow(struct vv_stop_threads *h, const struct vv_stop_threads_thread *t)
{
	int status;

	for (;;) {
		if (!vv_stop_threads_wait(h, t->tid, &status) || !WIFSTOPPED(status))
			return;
		if (vv_stop_threads_is_stop(status) || WSTOPSIG(status) == (SIGTRAP | 0x80))
			break;
		/* a SIGSTOP, which cannot be blocked. */
		vv_registers_call(PTRACE_SYSCALL, t->tid, 0, (uintptr_t)WSTOPSIG(status));
	}
	if (!vv_stop_threads_is_stop(status))
		vv_restart_syscall_finish(t->tid, &t->way);
	vv_registers_unblock(t->tid, &t->signals);
	vv_registers_call(vv_stop_threads_is_stop(status) ? PTRACE_DETACH : PTRACE_CONT, t->tid, 0, 0);
}

void vv_stop_threads_resume(struct vv_stop_threads *h)
{
	for (size_t i = 0; i < h->n; i++)
		if (h->thread[i].stopped)
			send_back(&h->thread[i]);
	h->began = 0; /* no time limit: it must finish */
	for (size_t i = 0; i < h->n; i++)
		if (h->thread[i].stopped && h->thread[i].way.followed)
			follow(h, &h->thread[i]);
	for (size_t i = 0; i < h->n; i++)
		h->thread[i].stopped = false;
}

static int stop_once(struct vv_stop_threads *h, pid_t tid)
{
	double start = vv_clock_s(), stopped_s;
	size_t n = h->n;
	struct vv_restart_syscall_seen seen;
	int rc;

	vv_restart_syscall_record(tid, &seen);
	if (is_held(h, tid) || vv_restart_syscall_is_at_rest(&seen))
		return 0;
	h->began = vv_clock_ns();
	rc = hold(h, tid);
	if (rc || h->n == n)
		return rc;
	rc = await_stop(h, tid);
	h->thread[n].stopped = rc > 0;
	vv_stop_threads_resume(h);
	stopped_s = vv_clock_s() - start;
	h->longest_s = stopped_s > h->longest_s ? stopped_s : h->longest_s;
	return rc < 0 ? rc : 0;
}

int vv_stop_threads_each(struct vv_stop_threads *h)
{
	return each_thread(h, stop_once);
}
