/* All threads are stopped, so that none can fork while the descriptor is among theirs. The first of them makes two calls, userfaultfd and close, by an
 * instruction of its vdso, with all signals blocked; we take the descriptor in between (pidfd_getfd). Then its registers are as they were, set where the
 * kernel has stopped it to look for signals: what it was interrupted in goes on as after any signal without a handler. Whoever does that must not be killed
 * half-way, when the thread is to run with registers that are not its own. So it is a process of its own, which shares our memory and our descriptors while we
 * wait for it; and when it ends, the kernel lets go of threads that it could not stop. */
#include "image/inject.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "image/halt.h"
#include "image/tree.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/rseq.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	STACK = 64 << 10,
	SETS_MOST = 2,
	SET_BYTES = 16 << 10,
	VDSO_MOST = 64 << 10,
	SIGNALS = 8, /* bytes of the kernel's set of them */
	STRANGE_MOST = 64, /* stops that were not asked for */
	USER_MODE_ONLY = 1,
};

/* ---- what differs between machines -------------------------------------------------------------------------------------------- */

#if defined(__aarch64__)

typedef struct user_regs_struct regs_t;

/* A system call leaves of vectors what all machines have: what more there is must be put back. A thread in streaming mode would lose that. */
static const int sets[] = { NT_PRSTATUS, 0x405 /* NT_ARM_SVE */ };
enum { KIND_OF_BRANCH = 3 << 10 }; /* of pstate: it comes to the gate by none that would have to be announced there (BTI) */
static const uint8_t gate[] = { 0x01, 0x00, 0x00, 0xd4 }; /* svc #0 */
enum { KNOWN = 1, STREAMING = 0x40b /* NT_ARM_SSVE */, GATE_STEP = 4 };

static void set_call(regs_t *r, uint64_t at, long number, uint64_t a, uint64_t b)
{
	r->pc = at;
	r->pstate &= ~(uint64_t)KIND_OF_BRANCH;
	r->regs[8] = (uint64_t)number;
	r->regs[0] = a;
	r->regs[1] = b;
}

static long result_of(const regs_t *r)
{
	return (long)r->regs[0];
}

static uint64_t place_of(const regs_t *r)
{
	return r->pc;
}

#elif defined(__x86_64__)

typedef struct user_regs_struct regs_t;

static const int sets[] = { NT_PRSTATUS };
static const uint8_t gate[] = { 0x0f, 0x05 }; /* syscall */
enum { KNOWN = 1, STREAMING = 0, GATE_STEP = 1 };

/* orig_rax: it comes from no system call, so none is begun again. */
static void set_call(regs_t *r, uint64_t at, long number, uint64_t a, uint64_t b)
{
	r->rip = at;
	r->rax = (unsigned long)number;
	r->orig_rax = (unsigned long)-1;
	r->rdi = a;
	r->rsi = b;
}

static long result_of(const regs_t *r)
{
	return (long)r->rax;
}

static uint64_t place_of(const regs_t *r)
{
	return r->rip;
}

#else

typedef long regs_t;

static const int sets[] = { NT_PRSTATUS };
static const uint8_t gate[] = { 0 };
enum { KNOWN = 0, STREAMING = 0, GATE_STEP = 1 };

static void set_call(regs_t *r, uint64_t at, long number, uint64_t a, uint64_t b)
{
	(void)r, (void)at, (void)number, (void)a, (void)b;
}

static long result_of(const regs_t *r)
{
	return *r;
}

static uint64_t place_of(const regs_t *r)
{
	return (uint64_t)*r;
}

#endif

struct state { /* of a thread */
	size_t n[SETS_MOST];
	uint8_t set[SETS_MOST][SET_BYTES] __attribute__((aligned(16)));
	uint8_t signals[SIGNALS];
};

struct inject {
	pid_t pid;
	int (*run)(struct inject *j);
	uint64_t vdso, gate;
	struct vv_halt halt;
	int fd;
	double stopped_s;
	int rc; /* with a message of the thread that waits for us: its memory is ours */
	struct state state;
};

/* ---- where a system call can be made ------------------------------------------------------------------------------------------- */

static uint64_t vdso_of(pid_t pid)
{
	uint64_t word[128];
	ssize_t n = vv_tree_read(pid, "auxv", (char *)word, sizeof(word));

	for (ssize_t i = 0; i + 1 < n / (ssize_t)sizeof(*word); i += 2)
		if (word[i] == AT_SYSINFO_EHDR)
			return word[i + 1];
	return 0;
}

static bool peek(pid_t pid, uint64_t from, void *to, size_t n)
{
	struct iovec local = { to, n }, remote = { (void *)(uintptr_t)from, n };

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)n;
}

