/* All threads are stopped, so that none can fork while the process has a temporary descriptor. The
 * first thread makes the calls by an instruction of its vdso, with all signals blocked. In between,
 * pidfd_getfd takes a descriptor over. Then the thread gets its own registers back at a stop for
 * signals. It returns to its interrupted system call (image/process/restart_syscall.h). The tracer
 * must not be killed half-way, because the thread would then run with foreign registers. So the
 * tracer is a process of its own, which shares our memory and our descriptors while we wait for it.
 * When the tracer ends, the kernel detaches all threads that are still traced. */
#include "image/process/inject_syscall.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "image/process/stop_threads.h"
#include "image/process/process_tree.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	STACK = 64 << 10,
	VDSO_MOST = 64 << 10,
	STRANGE_MOST = 64, /* unexpected stops */
	USER_MODE_ONLY = 1,
};

struct vv_inject_syscall {
	pid_t pid;
	const char *name; /* of the tracer process */
	int (*run)(struct vv_inject_syscall *j);
	int (*act)(struct vv_inject_syscall *j, void *arg); /* while all threads are stopped */
	/* The same, after the thread has its own registers again; or NULL. */
	int (*meanwhile)(struct vv_inject_syscall *j);
	void *arg;
	uint64_t vdso, gate;
	struct vv_stop_threads halt;
	double stopped_s;
	int rc; /* the error message belongs to the waiting thread, whose memory we share */
	struct vv_registers_state state;
};

/* ---- the instruction for a system call ------------------------------------------------------- */

static uint64_t vdso_of(pid_t pid)
{
	uint64_t word[128];
	ssize_t n = vv_process_tree_read(pid, "auxv", (char *)word, sizeof(word));

	for (ssize_t i = 0; i + 1 < n / (ssize_t)sizeof(*word); i += 2)
		if (word[i] == AT_SYSINFO_EHDR)
			return word[i + 1];
	return 0;
}

/* Finds the executable mapping that the kernel calls vdso. CRIU may have restored an older vdso
 * beside it; AT_SYSINFO_EHDR refers to the older one. */
static size_t find_vdso(pid_t pid, uint64_t *at)
{
	char path[64], line[512];
	size_t size = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	while (f && !size && fgets(line, sizeof(line), f)) {
		unsigned long long from, to;

		if (strstr(line, " r-xp ") && strstr(line, "[vdso]") && sscanf(line, "%llx-%llx", &from, &to) == 2) {
			*at = from;
			size = (size_t)(to - from);
		}
	}
	if (f)
		fclose(f);
	return size;
}

static int find_gate(struct vv_inject_syscall *j)
{
	uint64_t from = 0;
	size_t n, at;
	uint8_t *bytes;

	if (!vv_registers_is_known())
		return vv_err_set(VV_ENOTSUP, "varve does not know the registers of this machine");
	j->vdso = vdso_of(j->pid);
	n = find_vdso(j->pid, &from);
	bytes = vv_mem_new(VDSO_MOST, 1);
	if (!bytes)
		return VV_ENOMEM;
	n = n < VDSO_MOST ? n : VDSO_MOST;
	at = n && vv_registers_peek(j->pid, from, bytes, n) ? vv_registers_find_syscall(bytes, n) : n;
	j->gate = at < n ? from + at : 0;
	vv_mem_free(bytes);
	return j->gate ? 0 : vv_err_set(VV_ENOTSUP, "it has no vdso by which it could call the kernel");
}

/* ---- a call on behalf of the process --------------------------------------------------------- */

/* Continues the thread until a stop of the wanted kind. A SIGSTOP cannot be blocked and is
 * delivered: this thread continues, but the process counts as stopped. It will stop after we
 * detach, unless a SIGCONT comes before. */
