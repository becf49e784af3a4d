/* Handlers that run before the program's handlers. The program's own action is kept here and called
 * with the signal mask that the kernel would have set. SIGSEGV and SIGBUS are excepted, so that the
 * program's handler can write to write-protected memory. If the program has no handler, the default
 * action is restored and the fault is repeated. The process then dies of the right signal, at the
 * right instruction, with a core. */
#include "track/chain.h"
#include "base/err.h"
#include "track/thread.h"
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Code that installs a handler by the raw system call may call the handler that it found, which is
 * ours. If we then installed the same function again, the two would call each other for ever. So we
 * install another entry point. */
enum { LEVELS = 3 };

struct chain {
	atomic_int levels;             /* number of installed entry points */
	struct sigaction next[LEVELS]; /* the next action for each of them */
};

static struct chain chains[2]; /* SIGSEGV, SIGBUS */
static bool (*_Atomic mine)(int sig, siginfo_t *info, void *context);
/* Held only for a few instructions with all signals blocked, since handlers take it too. */
static atomic_flag busy = ATOMIC_FLAG_INIT;

static struct chain *chain_of(int sig)
{
	return sig == SIGSEGV ? &chains[0] : sig == SIGBUS ? &chains[1] : NULL;
}

/* ---- masks
 *
 * Two signals belong to the C library. Its functions remove them from every mask, so they can be
 * set only by a system call. Our masks block CANCEL, which cancels threads: a thread must not end
 * in a handler with all signals blocked. MARK, by which setuid reaches all threads, is blocked
 * while the program's handler runs. It serves as a mark: SIGSEGV or SIGBUS is unblocked then, but
 * the program believes that it is blocked. `held` of the thread records which. The mark disappears
 * with the mask when the handler returns or leaves by siglongjmp. */
enum { CANCEL = 32, MARK = 33 };
enum { KERNEL_SET = 8 }; /* bytes of a mask */

static uint64_t bit(int sig)
{
	return UINT64_C(1) << (sig - 1);
}

static bool is_in(const sigset_t *set, int sig)
{
	uint64_t bits;

	memcpy(&bits, set, sizeof(bits));
	return bits & bit(sig);
}

static void add(sigset_t *set, int sig)
{
	uint64_t bits;

	memcpy(&bits, set, sizeof(bits));
	bits |= bit(sig);
	memcpy(set, &bits, sizeof(bits));
}

static void set_mask(int how, const sigset_t *set, sigset_t *before)
{
	if (before)
		sigemptyset(before);
	syscall(SYS_rt_sigprocmask, how, set, before, KERNEL_SET);
}

static void set_one(int how, int sig)
{
	sigset_t set;

	sigemptyset(&set);
	add(&set, sig);
	set_mask(how, &set, NULL);
}

static void fill(sigset_t *set)
{
	sigfillset(set);
	add(set, CANCEL);
}

/* ---- signals blocked by the program's handlers */

enum { HELD_SEGV = 1, HELD_BUS = 2 };

static unsigned which(const sigset_t *set)
{
	return (sigismember(set, SIGSEGV) == 1 ? HELD_SEGV : 0U) | (sigismember(set, SIGBUS) == 1 ? HELD_BUS : 0U);
}

static unsigned bit_of(int sig)
{
	return sig == SIGSEGV ? HELD_SEGV : HELD_BUS;
}

void vv_chain_masked(int how, const sigset_t *set, sigset_t *before)
{
	struct vv_thread *self = is_in(before, MARK) ? vv_thread_self() : NULL;

	if (!self)
		return;
	if (self->held & HELD_SEGV)
		sigaddset(before, SIGSEGV);
	if (self->held & HELD_BUS)
		sigaddset(before, SIGBUS);
	if (!set || how == SIG_BLOCK)
		return;
	self->held &= how == SIG_UNBLOCK ? ~which(set) : which(set);
	set_one(self->held ? SIG_BLOCK : SIG_UNBLOCK, MARK);
}

static void lock(sigset_t *mask)
{
	sigset_t all;

	fill(&all);
	set_mask(SIG_SETMASK, &all, mask);
	while (atomic_flag_test_and_set(&busy))
		sched_yield();
}

static void unlock(const sigset_t *mask)
{
	atomic_flag_clear(&busy);
	set_mask(SIG_SETMASK, mask, NULL);
}

/* ---- handlers */

/* The C library's sigaction. The name itself may be interposed by us. */
static int (*_Atomic real)(int, const struct sigaction *, struct sigaction *);

void vv_chain_set_real(int (*fn)(int sig, const struct sigaction *act, struct sigaction *old))
{
	atomic_store(&real, fn);
}

static int real_sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	int (*fn)(int, const struct sigaction *, struct sigaction *) = atomic_load(&real);

	if (!fn) {
		void *found = dlsym(RTLD_NEXT, "sigaction");

		fn = found ? (__typeof__(fn))found : sigaction;
		atomic_store(&real, fn);
	}
	return fn(sig, act, old);
}

static void die(int sig, bool sent)
{
	struct sigaction dfl = {.sa_handler = SIG_DFL};

	real_sigaction(sig, &dfl, NULL);
	if (sent) /* by kill(2): no fault will be repeated */
		syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), sig);
}

/* The program believes that the signal is blocked, since it is in a handler for it. A fault ends
 * the process. A signal sent by a process stays pending until the program unblocks it. */
static void handle_blocked(int sig, siginfo_t *info, ucontext_t *context)
{
	if (info->si_code > 0) {
		die(sig, false);
		return;
	}
	sigaddset(&context->uc_sigmask, sig);
	syscall(SYS_rt_tgsigqueueinfo, getpid(), (pid_t)syscall(SYS_gettid), sig, info);
}

