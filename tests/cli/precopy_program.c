/* Programs that write, move, give back and share their memory while somebody copies it. Each checks itself at every step and writes "STEP ok" or
 * "STEP broken" into a file. All have QUIET bytes that never change, so that a copy of them is worth while.
 *   writers FILE      four threads write random pages as fast as they can
 *   flood FILE        all of them are written in turn, so that each is one step behind until its turn comes
 *   restless FILE     memory is moved, unmapped and mapped anew at the same place, given up, protected, grown
 *   forks FILE        two threads fork all the time; each child looks whether it has a descriptor that it should not have
 *   exec FILE         becomes the same program anew, again and again
 *   leave FILE MS     ends after so long
 *   wait FILE         threads wait in the kernel, in every way: none may see an error, or wake early
 *   calls FILE CALL   so do threads for very long, the first in the call that is named; each prints what its call returns
 *   handle FILE CALL  waits for a signal in a call that only a handler ends, and prints how many have come by the time it returns
 *   churn FILE        four threads do to memory of all kinds whatever can be done to it, in no order
 *   remap FILE        two threads grow, shrink and move memory of their own
 *   confined FILE     below seccomp
 *   aio FILE          with a ring of asynchronous reads
 *   tree FILE         a parent and a child that both have memory */
#include "image_state.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, WORDS = PAGE / 8, QUIET = 24 << 20, WRITERS = 4, PAGES = 512 };

static uint64_t *quiet;
static int zeros; /* that can be read */

static void *map(void *where, size_t bytes)
{
	void *p = mmap(where, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (where ? MAP_FIXED : 0), -1, 0);

	if (p == MAP_FAILED)
		exit(1);
	return p;
}

static void fill(uint64_t *p, size_t bytes, uint64_t seed)
{
	for (size_t i = 0; i < bytes / 8; i += 16) /* some words of every line are enough */
		p[i] = mix(seed << 32 | i);
}

