/* Requests by signal: counted, passed on to the handlers that the program has, and everything put back at the end. */
#include "engine/session/signal_request.h"
#include "base/err.h"
#include "vv_test.h"
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t calls, info_calls, value_seen;
static void (*older)(int, siginfo_t *, void *); /* what chaining handlers call */

static void plain(int sig)
{
	CHECK(sig == SIGUSR1 || sig == SIGUSR2);
	calls++;
}

static void with_info(int sig, siginfo_t *info, void *context)
{
	CHECK(info->si_signo == sig && context);
	value_seen = info->si_value.sival_int;
	info_calls++;
}

static void chaining(int sig, siginfo_t *info, void *context)
{
	calls++;
	older(sig, info, context);
}

static struct sigaction set(int sig, void (*fn)(int), void (*info_fn)(int, siginfo_t *, void *), int flags)
{
	struct sigaction act = { .sa_flags = flags | (info_fn ? SA_SIGINFO : 0) }, old;

	if (info_fn)
		act.sa_sigaction = info_fn;
	else
		act.sa_handler = fn;
	CHECK_EQ(sigaction(sig, &act, &old), 0);
	return old;
}

static struct sigaction installed(int sig)
{
	struct sigaction act;

	CHECK_EQ(sigaction(sig, NULL, &act), 0);
	return act;
}

static void test_words(void)
{
	CHECK_EQ(vv_signal_request_signal("USR1"), SIGUSR1);
	CHECK_EQ(vv_signal_request_signal("USR2"), SIGUSR2);
	CHECK_EQ(vv_signal_request_signal("none"), 0);
	CHECK_EQ(vv_signal_request_listen(0), 0);
	vv_signal_request_unlisten(0);
	CHECK_EQ(vv_signal_request_listen(SIGKILL), VV_EINVAL);
	CHECK(strstr(vv_err_last(), "signal 9"));
	vv_signal_request_unlisten(SIGKILL);
}

/* Nothing was there: the signal no longer kills, and does again at the end. */
static void test_default(void (*first)(int))
{
	uint64_t before = vv_signal_request_count();

	set(SIGUSR1, first, NULL, 0);
	CHECK_EQ(vv_signal_request_listen(SIGUSR1), 0);
	CHECK(installed(SIGUSR1).sa_flags & SA_RESTART);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(raise(SIGUSR1), 0);
	CHECK_EQ(vv_signal_request_count(), before + 5);
	vv_signal_request_unlisten(SIGUSR1);
	CHECK(installed(SIGUSR1).sa_handler == first);
	vv_signal_request_unlisten(SIGUSR1); /* one too many harms nobody */
	CHECK(installed(SIGUSR1).sa_handler == first);
}