static int go_on(struct vv_inject_syscall *j, pid_t tid, int request, bool (*wanted)(int status))
{
	int status, sig = 0;

	for (int i = 0; i < STRANGE_MOST; i++) {
		if (vv_registers_call(request, tid, 0, (uintptr_t)sig) < 0 || !vv_stop_threads_wait(&j->halt, tid, &status) || !WIFSTOPPED(status))
			return vv_err_set(VV_ENOTSUP, "it has ended");
		if (wanted(status))
			return 0;
		sig = status >> 16 == 0 && WSTOPSIG(status) == SIGSTOP ? SIGSTOP : 0;
	}
	return vv_err_set(VV_ENOTSUP, "it does not go on");
}

static bool is_call(int status)
{
	return WSTOPSIG(status) == (SIGTRAP | 0x80);
}

int vv_inject_syscall_call(struct vv_inject_syscall *j, long number, const uint64_t arg[VV_REGISTERS_ARGS], long *result)
{
	pid_t tid = j->halt.thread[0].tid;
	struct vv_registers_regs r = j->state.regs;
	int rc = 0;

	vv_registers_set_syscall(&r, j->gate, number, arg);
	if (!vv_registers_put(tid, &r))
		return vv_err_set(VV_ENOTSUP, "its registers cannot be set: %s", strerror(errno));
	for (int ends = 0; rc == 0 && ends < 2; ends++) /* entry and exit of the call */
		rc = go_on(j, tid, PTRACE_SYSCALL, is_call);
	if (rc == 0 && !vv_registers_get(tid, &r))
		rc = vv_err_set(VV_ENOTSUP, "it has ended");
	*result = rc ? -1 : vv_registers_result(&r);
	return rc;
}

int vv_inject_syscall_take(struct vv_inject_syscall *j, int fd, int *out)
{
	int pidfd = pidfd_open(j->pid, 0), got = pidfd < 0 ? -1 : pidfd_getfd(pidfd, fd, 0), rc = 0;

	if (got < 0)
		rc = vv_err_set(VV_ENOTSUP, "a descriptor of it cannot be taken over: %s", strerror(errno));
	else
		*out = got;
	if (pidfd >= 0)
		close(pidfd);
	return rc;
}

/* Restores the registers at a stop for signals, the same kind of stop at which they were saved. */
static void put_back(struct vv_inject_syscall *j, pid_t tid)
{
	vv_registers_call(PTRACE_INTERRUPT, tid, 0, 0);
	if (go_on(j, tid, PTRACE_CONT, vv_stop_threads_is_stop) == 0)
		vv_registers_restore(tid, &j->state);
}

/* Blocks all signals, runs `act`, and restores the registers. */
static int run_injected(struct vv_inject_syscall *j, struct vv_stop_threads_thread *t)
{
	int rc;

	if (!vv_registers_block(t->tid, &t->signals))
		return vv_err_set(VV_ENOTSUP, "its signals cannot be blocked: %s", strerror(errno));
	vv_restart_syscall_rewind(t->tid, &t->seen, true, &j->state.regs, &t->way);
	t->is_redirected = true;
	rc = j->act(j, j->arg);
	put_back(j, t->tid);
	return rc;
}

static int inject(struct vv_inject_syscall *j)
{
	double start = vv_clock_s();
	int rc = vv_stop_threads_all(&j->halt);

	if (rc == 0 && vdso_of(j->pid) != j->vdso)
		rc = vv_err_set(VV_ENOTSUP, "it has become another program");
	if (rc == 0)
		rc = vv_registers_save(j->pid, &j->state);
	if (rc == 0) {
		j->halt.began = 0; /* no time limit: an injected call must finish */
		rc = run_injected(j, &j->halt.thread[0]);
	}
	if (rc == 0 && j->meanwhile)
		rc = j->meanwhile(j);
	vv_stop_threads_resume(&j->halt);
	j->stopped_s = vv_clock_s() - start;
	return rc;
}

static int stop_each(struct vv_inject_syscall *j)
{
	int rc = vv_stop_threads_each(&j->halt);

	j->stopped_s = j->halt.longest_s;
	return rc;
}

