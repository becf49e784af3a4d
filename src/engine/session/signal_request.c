#include "engine/session/signal_request.h"
#include "base/err.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

struct listener {
	unsigned users;
	/* A later handler of the program may still call ours, so `before` must stay. */
	bool buried;
	struct sigaction before; /* written only while no signal can reach our handler */
	atomic_bool spent;       /* a one-shot handler (SA_RESETHAND) has been called */
};

static struct listener listeners[NSIG];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t count;

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "a signal handler may not wait for a lock");

static bool is_function(const struct sigaction *act)
{
	return act->sa_handler != SIG_DFL && act->sa_handler != SIG_IGN;
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	struct listener *l = &listeners[sig];

	atomic_fetch_add(&count, 1);
	if (!is_function(&l->before))
		return;
	if ((l->before.sa_flags & (int)SA_RESETHAND) && atomic_exchange(&l->spent, true))
		return;
	if (l->before.sa_flags & SA_SIGINFO)
		l->before.sa_sigaction(sig, info, context);
	else
		l->before.sa_handler(sig);
}

static bool is_ours(const struct sigaction *act)
{
	return (act->sa_flags & SA_SIGINFO) && act->sa_sigaction == on_signal;
}

/* Installs our handler over `now`. System calls of the program must be interrupted or restarted as
 * before. So a handler of the program keeps its flags. */
static int install(int sig, struct listener *l, const struct sigaction *now)
{
	struct sigaction act = { .sa_flags = SA_RESTART | SA_ONSTACK };

	if (is_function(now))
		act = *now;
	act.sa_flags = (act.sa_flags & ~(int)SA_RESETHAND) | SA_SIGINFO;
	act.sa_sigaction = on_signal;
	l->before = *now;
	atomic_store(&l->spent, false);
	l->buried = false;
	return sigaction(sig, &act, NULL);
}

int vv_signal_request_signal(const char *word)
{
	return strcmp(word, "USR1") == 0 ? SIGUSR1 : strcmp(word, "USR2") == 0 ? SIGUSR2 : 0;
}

int vv_signal_request_listen(int sig)
{
	struct listener *l = &listeners[sig];
	struct sigaction now;
	int rc = 0;

	if (sig == 0)
		return 0;
	pthread_mutex_lock(&lock);
	if (l->users == 0) {
		rc = sigaction(sig, NULL, &now);
		if (rc == 0 && !is_ours(&now) && !(l->buried && is_function(&now)))
			rc = install(sig, l, &now);
	}
	if (rc == 0)
		l->users++;
	else
		rc = vv_err_sys(errno, "cannot listen for signal %d", sig);
	pthread_mutex_unlock(&lock);
	return rc;
}

void vv_signal_request_unlisten(int sig)
{
	struct listener *l = &listeners[sig];
	struct sigaction now, before;

	if (sig == 0)
		return;
	pthread_mutex_lock(&lock);
	if (l->users && --l->users == 0 && sigaction(sig, NULL, &now) == 0) {
		before = l->before;
		if (atomic_load(&l->spent))
			before.sa_handler = SIG_DFL;
		if (is_ours(&now))
			sigaction(sig, &before, NULL);
		else
			l->buried = true;
	}
	pthread_mutex_unlock(&lock);
}

uint64_t vv_signal_request_count(void)
{
	return atomic_load(&count);
}