static int is_filled(const uint64_t *p, size_t bytes, uint64_t seed)
{
	for (size_t i = 0; i < bytes / 8; i += 16)
		if (p[i] != mix(seed << 32 | i))
			return 0;
	return 1;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void run_thread(void *(*run)(void *), void *arg)
{
	pthread_t t;

	if (pthread_create(&t, NULL, run, arg) != 0)
		exit(1);
}

/* ---- writers ---- */

static struct writer {
	uint64_t *p;
	long rounds;
	int broken;
} writer[WRITERS];

/* Each page counts its writes, at both ends; together they are as many as there were. */
static void *write_on(void *arg)
{
	struct writer *w = arg;
	uint64_t total = 0, x = (uint64_t)(w - writer);

	for (;;) {
		uint64_t sum = 0;

		for (int i = 0; i < 4 * PAGES; i++, total++) {
			volatile uint64_t *page = w->p + (x = mix(x)) % PAGES * WORDS;

			page[0]++;
			page[WORDS - 1]++;
		}
		for (int i = 0; i < PAGES; i++) {
			sum += w->p[i * WORDS];
			if (w->p[i * WORDS] != w->p[i * WORDS + WORDS - 1])
				__atomic_store_n(&w->broken, 1, __ATOMIC_SEQ_CST);
		}
		if (sum != total)
			__atomic_store_n(&w->broken, 1, __ATOMIC_SEQ_CST);
		__atomic_add_fetch(&w->rounds, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void writers(void)
{
	for (int i = 0; i < WRITERS; i++) {
		writer[i].p = map(NULL, PAGES * PAGE);
		run_thread(write_on, &writer[i]);
	}
	for (;;) {
		long rounds = 0;
		int ok = 1;

		usleep(10000);
		for (int i = 0; i < WRITERS; i++) {
			rounds += __atomic_load_n(&writer[i].rounds, __ATOMIC_SEQ_CST);
			ok &= !__atomic_load_n(&writer[i].broken, __ATOMIC_SEQ_CST);
		}
		report(rounds, ok && is_filled(quiet, QUIET, 1));
	}
}

static void flood(void)
{
	memset(quiet, 0, QUIET);
	for (uint64_t step = 1;; step++) {
		int ok = 1;

		for (size_t i = 0; i < QUIET / PAGE; i++) {
			volatile uint64_t *page = quiet + i * WORDS;

			ok &= page[0] == step - 1 && page[WORDS - 1] == step - 1;
			page[0] = step;
			page[WORDS - 1] = step;
		}
		report((long)step, ok);
	}
}

/* ---- restless ---- */

enum { AREA = 1 << 20 };

static int move_it(uint64_t *home, uint64_t *away, uint64_t step)
{
	int ok;

	fill(home, AREA, step);
	if (mremap(home, AREA, AREA, MREMAP_MAYMOVE | MREMAP_FIXED, away) != away)
		return 0;
	map(home, AREA);
	ok = is_filled(away, AREA, step) && home[0] == 0 && home[AREA / 8 - 16] == 0;
	return ok && mremap(away, AREA, AREA, MREMAP_MAYMOVE | MREMAP_FIXED, home) == home && is_filled(home, AREA, step) && map(away, AREA) == away;
}

static int replace_it(uint64_t *p, uint64_t step)
{
	if (munmap(p, AREA) != 0)
		return 0;
	map(p, AREA);
	fill(p, AREA, step);
	return is_filled(p, AREA, step);
}

/* Half of it reads as zeros then, and is touched by reading alone. */
static int give_up_half(uint64_t *p, uint64_t step)
{
	uint64_t sum = 0;

	fill(p, AREA, step);
	if (madvise(p, AREA / 2, MADV_DONTNEED) != 0)
		return 0;
	for (size_t i = 0; i < AREA / 16; i += WORDS)
		sum |= p[i];
	p[16 * WORDS] = step;
	for (size_t i = AREA / 16; i < AREA / 8; i += 16)
		sum |= p[i] ^ mix(step << 32 | i);
	return sum == 0 && p[16 * WORDS] == step && p[17 * WORDS] == 0;
}

static int protect_it(uint64_t *p, uint64_t step)
{
	int ok = is_filled(p, AREA, step - 1) && mprotect(p, AREA / 2, PROT_READ) == 0 && is_filled(p, AREA, step - 1) &&
		 mprotect(p + AREA / 16, AREA / 2, PROT_NONE) == 0;

	usleep(200);
	ok = ok && mprotect(p, AREA, PROT_READ | PROT_WRITE) == 0 && is_filled(p, AREA, step - 1);
	fill(p, AREA, step);
	return ok;
}

/* Memory that is moved and comes to lie beside other memory becomes one with that; for the kernel (6.18) none of it is watched then, but pages keep their
 * marks. */
static int write_beside(uint64_t step)
{
	static uint64_t last[64];
	int ok = 1;

	for (size_t i = 0; i < 64; i++) {
		volatile uint64_t *word = quiet + i * 64 * WORDS + 1;

		ok &= *word == last[i];
		*word = last[i] = step + i;
	}
	return ok;
}

static void restless(void)
{
	uint64_t *home = map(NULL, AREA), *away = map(NULL, AREA), *same = map(NULL, AREA), *half = map(NULL, AREA), *shy = map(NULL, AREA);
	uint64_t *heap[64] = { 0 };

	fill(shy, AREA, 0);
	for (long step = 1;; step++) {
		uint64_t **block = &heap[step % 64];
		int ok = move_it(home, away, (uint64_t)step) && replace_it(same, (uint64_t)step) && give_up_half(half, (uint64_t)step) &&
			 protect_it(shy, (uint64_t)step) && write_beside((uint64_t)step);

		ok = ok && (!*block || is_filled(*block, 8192, (uint64_t)(step - 64)));
		free(*block);
		*block = malloc(8192); /* from brk, whose top moves */
		fill(*block, 8192, (uint64_t)step);
		report(step, ok && (step % 16 || is_filled(quiet, QUIET, 1)));
	}
}

/* ---- forks ---- */

static long n_rounds[2];
static int stray;

/* What it has open, by its numbers: no library is safe to use in the child of a thread. */
static int has_stray(void)
{
	char link[128];
	int found = 0;

	for (int fd = 0; fd < 64 && !found; fd++) {
		char path[32] = "/proc/self/fd/";
		ssize_t n;

		path[14] = (char)('0' + fd / 10);
		path[15] = (char)('0' + fd % 10);
		if (fd < 10) {
			path[14] = path[15];
			path[15] = '\0';
		}
		n = readlink(path, link, sizeof(link) - 1);
		link[n < 0 ? 0 : n] = '\0';
		found = strstr(link, "userfaultfd") != NULL;
	}
	return found;
}

static void *fork_on(void *arg)
{
	for (;;) {
		int status = -1;
		pid_t child = fork();

		if (child == 0)
			_exit(has_stray() || quiet[0] != mix((uint64_t)1 << 32));
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
		if (status != 0)
			__atomic_store_n(&stray, 1, __ATOMIC_SEQ_CST);
		__atomic_add_fetch((long *)arg, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void forks(void)
{
	run_thread(fork_on, &n_rounds[0]);
	run_thread(fork_on, &n_rounds[1]);
	for (;;) {
		usleep(5000);
		quiet[PAGE]++; /* copied on write */
		report(__atomic_load_n(&n_rounds[0], __ATOMIC_SEQ_CST) + __atomic_load_n(&n_rounds[1], __ATOMIC_SEQ_CST),
		       !__atomic_load_n(&stray, __ATOMIC_SEQ_CST) && !has_stray());
	}
}

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

/* The signal is blocked but in the call. */
static void handle(const char *name)
{
	struct sigaction act = { .sa_handler = count_signal };
	int epoll = epoll_create1(EPOLL_CLOEXEC), n = 0;
	struct epoll_event e;
	sigset_t blocked, none;

	sigemptyset(&none);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	sigaction(SIGUSR1, &act, NULL);
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

/* ---- remap ---- */

enum { CHANGING_MOST = 256 };

/* Every page of it has its number in it, and how often it was moved is as good as any other number. */
static void *change_on(void *arg)
{
	uint64_t x = (uint64_t)(uintptr_t)arg, *p = map(NULL, PAGE);
	size_t n = 1;

	for (long step = 1;; step++) {
		size_t want = 1 + (x = mix(x)) % CHANGING_MOST;
		uint64_t *q = mremap(p, n * PAGE, want * PAGE, MREMAP_MAYMOVE);

		demand(q != MAP_FAILED, strerror(errno));
		if (q == MAP_FAILED)
			return NULL;
		for (size_t i = n; i < want; i++) {
			demand(q[i * WORDS] == 0, "new memory is not empty");
			q[i * WORDS] = i + 1;
		}
		n = want;
		p = q;
		for (size_t i = 1; i < n; i++)
			demand(q[i * WORDS] == i + 1, "moved memory is not what it was");
		__atomic_add_fetch((long *)arg, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void remap(void)
{
	run_thread(change_on, &n_rounds[0]);
	run_thread(change_on, &n_rounds[1]);
	for (;;) {
		usleep(2000);
		if (is_broken) {
			printf("%s\n", broken_by);
			fflush(stdout);
		}
		report(__atomic_load_n(&n_rounds[0], __ATOMIC_SEQ_CST) + __atomic_load_n(&n_rounds[1], __ATOMIC_SEQ_CST), !is_broken);
	}
}

/* ---- churn ---- */

enum { CHURNERS = 4, SLOTS = 6, CHURN_PAGES = 64, LARGE_PAGES = 1024 };

struct slot { /* page i bears mix(seed + i) at both ends, or nothing from `empty` on */
	uint64_t *p, seed;
	size_t n, empty;
	int kind;
};

static struct churner {
	struct slot slot[SLOTS];
	long rounds;
} churner[CHURNERS];

static void stamp(struct slot *s, size_t from)
{
	for (size_t i = from; i < s->n; i++)
		s->p[i * WORDS] = s->p[i * WORDS + WORDS - 1] = mix(s->seed + i);
	s->empty = s->n;
}

static int is_stamped(const struct slot *s)
{
	int ok = 1;

	for (size_t i = 0; i < s->n; i++) {
		uint64_t want = i < s->empty ? mix(s->seed + i) : 0;

		ok &= s->p[i * WORDS] == want && s->p[i * WORDS + WORDS - 1] == want;
	}
	return ok;
}

enum { PRIVATE, SHARED, LOCKED, LARGE, IN_FILE, KINDS };

static int begin_slot(struct slot *s, uint64_t x)
{
	int fd = -1, shared;

	*s = (struct slot){ .seed = x, .kind = (int)(x >> 8) % KINDS, .n = 1 + (x >> 16) % CHURN_PAGES };
	s->n = s->kind == LARGE ? LARGE_PAGES : s->n;
	shared = s->kind == SHARED || s->kind == IN_FILE;
	if (s->kind == IN_FILE) {
		fd = memfd_create("churn", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, (off_t)(s->n * PAGE)) != 0)
			return 0;
	}
	s->p = mmap(NULL, s->n * PAGE, PROT_READ | PROT_WRITE, (shared ? MAP_SHARED : MAP_PRIVATE) | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
	if (fd >= 0)
		close(fd);
	if (s->p == MAP_FAILED)
		return 0;
	if (s->kind == LOCKED)
		mlock(s->p, s->n * PAGE);
	if (s->kind == LARGE)
		madvise(s->p, s->n * PAGE, MADV_HUGEPAGE);
	stamp(s, 0);
	return 1;
}

static int resize(struct slot *s, uint64_t x)
{
	size_t want = 1 + x % CHURN_PAGES, had = s->n;
	void *q = mremap(s->p, s->n * PAGE, want * PAGE, MREMAP_MAYMOVE);

	if (q == MAP_FAILED)
		return 0;
	s->p = q;
	s->n = want;
	if (want > had && s->empty == had)
		stamp(s, had);
	s->empty = s->empty < want ? s->empty : want;
	return 1;
}

static int change(struct slot *s, uint64_t x)
{
	size_t half = s->n / 2;

	switch (x % 6) {
	case 0:
		return munmap(s->p, s->n * PAGE) == 0 && begin_slot(s, mix(x));
	case 1:
		return s->kind == PRIVATE || s->kind == LARGE ? resize(s, x >> 8) : 1;
	case 2: /* reads as zeros afterwards */
		if (s->kind != PRIVATE && s->kind != LARGE)
			return 1;
		s->empty = s->empty < half ? s->empty : half;
		return madvise(s->p + half * WORDS, (s->n - half) * PAGE, MADV_DONTNEED) == 0;
	case 3:
		return mprotect(s->p, half * PAGE, PROT_NONE) == 0 && mprotect(s->p, s->n * PAGE, PROT_READ) == 0 && is_stamped(s) &&
		       mprotect(s->p, s->n * PAGE, PROT_READ | PROT_WRITE) == 0;
	case 4:
		s->seed = x;
		stamp(s, 0);
		return 1;
	default:
		s->seed = x;
		for (size_t i = 0; i < s->empty; i++) /* as a read from a file would */
			for (int end = 0; end < 2; end++)
				if (pread(zeros, &s->p[i * WORDS + (size_t)end * (WORDS - 1)], 8, 0) != 8)
					return 0;
		stamp(s, 0);
		return 1;
	}
}

static void *churn_on(void *arg)
{
	struct churner *c = arg;
	uint64_t x = (uint64_t)(c - churner);

	for (int i = 0; i < SLOTS; i++)
		demand(begin_slot(&c->slot[i], x = mix(x)), "mmap");
	for (;; __atomic_add_fetch(&c->rounds, 1, __ATOMIC_SEQ_CST)) {
		struct slot *s = &c->slot[(x = mix(x)) % SLOTS];

		demand(is_stamped(s), "what it was before");
		demand(change(s, x = mix(x)), "what it was to become");
		demand(is_stamped(s), "what it has become");
	}
	return NULL;
}

static void churn(void)
{
	zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	for (int i = 0; i < CHURNERS; i++)
		run_thread(churn_on, &churner[i]);
	for (;;) {
		long rounds = 0;

		usleep(5000);
		for (int i = 0; i < CHURNERS; i++)
			rounds += __atomic_load_n(&churner[i].rounds, __ATOMIC_SEQ_CST);
		if (is_broken) {
			printf("%s: %s\n", broken_by, strerror(errno));
			fflush(stdout);
		}
		report(rounds, !is_broken && is_filled(quiet, QUIET, 1));
	}
}

/* ---- those that are left alone ---- */

static void confine(void)
{
	struct sock_filter all = { BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW };
	struct sock_fprog f = { 1, &all };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &f) != 0)
		exit(1);
}

static void make_ring(void)
{
	aio_context_t ring = 0;

	if (syscall(SYS_io_setup, 8, &ring) != 0)
		exit(1);
}

static void go_on(long ms)
{
	uint64_t end = now_ns() + (uint64_t)ms * 1000000;

	for (long step = 1; !ms || now_ns() < end; step++) {
		quiet[(uint64_t)step % (QUIET / PAGE) * WORDS + 1] = (uint64_t)step;
		report(step, step % 16 || is_filled(quiet, QUIET, 1));
		usleep(2000);
	}
	_exit(0);
}

static void become_anew(char **argv)
{
	static char number[32];
	long step = argv[3] ? atol(argv[3]) : 1;

	for (int i = 0; i < 4; i++) {
		report(step, is_filled(quiet, QUIET, 1));
		usleep(5000);
	}
	snprintf(number, sizeof(number), "%ld", step + 1);
	execv("/proc/self/exe", (char *[]){ argv[0], argv[1], argv[2], number, NULL });
	exit(1);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[1] : "";

	if (argc < 3)
		return 2;
	file = argv[2];
	quiet = map(NULL, QUIET);
	fill(quiet, QUIET, 1);
	if (strcmp(mode, "writers") == 0)
		writers();
	if (strcmp(mode, "flood") == 0)
		flood();
	if (strcmp(mode, "restless") == 0)
		restless();
	if (strcmp(mode, "forks") == 0)
		forks();
	if (strcmp(mode, "exec") == 0)
		become_anew(argv);
	if (strcmp(mode, "wait") == 0)
		wait_in_kernel();
	if (strcmp(mode, "calls") == 0 && argc > 3)
		make_calls(argv[3]);
	if (strcmp(mode, "handle") == 0 && argc > 3) {
		report(1, 1);
		handle(argv[3]);
	}
	if (strcmp(mode, "churn") == 0)
		churn();
	if (strcmp(mode, "remap") == 0)
		remap();
	if (strcmp(mode, "confined") == 0)
		confine();
	if (strcmp(mode, "aio") == 0)
		make_ring();
	if (strcmp(mode, "tree") == 0 && fork() == 0) {
		static char other[4096];

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		snprintf(other, sizeof(other), "%s.child", file);
		file = other;
		fill(quiet, QUIET, 1);
	}
	go_on(argc > 3 ? atol(argv[3]) : 0);
	return 2;
}
