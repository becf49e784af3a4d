/* Handlers that stand before the program's. The program's own action is kept here and called by hand, with the signal mask
 * that the kernel would have given it; where it has none, the default is put back and the fault happens again, so that
 * the process dies of the right signal, at the right instruction, with a core. */
#include "track/chain.h"
#include "base/err.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Somebody who takes the signal by the raw system call may pass on to the handler he found, ours. If we then stand before him,
 * at the same function, the two would call each other for ever; so we come back at another one. */
enum { LEVELS = 3 };

struct chain {
	atomic_int levels;             /* entry points that have been installed */
	struct sigaction next[LEVELS]; /* where each passes on to */
};

static struct chain chains[2]; /* SIGSEGV, SIGBUS */
static bool (*_Atomic mine)(int sig, siginfo_t *info, void *context);
/* Held with all signals blocked and for a few instructions: handlers take it too. */
static atomic_flag busy = ATOMIC_FLAG_INIT;

static struct chain *chain_of(int sig)
{
	return sig == SIGSEGV ? &chains[0] : sig == SIGBUS ? &chains[1] : NULL;
}

static void lock(sigset_t *mask)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, mask);
	while (atomic_flag_test_and_set(&busy))
		sched_yield();
}

static void unlock(const sigset_t *mask)
{
	atomic_flag_clear(&busy);
	pthread_sigmask(SIG_SETMASK, mask, NULL);
}

/* The C library's: the name itself may be interposed, by us. */
static int real_sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	static int (*_Atomic real)(int, const struct sigaction *, struct sigaction *);
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
	if (sent) /* by kill(2): nothing will fault again */
		syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), sig);
}

static void pass_on(int level, int sig, siginfo_t *info, void *context)
{
	struct chain *c = chain_of(sig);
	struct sigaction act;
	sigset_t mask;
	bool sent = info->si_code <= 0;

	lock(&mask);
	act = c->next[level];
	if (act.sa_flags & SA_RESETHAND)
		c->next[level] = (struct sigaction){.sa_handler = SIG_DFL};
	unlock(&mask);
	if (act.sa_handler == SIG_IGN && sent)
		return;
	if (act.sa_handler == SIG_DFL || act.sa_handler == SIG_IGN) {
		die(sig, sent);
		return;
	}
	mask = ((ucontext_t *)context)->uc_sigmask;
	sigorset(&mask, &mask, &act.sa_mask);
	if (!(act.sa_flags & SA_NODEFER))
		sigaddset(&mask, sig);
	pthread_sigmask(SIG_SETMASK, &mask, NULL); /* the return from the signal undoes it */
	if (act.sa_flags & SA_SIGINFO)
		act.sa_sigaction(sig, info, context);
	else
		act.sa_handler(sig);
}

static void take(int level, int sig, siginfo_t *info, void *context)
{
	bool (*fn)(int, siginfo_t *, void *) = atomic_load(&mine);
	int saved = errno;

	if (!fn(sig, info, context))
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

/* Which entry point is in force, or -1. */
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
		sigfillset(&act.sa_mask);
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
		after = *act; /* outside the lock: their memory may be fenced */
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
