/* Signals. The handlers of SIGSEGV and SIGBUS belong to the write protection: the program's
 * handlers are called after them. The two stay unblocked, whatever the program blocks
 * (vv_wrap_open). */
#include "preload/wrap/wrap.h"

/* Deprecated functions are wrapped, too. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	WRITES_OBJECT(old);
	struct sigaction mine;
	if (act) {
		mine = *act;
		sigdelset(&mine.sa_mask, SIGSEGV);
		sigdelset(&mine.sa_mask, SIGBUS);
	}
	bool handled = false;
	int rc = ENGINE->sigaction(sig, act ? &mine : NULL, old, &handled);
	return handled ? rc : REAL(sigaction)(sig, act ? &mine : NULL, old);
}

static bool is_ours(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS;
}

static sighandler_t install(int sig, sighandler_t handler, int flags)
{
	struct sigaction act = { .sa_handler = handler, .sa_flags = flags }, old;
	return sigaction(sig, &act, &old) == 0 ? old.sa_handler : SIG_ERR;
}

/* BSD semantics */
sighandler_t signal(int sig, sighandler_t handler)
{
	return is_ours(sig) ? install(sig, handler, SA_RESTART) : REAL(signal)(sig, handler);
}

sighandler_t bsd_signal(int sig, sighandler_t handler)
{
	return is_ours(sig) ? install(sig, handler, SA_RESTART) : REAL(bsd_signal)(sig, handler);
}

sighandler_t ssignal(int sig, sighandler_t handler)
{
	return is_ours(sig) ? install(sig, handler, SA_RESTART) : REAL(ssignal)(sig, handler);
}

/* the semantics of signal in strict standard C */
sighandler_t __sysv_signal(int sig, sighandler_t handler)
{
	return is_ours(sig) ? install(sig, handler, SA_RESETHAND | SA_NODEFER) : REAL(__sysv_signal)(sig, handler);
}

sighandler_t sysv_signal(int sig, sighandler_t handler)
{
	return is_ours(sig) ? install(sig, handler, SA_RESETHAND | SA_NODEFER) : REAL(sysv_signal)(sig, handler);
}

/* ---- masks */

/* Returns `set` without the two. If they are blocked already, in our own handlers, they stay
 * blocked. */
static const sigset_t *without(const sigset_t *set, int how, sigset_t *copy)
{
	sigset_t now;
	const sigset_t *open = how == SIG_UNBLOCK ? set : vv_wrap_open(set, copy);
	if (open == set)
		return set;
	sigemptyset(&now);
	if (how == SIG_SETMASK)
		REAL(pthread_sigmask)(SIG_BLOCK, NULL, &now);
	sigandset(&now, &now, set);
	if (sigismember(&now, SIGSEGV))
		sigaddset(copy, SIGSEGV);
	if (sigismember(&now, SIGBUS))
		sigaddset(copy, SIGBUS);
	return copy;
}

typedef int change(int how, const sigset_t *set, sigset_t *old);

static int change_mask(change *real, int how, const sigset_t *set, sigset_t *old)
{
	sigset_t copy, before;
	int rc = real(how, without(set, how, &copy), &before);
	if (rc == 0)
		ENGINE->masked(how, set, &before);
	if (rc == 0 && old)
		*old = before;
	return rc;
}

int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	return change_mask(REAL(sigprocmask), how, set, old);
}

int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	return change_mask(REAL(pthread_sigmask), how, set, old);
}

static int change_one(int how, int sig)
{
	sigset_t one;
	sigemptyset(&one);
	sigaddset(&one, sig);
	return sigprocmask(how, &one, NULL);
}

int sighold(int sig)
{
	return is_ours(sig) ? change_one(SIG_BLOCK, sig) : REAL(sighold)(sig);
}

int sigrelse(int sig)
{
	return is_ours(sig) ? change_one(SIG_UNBLOCK, sig) : REAL(sigrelse)(sig);
}

int sigignore(int sig)
{
	return is_ours(sig) ? -(install(sig, SIG_IGN, 0) == SIG_ERR) : REAL(sigignore)(sig);
}

/* A signal that is to be held keeps its handler. */
sighandler_t sigset(int sig, sighandler_t handler)
{
	struct sigaction now;
	if (!is_ours(sig))
		return REAL(sigset)(sig, handler);
	if (handler != SIG_HOLD) {
		sighandler_t before = install(sig, handler, 0);
		return before == SIG_ERR || change_one(SIG_UNBLOCK, sig) != 0 ? SIG_ERR : before;
	}
	return sigaction(sig, NULL, &now) == 0 ? now.sa_handler : SIG_ERR;
}

static int without_ours(int mask)
{
	return mask & ~(1 << (SIGSEGV - 1) | 1 << (SIGBUS - 1));
}

int sigblock(int mask)
{
	return REAL(sigblock)(without_ours(mask));
}

int sigsetmask(int mask)
{
	return REAL(sigsetmask)(without_ours(mask));
}

int sigsuspend(const sigset_t *set)
{
	sigset_t copy;
	return REAL(sigsuspend)(vv_wrap_open(set, &copy));
}

#if __GLIBC_PREREQ(2, 32)
int pthread_attr_setsigmask_np(pthread_attr_t *attr, const sigset_t *set)
{
	sigset_t copy;
	return REAL(pthread_attr_setsigmask_np)(attr, vv_wrap_open(set, &copy));
}
#endif

/* ---- pending signals */

int sigpending(sigset_t *set)
{
	WRITES_OBJECT(set);
	return REAL(sigpending)(set);
}

int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	WRITES_OBJECT(info);
	return REAL(sigwaitinfo)(set, info);
}

int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	WRITES_OBJECT(info);
	return REAL(sigtimedwait)(set, info, timeout);
}

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1U << 31) /* the kernel's header conflicts with that of the C library */
#endif

int sigaltstack(const stack_t *stack, stack_t *old)
{
	if (stack && (unsigned)stack->ss_flags & SS_AUTODISARM)
		ENGINE->keep_left();
	WRITES_OBJECT(old);
	return REAL(sigaltstack)(stack, old);
}
