/* Signals. The handlers of SIGSEGV and SIGBUS are the fence's: what the program installs is kept behind them. And no thread may
 * block the two: a write to a fenced page would then end the program instead of waiting. A blocked fault is fatal anyway,
 * so nothing is lost by that. */
#include "preload/wrap.h"

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
	int rc = vv_fence_sigaction(sig, act ? &mine : NULL, old, &handled);
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

/* as BSD has it */
sighandler_t signal(int sig, sighandler_t handler)
{
	return is_ours(sig) ? install(sig, handler, SA_RESTART) : REAL(signal)(sig, handler);
}

/* what signal is for programs in strict standard C */
sighandler_t __sysv_signal(int sig, sighandler_t handler)
{
	return is_ours(sig) ? install(sig, handler, SA_RESETHAND | SA_NODEFER) : REAL(__sysv_signal)(sig, handler);
}

/* set, without the two; but where they are blocked already, in the handler of a fault, they may stay so */
static const sigset_t *without(const sigset_t *set, int how, sigset_t *copy)
{
	sigset_t now;
	if (!set || how == SIG_UNBLOCK || !(sigismember(set, SIGSEGV) || sigismember(set, SIGBUS)))
		return set;
	sigemptyset(&now);
	if (how == SIG_SETMASK)
		REAL(pthread_sigmask)(SIG_BLOCK, NULL, &now);
	*copy = *set;
	if (!sigismember(&now, SIGSEGV))
		sigdelset(copy, SIGSEGV);
	if (!sigismember(&now, SIGBUS))
		sigdelset(copy, SIGBUS);
	return copy;
}

int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	sigset_t copy;
	WRITES_OBJECT(old);
	return REAL(sigprocmask)(how, without(set, how, &copy), old);
}

int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	sigset_t copy;
	WRITES_OBJECT(old);
	return REAL(pthread_sigmask)(how, without(set, how, &copy), old);
}

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

int sigaltstack(const stack_t *stack, stack_t *old)
{
	WRITES_OBJECT(old);
	return REAL(sigaltstack)(stack, old);
}