/* The mapping that the kernel calls vdso, which may be executed; its length. */
static size_t vdso_size(pid_t pid, uint64_t vdso)
{
	char path[64], line[512];
	size_t size = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	while (f && !size && fgets(line, sizeof(line), f)) {
		unsigned long long from, to;

		if (sscanf(line, "%llx-%llx", &from, &to) == 2 && from == vdso && strstr(line, " r-xp ") && strstr(line, "[vdso]"))
			size = (size_t)(to - from);
	}
	if (f)
		fclose(f);
	return size;
}

static int find_gate(struct inject *j)
{
	size_t n;
	uint8_t *bytes;

	if (!KNOWN)
		return vv_err_set(VV_ENOTSUP, "varve does not know the registers of this machine");
	j->vdso = vdso_of(j->pid);
	n = j->vdso ? vdso_size(j->pid, j->vdso) : 0;
	bytes = vv_mem_new(VDSO_MOST, 1);
	if (!bytes)
		return VV_ENOMEM;
	n = n < VDSO_MOST ? n : VDSO_MOST;
	if (n && peek(j->pid, j->vdso, bytes, n))
		for (size_t i = 0; !j->gate && i + sizeof(gate) <= n; i += GATE_STEP)
			if (memcmp(bytes + i, gate, sizeof(gate)) == 0)
				j->gate = j->vdso + i;
	vv_mem_free(bytes);
	return j->gate ? 0 : vv_err_set(VV_ENOTSUP, "it has no vdso by which it could call the kernel");
}

/* ---- a call in its name --------------------------------------------------------------------------------------------------------- */

static ssize_t get_set(pid_t tid, int type, void *to, size_t n)
{
	struct iovec v = { to, n };

	return vv_halt_trace(PTRACE_GETREGSET, tid, (uintptr_t)type, (uintptr_t)&v) < 0 ? -1 : (ssize_t)v.iov_len;
}

static bool put_set(pid_t tid, int type, void *from, size_t n)
{
	struct iovec v = { from, n };

	return vv_halt_trace(PTRACE_SETREGSET, tid, (uintptr_t)type, (uintptr_t)&v) == 0;
}

/* In a restartable sequence it must not be led away: the kernel would forget that it was in one. */
static bool is_in_sequence(pid_t tid, uint64_t place)
{
	struct __ptrace_rseq_configuration c = { 0 };
	struct rseq_cs cs;
	uint64_t at = 0;

	if (vv_halt_trace(PTRACE_GET_RSEQ_CONFIGURATION, tid, sizeof(c), (uintptr_t)&c) < 0 || !c.rseq_abi_pointer)
		return false;
	if (!peek(tid, c.rseq_abi_pointer + offsetof(struct rseq, rseq_cs), &at, sizeof(at)))
		return true;
	return at && (!peek(tid, at, &cs, sizeof(cs)) || place - cs.start_ip < cs.post_commit_offset);
}

/* It has its own system calls handed to itself: ours would be, too. */
static bool is_dispatched(pid_t tid)
{
	enum { GET_DISPATCH = 0x4211 }; /* PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG */
	struct {
		uint64_t mode, selector, offset, len;
	} c = { 0 };

	return vv_halt_trace(GET_DISPATCH, tid, sizeof(c), (uintptr_t)&c) == 0 && c.mode;
}

static bool is_streaming(pid_t tid)
{
	struct {
		uint32_t size, max_size;
		uint16_t vl, max_vl, flags, reserved;
	} head = { 0 };

	return STREAMING != 0 && get_set(tid, STREAMING, &head, sizeof(head)) == sizeof(head) && head.flags & 1;
}

static int save(pid_t tid, struct state *s)
{
	ssize_t n;

	if (is_streaming(tid))
		return vv_err_set(VV_ENOTSUP, "it is in a mode of its registers that a system call would end");
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		n = get_set(tid, sets[i], s->set[i], SET_BYTES);
		s->n[i] = n > 0 ? (size_t)n : 0;
		if (n >= SET_BYTES || (i == 0 && n != sizeof(regs_t)))
			return vv_err_set(VV_ENOTSUP, "it has other registers than this program");
	}
	if (is_dispatched(tid))
		return vv_err_set(VV_ENOTSUP, "its system calls are dispatched to itself");
	if (is_in_sequence(tid, place_of((const regs_t *)(const void *)s->set[0])))
		return vv_err_set(VV_ENOTSUP, "it was just in a restartable sequence (rseq)");
	return vv_halt_trace(PTRACE_GETSIGMASK, tid, SIGNALS, (uintptr_t)s->signals) < 0 ? vv_err_set(VV_ENOTSUP, "its signals cannot be seen: %s", strerror(errno)) : 0;
}

/* It goes on until it comes to a stop of the kind. A SIGSTOP, which cannot be blocked, is delivered: the process counts as stopped then, and will be once
 * we have let go of it, if no SIGCONT comes before that; this thread goes on. */
