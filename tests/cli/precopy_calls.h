/* Threads that wait in the kernel while somebody copies their memory, in every way in which that can be done. */
#ifndef VV_TEST_PRECOPY_CALLS_H
#define VV_TEST_PRECOPY_CALLS_H

#include "precopy_state.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* ---- wait ---- */

static volatile int is_broken;
static const char *broken_by = "";

static void demand(int ok, const char *what)
{
	if (!ok && !is_broken) {
		broken_by = what;
		is_broken = 1;
	}
}

static void *in_read(void *arg)
{
	int ends[2];
	char c;

	demand(pipe(ends) == 0, "pipe");
	demand(read(ends[0], &c, 1) == 1, "read");
	demand(0, "read came back");
	return arg;
}

static void *in_sleep(void *arg)
{
	for (;;) {
		struct timespec t = { 0, 700000000 };
		uint64_t start = now_ns();

		demand(nanosleep(&t, NULL) == 0, "nanosleep");
		demand(now_ns() - start >= 700000000, "nanosleep was short");
	}
	return arg;
}

static void *in_futex(void *arg)
{
	static int word;

	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, arg, NULL, 0);
	demand(0, "futex came back");
	return NULL;
}

static void *in_timed_futex(void *arg)
{
	static int word;

	for (;;) {
		struct timespec t = { 0, 600000000 };
		uint64_t start = now_ns();

		demand(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0) < 0 && errno == ETIMEDOUT, "timed futex");
		demand(now_ns() - start >= 600000000, "timed futex was short");
	}
	return arg;
}

static void *in_poll(void *arg)
{
	for (;;) {
		uint64_t start = now_ns();

		demand(poll(NULL, 0, 500) == 0, "poll");
		demand(now_ns() - start >= 500000000, "poll was short");
	}
	return arg;
}

/* With a mask of its own, which must be back as soon as it returns. */
static void *in_ppoll(void *arg)
{
	sigset_t mask, before, after;

	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR2);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	sigdelset(&mask, SIGUSR2);
	for (;;) {
		struct timespec t = { 0, 300000000 };

		demand(ppoll(NULL, 0, &t, &mask) == 0, "ppoll");
		pthread_sigmask(SIG_SETMASK, NULL, &after);
		demand(memcmp(&before, &after, sizeof(before)) == 0, "its mask");
	}
	return arg;
}

/* In no system call at all: floating point and all other registers count. */
static void *in_numbers(void *arg)
{
	for (;;) {
		volatile double start = 1.5;
		double a = start, b = 0.25, c = 3, d = 7;
		uint64_t x = 1, y = 2, z = 3;

		for (int i = 0; i < 1000000; i++) {
			a = a * 0.5 + b;
			b = b * 0.5 + c * 0.125;
			c = c * 0.5 + d * 0.25;
			d = d * 0.25 + start;
			x = mix(x);
			y ^= x + z;
			z = z * 3 + y;
		}
		static double first[4];
		static uint64_t words[3];

		if (words[0] == 0) {
			memcpy(first, (double[]){ a, b, c, d }, sizeof(first));
			memcpy(words, (uint64_t[]){ x, y, z }, sizeof(words));
		}
		demand(first[0] == a && first[1] == b && first[2] == c && first[3] == d && words[0] == x && words[1] == y && words[2] == z, "its registers");
	}
	return arg;
}

static void wait_in_kernel(void)
{
	run_thread(in_read, NULL);
	run_thread(in_futex, NULL);
	run_thread(in_timed_futex, NULL);
	run_thread(in_poll, NULL);
	run_thread(in_ppoll, NULL);
	run_thread(in_numbers, NULL);
	run_thread(in_sleep, NULL);
	for (long step = 1;; step++) {
		struct timespec t = { 0, 20000000 };
		uint64_t start = now_ns();

		demand(clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL) == 0, "clock_nanosleep");
		demand(now_ns() - start >= 20000000, "clock_nanosleep was short");
		if (is_broken) {
			printf("%s\n", broken_by);
			fflush(stdout);
		}
		report(step, !is_broken);
	}
}

