/* Contexts, which contain a signal mask and set it. getcontext has no wrapper: it returns a second
 * time when the wrapper has already returned. */
#include "preload/wrap/wrap.h"

enum { TRIES = 16 };

/* Changes the mask in place: a copy would lie on the stack that is being left. */
static void open_context(const ucontext_t *c)
{
	sigset_t *mask = (sigset_t *)(uintptr_t)&c->uc_sigmask;
	if (sigismember(mask, SIGSEGV) == 1)
		sigdelset(mask, SIGSEGV);
	if (sigismember(mask, SIGBUS) == 1)
		sigdelset(mask, SIGBUS);
}

int setcontext(const ucontext_t *to)
{
	open_context(to);
	return REAL(setcontext)(to);
}

/* The kernel writes the old mask. The call may return on another thread, so the write cannot be
 * announced. Instead the memory is written first, unchanged, and the call is repeated if a
 * checkpoint has come in between. */
int swapcontext(ucontext_t *from, const ucontext_t *to)
{
	volatile unsigned long *mask = (unsigned long *)(void *)&from->uc_sigmask;
	int rc, tries = 0;
	open_context(to);
	do {
		*mask = *mask;
		rc = REAL(swapcontext)(from, to);
	} while (rc != 0 && errno == EFAULT && ++tries < TRIES);
	return rc;
}
