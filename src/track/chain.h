/* Runs a function of ours before the program's handlers for SIGSEGV and SIGBUS. */
#ifndef VV_TRACK_CHAIN_H
#define VV_TRACK_CHAIN_H

#include <signal.h>
#include <stdbool.h>

/* Ensures that mine(sig, info, context) is called first for these signals. It runs on the faulting
 * thread with all signals blocked, and the thread is not cancelled meanwhile. If it returns false,
 * the program's action is taken. The call is cheap if the handlers are still installed. Code may
 * have bypassed vv_chain_sigaction. Once installed, the handlers stay, since a fault may be on its
 * way to them at any moment. */
int vv_chain_install(bool (*mine)(int sig, siginfo_t *info, void *context));

/* Replaces sigaction(2) while our handler is installed for sig. Sets and returns the program's
 * action, to which our handler passes signals on. If ours is not installed, *handled = false, and
 * the caller must call the real function. Safe in signal handlers. */
int vv_chain_sigaction(int sig, const struct sigaction *act, struct sigaction *old, bool *handled);

/* Call it after this thread's mask was changed by sigprocmask(how, set). *before: the previous mask
 * according to the kernel. We call the program's handlers for SIGSEGV and SIGBUS with both
 * unblocked. In such a handler, the function adds the signals that the program must see as blocked.
 * It also notes signals that the program has unblocked. */
void vv_chain_masked(int how, const sigset_t *set, sigset_t *before);

void vv_chain_forked(void); /* in the child */

/* Gives the C library's sigaction. Without this call it is the next one after this library, which
 * may be an interposed one. */
void vv_chain_set_real(int (*fn)(int sig, const struct sigaction *act, struct sigaction *old));

#endif