/* ---- calls ---- */

enum { LONG_S = 200 };

static struct timespec after_long(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_sec += LONG_S;
	return t;
}

static int call_nanosleep(void)
{
	return nanosleep(&(struct timespec){ LONG_S, 0 }, NULL);
}

static int call_relative(void)
{
	struct timespec t = { LONG_S, 0 }, left;

	return clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &left) ? -1 : 0;
}

static int call_absolute(void)
{
	struct timespec t = after_long(CLOCK_MONOTONIC);

	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) ? -1 : 0;
}

static int call_sleep(void)
{
	return sleep(LONG_S) ? -1 : 0;
}

static int call_poll(void)
{
	return poll(NULL, 0, LONG_S * 1000);
}

static int call_select(void)
{
	return select(0, NULL, NULL, NULL, &(struct timeval){ LONG_S, 0 });
}

static int call_semaphore(void)
{
	struct timespec t = after_long(CLOCK_REALTIME);
	sem_t s;

	sem_init(&s, 0, 0);
	return sem_timedwait(&s, &t);
}

static int call_futex(void)
{
	int word = 0;

	return (int)syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &(struct timespec){ LONG_S, 0 }, NULL, 0);
}

static int call_suspend(void)
{
	sigset_t none;

	sigemptyset(&none);
	return sigsuspend(&none);
}

/* These return EINTR after any stop. */
static int call_epoll(void)
{
	struct epoll_event e;

	return epoll_wait(epoll_create1(EPOLL_CLOEXEC), &e, 1, LONG_S * 1000);
}

static int call_sigwait(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return sigtimedwait(&set, NULL, &(struct timespec){ LONG_S, 0 });
}

static const struct call {
	const char *name;
	int (*make)(void);
} calls[] = {
	{ "nanosleep", call_nanosleep }, { "relative", call_relative }, { "absolute", call_absolute }, { "sleep", call_sleep },
	{ "poll", call_poll }, { "select", call_select }, { "semaphore", call_semaphore }, { "futex", call_futex },
	{ "suspend", call_suspend }, { "epoll", call_epoll }, { "sigwait", call_sigwait },
};

static void *call_on(void *arg)
{
	const struct call *c = arg;

	for (;;) {
		int rc = c->make();

		printf("%s %s %d\n", gettid() == getpid() ? "first" : "other", c->name, rc);
		fflush(stdout);
	}
	return NULL;
}

static void *tell_on(void *arg)
{
	for (long step = 1;; step++, usleep(10000))
		report(step, is_filled(quiet, QUIET, 1));
	return arg;
}

static void make_calls(const char *first)
{
	const struct call *mine = NULL;

	run_thread(tell_on, NULL);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		mine = strcmp(calls[i].name, first) == 0 ? &calls[i] : mine;
		run_thread(call_on, (void *)&calls[i]);
	}
	if (mine)
		call_on((void *)mine);
}

/* ---- handle ---- */

static volatile sig_atomic_t n_handled;

static void count_signal(int number)
{
	n_handled += number == SIGUSR1;
}

/* The signal is blocked but in the call. Before anybody is told that it may be sent. */
static void expect_signals(void)
{
	struct sigaction act = { .sa_handler = count_signal };
	sigset_t blocked;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	sigaction(SIGUSR1, &act, NULL);
}

static void handle(const char *name)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), n = 0;
	struct epoll_event e;
	sigset_t none;

	sigemptyset(&none);
	for (;;) {
		int rc = strcmp(name, "epoll") == 0 ? epoll_pwait(epoll, &e, 1, -1, &none) :
			 strcmp(name, "poll") == 0 ? ppoll(NULL, 0, NULL, &none) : sigsuspend(&none);

		if (rc != -1 || errno != EINTR || (n_handled == n && strcmp(name, "epoll") != 0))
			printf("it returns %d, %s\n", rc, strerror(errno));
		if (n_handled != n)
			printf("%d\n", n = n_handled);
		fflush(stdout);
	}
}

#endif
