/* SIGSEGV and SIGBUS with a function of ours ahead of the program's handler. */
#ifndef VV_TRACK_CHAIN_H
#define VV_TRACK_CHAIN_H

#include <signal.h>
#include <stdbool.h>

/* Sees to it that mine(sig, info, context) is called first at these signals, with all signals blocked, on the faulting
 * thread, which is not cancelled meanwhile; if it returns false the program's action is taken. Cheap when that is so already; somebody may have gone past
 * vv_chain_sigaction. Once installed the handlers stay: a fault may be on its way to them at any moment. */
int vv_chain_install(bool (*mine)(int sig, siginfo_t *info, void *context));

/* What sigaction(2) is to do while our handler is in force for sig: the action of the program is the one to pass on to.
 * *handled = false: it is not ours, call the real one. Safe in signal handlers. */
int vv_chain_sigaction(int sig, const struct sigaction *act, struct sigaction *old, bool *handled);

/* After this thread's mask was changed as by sigprocmask(how, set); *before is what the kernel says it was. In a handler of SIGSEGV or SIGBUS, which we
 * have called with the two open, it adds those that the program must take for blocked, and notes which of them it has opened itself. */
void vv_chain_masked(int how, const sigset_t *set, sigset_t *before);

void vv_chain_forked(void); /* in the child */

#endif