/* The return from the signal restores the mask. Without a record of the thread, the mask is the
 * kernel's. */
static void call(const struct sigaction *act, struct vv_thread *self, unsigned held, int sig, siginfo_t *info, ucontext_t *context)
{
	sigset_t mask = context->uc_sigmask;

	sigorset(&mask, &mask, &act->sa_mask);
	if (!(act->sa_flags & SA_NODEFER))
		sigaddset(&mask, sig);
	if (self) {
		self->held = held | which(&mask);
		if (self->held)
			add(&mask, MARK);
		sigdelset(&mask, SIGSEGV);
		sigdelset(&mask, SIGBUS);
	}
	set_mask(SIG_SETMASK, &mask, NULL);
	if (act->sa_flags & SA_SIGINFO)
		act->sa_sigaction(sig, info, context);
	else
		act->sa_handler(sig);
	if (self)
		self->held = held;
}

static void pass_on(int level, int sig, siginfo_t *info, ucontext_t *context)
{
	struct vv_thread *self = vv_thread_self();
	unsigned held = self && is_in(&context->uc_sigmask, MARK) ? self->held : 0;
	struct chain *c = chain_of(sig);
	struct sigaction act;
	sigset_t mask;
	bool sent = info->si_code <= 0;

	if (held & bit_of(sig)) {
		handle_blocked(sig, info, context);
		return;
	}
	lock(&mask);
	act = c->next[level];
	if (act.sa_flags & SA_RESETHAND)
		c->next[level] = (struct sigaction){.sa_handler = SIG_DFL};
	unlock(&mask);
	if (act.sa_handler == SIG_IGN && sent)
		return;
	if (act.sa_handler == SIG_DFL || act.sa_handler == SIG_IGN)
		die(sig, sent);
	else
		call(&act, self, held, sig, info, context);
}

/* A thread with asynchronous cancellation must not end in our handler or with all signals blocked.
 * First its cancellation becomes deferred. But the C library may already have sent a signal, which
 * would end the thread in our first wait, whatever it holds there. So the thread makes an empty
 * wait here. That wait takes the signal, or shows that there is none. */
static void forbid_cancel(const ucontext_t *context)
{
	sigset_t all;

	set_mask(SIG_SETMASK, &context->uc_sigmask, NULL);
	poll(NULL, 0, 0);
	fill(&all);
	set_mask(SIG_SETMASK, &all, NULL);
}

/* Here a cancelled thread ends at the latest, with nothing left undone. */
static void allow_cancel(const ucontext_t *context)
{
	int type;

	set_mask(SIG_SETMASK, &context->uc_sigmask, NULL);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
}

static void take(int level, int sig, siginfo_t *info, void *context)
{
	bool (*fn)(int, siginfo_t *, void *) = atomic_load(&mine), handled;
	int saved = errno, type;

	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
	if (type == PTHREAD_CANCEL_ASYNCHRONOUS)
		forbid_cancel(context);
	handled = fn(sig, info, context);
	if (type == PTHREAD_CANCEL_ASYNCHRONOUS)
		allow_cancel(context);
	if (!handled)
		pass_on(level, sig, info, context);
	errno = saved;
}

static void take_first(int sig, siginfo_t *info, void *context)
{
	take(0, sig, info, context);
}

static void take_second(int sig, siginfo_t *info, void *context)
{
	take(1, sig, info, context);
}

static void take_third(int sig, siginfo_t *info, void *context)
{
	take(2, sig, info, context);
}

static void (*const entry[LEVELS])(int, siginfo_t *, void *) = {take_first, take_second, take_third};

/* The installed entry point, or -1. */
static int level_of(const struct sigaction *act)
{
	for (int i = 0; i < LEVELS; i++)
		if ((act->sa_flags & SA_SIGINFO) && act->sa_sigaction == entry[i])
			return i;
	return -1;
}

static int install(int sig)
{
	struct sigaction now, act = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
	struct chain *c = chain_of(sig);
	sigset_t mask;
	int rc, level;

	lock(&mask);
	rc = real_sigaction(sig, NULL, &now);
	if (rc == 0 && level_of(&now) < 0) {
		level = atomic_load(&c->levels) < LEVELS ? atomic_load(&c->levels) : LEVELS - 1;
		c->next[level] = now;
		atomic_store(&c->levels, level + 1);
		act.sa_sigaction = entry[level];
		fill(&act.sa_mask);
		rc = real_sigaction(sig, &act, NULL);
	}
	unlock(&mask);
	return rc ? vv_err_set(VV_ENOTSUP, "cannot install a handler for signal %d", sig) : 0;
}

int vv_chain_install(bool (*fn)(int sig, siginfo_t *info, void *context))
{
	int rc;

	atomic_store(&mine, fn);
	rc = install(SIGSEGV);
	return rc ? rc : install(SIGBUS);
}

int vv_chain_sigaction(int sig, const struct sigaction *act, struct sigaction *old, bool *handled)
{
	struct chain *c = chain_of(sig);
	struct sigaction now, before = {.sa_handler = SIG_DFL}, after = {.sa_handler = SIG_DFL};
	sigset_t mask;
	int level = -1;

	*handled = false;
	if (!c || atomic_load(&c->levels) == 0)
		return 0;
	if (act)
		/* Outside the lock: the caller's memory may be write-protected. */
		after = *act;
	lock(&mask);
	if (real_sigaction(sig, NULL, &now) == 0)
		level = level_of(&now);
	if (level >= 0) {
		before = c->next[level];
		if (act)
			c->next[level] = after;
	}
	unlock(&mask);
	*handled = level >= 0;
	if (*handled && old)
		*old = before;
	return 0;
}

void vv_chain_forked(void)
{
	atomic_flag_clear(&busy);
}