static void test_many_users(void)
{
	uint64_t before = vv_signal_request_count();

	set(SIGUSR1, SIG_DFL, NULL, 0);
	set(SIGUSR2, plain, NULL, 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(vv_signal_request_listen(SIGUSR1), 0);
	CHECK_EQ(vv_signal_request_listen(SIGUSR2), 0);
	vv_signal_request_unlisten(SIGUSR1);
	vv_signal_request_unlisten(SIGUSR2);
	CHECK(installed(SIGUSR2).sa_handler == plain);
	vv_signal_request_unlisten(SIGUSR1);
	raise(SIGUSR1);
	CHECK_EQ(vv_signal_request_count(), before + 1);
	vv_signal_request_unlisten(SIGUSR1);
	CHECK(installed(SIGUSR1).sa_handler == SIG_DFL);
}

/* The program's own handlers are called as before: with their arguments, mask and flags. */
static void test_passed_on(void)
{
	union sigval v = { .sival_int = 77 };
	uint64_t before = vv_signal_request_count();
	struct sigaction act = { .sa_handler = plain, .sa_flags = SA_NODEFER };

	sigaddset(&act.sa_mask, SIGHUP);
	CHECK_EQ(sigaction(SIGUSR1, &act, NULL), 0);
	calls = info_calls = 0;
	CHECK_EQ(vv_signal_request_listen(SIGUSR1), 0);
	CHECK(!(installed(SIGUSR1).sa_flags & SA_RESTART) && (installed(SIGUSR1).sa_flags & SA_NODEFER));
	act = installed(SIGUSR1);
	CHECK(sigismember(&act.sa_mask, SIGHUP) == 1);
	raise(SIGUSR1);
	CHECK_EQ(calls, 1);
	vv_signal_request_unlisten(SIGUSR1);
	act = installed(SIGUSR1);
	CHECK(act.sa_handler == plain && !(act.sa_flags & SA_SIGINFO) && sigismember(&act.sa_mask, SIGHUP) == 1);
	set(SIGUSR1, NULL, with_info, SA_RESTART);
	CHECK_EQ(vv_signal_request_listen(SIGUSR1), 0);
	CHECK_EQ(sigqueue(getpid(), SIGUSR1, v), 0);
	for (int i = 0; i < 5000 && !info_calls; i++) /* sanitizers deliver late */
		usleep(1000);
	CHECK_EQ(info_calls, 1);
	CHECK_EQ(value_seen, 77);
	vv_signal_request_unlisten(SIGUSR1);
	CHECK(installed(SIGUSR1).sa_sigaction == with_info);
	CHECK_EQ(vv_signal_request_count(), before + 2);
}

/* A handler for one signal only is called once; ours goes on, and does not let the second one kill. */
static void test_one_shot(void)
{
	uint64_t before = vv_signal_request_count();

	calls = 0;
	set(SIGUSR1, plain, NULL, (int)SA_RESETHAND);
	CHECK_EQ(vv_signal_request_listen(SIGUSR1), 0);
	raise(SIGUSR1);
	raise(SIGUSR1);
	CHECK_EQ(calls, 1);
	CHECK_EQ(vv_signal_request_count(), before + 2);
	vv_signal_request_unlisten(SIGUSR1);
	CHECK(installed(SIGUSR1).sa_handler == SIG_DFL);
}

/* What the program installs later stays, whether it calls ours or not; listening again does not close a circle. */
static void test_later_handlers(void)
{
	uint64_t before = vv_signal_request_count();

	calls = info_calls = 0;
	set(SIGUSR1, NULL, with_info, 0);
	CHECK_EQ(vv_signal_request_listen(SIGUSR1), 0);
	older = set(SIGUSR1, NULL, chaining, 0).sa_sigaction;
	raise(SIGUSR1);
	CHECK(calls == 1 && info_calls == 1);
	CHECK_EQ(vv_signal_request_count(), before + 1);
	vv_signal_request_unlisten(SIGUSR1);
	CHECK(installed(SIGUSR1).sa_sigaction == chaining);
	CHECK_EQ(vv_signal_request_listen(SIGUSR1), 0);
	CHECK(installed(SIGUSR1).sa_sigaction == chaining);
	raise(SIGUSR1);
	CHECK(calls == 2 && info_calls == 2);
	CHECK_EQ(vv_signal_request_count(), before + 2);
	vv_signal_request_unlisten(SIGUSR1);
	set(SIGUSR1, SIG_DFL, NULL, 0); /* nobody is there who could call ours: it goes in again */
	CHECK_EQ(vv_signal_request_listen(SIGUSR1), 0);
	raise(SIGUSR1);
	CHECK_EQ(vv_signal_request_count(), before + 3);
	set(SIGUSR1, plain, NULL, 0); /* and one that does not call it */
	raise(SIGUSR1);
	CHECK_EQ(calls, 3);
	CHECK_EQ(vv_signal_request_count(), before + 3);
	vv_signal_request_unlisten(SIGUSR1);
	CHECK(installed(SIGUSR1).sa_handler == plain);
	set(SIGUSR1, SIG_DFL, NULL, 0);
}

/* A read that waits goes on waiting. */
static void test_restart(void)
{
	int fd[2], status;
	char c = 0;
	pid_t pid;

	CHECK_EQ(pipe(fd), 0);
	CHECK_EQ(vv_signal_request_listen(SIGUSR1), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		for (int i = 0; i < 20; i++) {
			kill(getppid(), SIGUSR1);
			usleep(1000);
		}
		_exit(write(fd[1], "x", 1) == 1 ? 0 : 1);
	}
	CHECK_EQ(read(fd[0], &c, 1), 1);
	CHECK_EQ(c, 'x');
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	vv_signal_request_unlisten(SIGUSR1);
	close(fd[0]);
	close(fd[1]);
}

static void test_fork(void)
{
	uint64_t before = vv_signal_request_count();
	int status;
	pid_t pid;

	CHECK_EQ(vv_signal_request_listen(SIGUSR1), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		raise(SIGUSR1);
		vv_signal_request_unlisten(SIGUSR1);
		_exit(vv_signal_request_count() == before + 1 && installed(SIGUSR1).sa_handler == SIG_DFL ? 0 : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK_EQ(vv_signal_request_count(), before);
	raise(SIGUSR1);
	CHECK_EQ(vv_signal_request_count(), before + 1);
	vv_signal_request_unlisten(SIGUSR1);
}

enum { THREADS = 4, ROUNDS = 2000 };

static void *listen_and_raise(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(vv_signal_request_listen(SIGUSR2), 0);
		pthread_kill(pthread_self(), SIGUSR2);
		vv_signal_request_unlisten(SIGUSR2);
	}
	return arg;
}

/* Sessions come and go on many threads: no signal is lost, none kills. */
static void test_threads(void)
{
	uint64_t before = vv_signal_request_count();
	pthread_t t[THREADS];

	set(SIGUSR2, SIG_DFL, NULL, 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, listen_and_raise, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(vv_signal_request_count(), before + THREADS * ROUNDS);
	CHECK(installed(SIGUSR2).sa_handler == SIG_DFL);
}

int main(void)
{
	test_words();
	test_default(SIG_IGN);
	test_default(SIG_DFL);
	test_many_users();
	test_passed_on();
	test_one_shot();
	test_later_handlers();
	test_restart();
	test_fork();
	test_threads();
	return 0;
}