static int go_on(struct inject *j, pid_t tid, int request, bool (*wanted)(int status))
{
	int status, sig = 0;

	for (int i = 0; i < STRANGE_MOST; i++) {
		if (vv_halt_trace(request, tid, 0, (uintptr_t)sig) < 0 || !vv_halt_hear(&j->halt, tid, &status) || !WIFSTOPPED(status))
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

static int call(struct inject *j, pid_t tid, const struct state *s, long number, uint64_t a, long *result)
{
	regs_t r = *(const regs_t *)(const void *)s->set[0];
	int rc = 0;

	set_call(&r, j->gate, number, a, 0);
	if (!put_set(tid, NT_PRSTATUS, &r, sizeof(r)))
		return vv_err_set(VV_ENOTSUP, "its registers cannot be set: %s", strerror(errno));
	for (int ends = 0; rc == 0 && ends < 2; ends++) /* where it begins, and where it is done */
		rc = go_on(j, tid, PTRACE_SYSCALL, is_call);
	if (rc == 0 && get_set(tid, NT_PRSTATUS, &r, sizeof(r)) != sizeof(r))
		rc = vv_err_set(VV_ENOTSUP, "it has ended");
	*result = rc ? -1 : result_of(&r);
	return rc;
}

/* At a stop for signals, as the one at which they were taken was: from there the kernel begins again what it had interrupted. */
static void put_back(struct inject *j, pid_t tid, struct state *s)
{
	vv_halt_trace(PTRACE_INTERRUPT, tid, 0, 0);
	if (go_on(j, tid, PTRACE_CONT, vv_halt_is_stop) < 0)
		return;
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		if (s->n[i])
			put_set(tid, sets[i], s->set[i], s->n[i]);
	vv_halt_trace(PTRACE_SETSIGMASK, tid, SIGNALS, (uintptr_t)s->signals);
}

static int make_userfault(struct inject *j, pid_t tid, struct state *s)
{
	uint8_t all[SIGNALS];
	long fd = -1, closed = 0;
	int pidfd, rc;

	memset(all, 0xff, sizeof(all));
	if (vv_halt_trace(PTRACE_SETSIGMASK, tid, SIGNALS, (uintptr_t)all) < 0)
		return vv_err_set(VV_ENOTSUP, "its signals cannot be blocked: %s", strerror(errno));
	rc = call(j, tid, s, SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | USER_MODE_ONLY, &fd);
	if (rc == 0 && fd < 0)
		rc = vv_err_set(VV_ENOTSUP, "userfaultfd: %s", strerror((int)-fd));
	if (rc == 0) {
		pidfd = pidfd_open(j->pid, 0);
		j->fd = pidfd < 0 ? -1 : pidfd_getfd(pidfd, (int)fd, 0);
		if (j->fd < 0)
			rc = vv_err_set(VV_ENOTSUP, "its userfaultfd cannot be taken over: %s", strerror(errno));
		if (pidfd >= 0)
			close(pidfd);
		if (call(j, tid, s, SYS_close, (uint64_t)fd, &closed) < 0)
			rc = VV_ENOTSUP;
	}
	put_back(j, tid, s);
	return rc;
}

static int inject(struct inject *j)
{
	double start = vv_clock_s();
	int rc = vv_halt_all(&j->halt);

	if (rc == 0 && vdso_of(j->pid) != j->vdso)
		rc = vv_err_set(VV_ENOTSUP, "it has become another program");
	if (rc == 0)
		rc = save(j->pid, &j->state);
	if (rc == 0) {
		j->halt.began = 0; /* what is begun must come to an end */
		rc = make_userfault(j, j->pid, &j->state);
	}
	vv_halt_let_go(&j->halt);
	j->stopped_s = vv_clock_s() - start;
	return rc;
}

static int settle(struct inject *j)
{
	int rc = vv_halt_each(&j->halt);

	j->stopped_s = j->halt.longest_s;
	return rc;
}

/* ---- the process that does it ---------------------------------------------------------------------------------------------------- */

static int work(void *arg)
{
	struct inject *j = arg;

	setsid();
	prctl(PR_SET_NAME, "precopy");
	signal(SIGCHLD, SIG_DFL);
	j->halt.began = vv_clock_ns();
	j->rc = j->run(j);
	return 0;
}

/* CLONE_VFORK: we stand still until it has ended, so it may use what is ours, errno and the error's message among that. No signal says that it has. */
static int run(struct inject *j, double *stopped_s)
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

int vv_inject_userfault(pid_t pid, int *uffd, double *stopped_s)
{
	struct inject j = { .pid = pid, .halt.pid = pid, .run = inject, .fd = -1 };
	int rc = find_gate(&j);

	if (rc == 0)
		rc = run(&j, stopped_s);
	if (rc && j.fd >= 0)
		close(j.fd);
	else if (rc == 0)
		*uffd = j.fd;
	return rc;
}

int vv_inject_settle(pid_t pid, double *stopped_s)
{
	struct inject j = { .pid = pid, .halt.pid = pid, .run = settle, .fd = -1 };

	return run(&j, stopped_s);
}
