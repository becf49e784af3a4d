#include "base/block_signals.h"
#include <errno.h>
#include <stddef.h>

static bool is_fault(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE || sig == SIGILL || sig == SIGTRAP || sig == SIGABRT || sig == SIGSYS;
}

static bool is_handled(int sig)
{
	struct sigaction act;

	return sigaction(sig, NULL, &act) == 0 && act.sa_handler != SIG_DFL && act.sa_handler != SIG_IGN;
}

void vv_block_signals_begin(sigset_t *before)
{
	int saved = errno; /* some numbers belong to no signal */
	sigset_t set;

	sigemptyset(&set);
	for (int sig = 1; sig <= SIGRTMAX; sig++)
		if (!is_fault(sig) && is_handled(sig))
			sigaddset(&set, sig);
	errno = saved;
	pthread_sigmask(SIG_BLOCK, &set, before);
}

void vv_block_signals_brief(sigset_t *before)
{
	sigset_t set;

	sigfillset(&set);
	for (int sig = 1; sig <= SIGRTMAX; sig++)
		if (is_fault(sig))
			sigdelset(&set, sig);
	pthread_sigmask(SIG_BLOCK, &set, before);
}

void vv_block_signals_end(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

bool vv_block_signals_blocks(const sigset_t *mask)
{
	int saved = errno;
	bool any = false;

	for (int sig = 1; sig <= SIGRTMAX && !any; sig++)
		any = !is_fault(sig) && sigismember(mask, sig) == 1 && is_handled(sig);
	errno = saved;
	return any;
}