/* ---- the tracer process ---------------------------------------------------------------------- */

static int work(void *arg)
{
	struct vv_inject_syscall *j = arg;

	setsid();
	/* Other processes wait for it; without the permission it is slower. */
	setpriority(PRIO_PROCESS, 0, -20);
	prctl(PR_SET_NAME, j->name);
	signal(SIGCHLD, SIG_DFL);
	j->halt.began = vv_clock_ns();
	j->rc = j->run(j);
	return 0;
}

/* CLONE_VFORK: we wait until the tracer has ended, so it may use our memory, including errno and
 * the error message. Its end sends no signal. */
static int run(struct vv_inject_syscall *j, double *stopped_s)
{
	uint8_t *stack = vv_mem_new(STACK, 1);
	sigset_t all, old;
	pid_t pid;

	if (!stack)
		return VV_ENOMEM;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pid = clone(work, stack + STACK, CLONE_VM | CLONE_VFORK | CLONE_FILES, j);
	if (pid < 0)
		j->rc = vv_err_sys(errno, "cannot start a process");
	else
		waitpid(pid, NULL, __WALL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	*stopped_s += j->stopped_s;
	vv_mem_free(j->halt.thread);
	vv_mem_free(stack);
	return j->rc;
}

int vv_inject_syscall_run(pid_t pid, int (*act)(struct vv_inject_syscall *j, void *arg), void *arg)
{
	struct vv_inject_syscall j = { .pid = pid, .halt.pid = pid, .name = "late-pages", .run = inject, .act = act, .arg = arg };
	double stopped_s = 0;
	int rc = find_gate(&j);

	return rc ? rc : run(&j, &stopped_s);
}

/* ---- a userfaultfd --------------------------------------------------------------------------- */

struct userfault {
	int (*meanwhile)(void *arg, int uffd);
	void *arg;
	int fd;
};

static int make_userfault(struct vv_inject_syscall *j, void *arg)
{
	static const uint64_t how[VV_REGISTERS_ARGS] = { O_CLOEXEC | O_NONBLOCK | USER_MODE_ONLY };
	struct userfault *u = arg;
	uint64_t what[VV_REGISTERS_ARGS] = { 0 };
	long fd = -1, closed = 0;
	int rc = vv_inject_syscall_call(j, SYS_userfaultfd, how, &fd);

	if (rc == 0 && fd < 0)
		return vv_err_set(VV_ENOTSUP, "userfaultfd: %s", strerror((int)-fd));
	if (rc)
		return rc;
	what[0] = (uint64_t)fd;
	rc = vv_inject_syscall_take(j, (int)fd, &u->fd);
	return vv_inject_syscall_call(j, SYS_close, what, &closed) < 0 ? VV_ENOTSUP : rc;
}

static int use_userfault(struct vv_inject_syscall *j)
{
	struct userfault *u = j->arg;

	return u->meanwhile(u->arg, u->fd);
}

int vv_inject_syscall_userfault(pid_t pid, int (*meanwhile)(void *arg, int uffd), void *arg, int *uffd, double *stopped_s)
{
	struct userfault u = { meanwhile, arg, -1 };
	struct vv_inject_syscall j = { .pid = pid, .halt.pid = pid, .name = "precopy", .run = inject, .act = make_userfault, .meanwhile = use_userfault, .arg = &u };
	int rc = find_gate(&j);

	if (rc == 0)
		rc = run(&j, stopped_s);
	if (rc && u.fd >= 0)
		close(u.fd);
	else if (rc == 0)
		*uffd = u.fd;
	return rc;
}

int vv_inject_syscall_wait_pending(pid_t pid, double *stopped_s)
{
	struct vv_inject_syscall j = { .pid = pid, .halt.pid = pid, .name = "precopy", .run = stop_each };

	return run(&j, stopped_s);
}
