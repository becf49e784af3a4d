/* Programs that write, move, give back and share their memory while somebody copies it. Each checks itself at every step and writes "STEP ok" or
 * "STEP broken" into a file. All have QUIET bytes that never change, so that a copy of them is worth while.
 *   writers FILE      four threads write random pages as fast as they can
 *   flood FILE        all of them are written in turn, so that each is one step behind until its turn comes
 *   restless FILE     memory is moved, unmapped and mapped anew at the same place, given up, protected, grown
 *   forks FILE        two threads fork all the time; each child looks whether it has a descriptor that it should not have
 *   exec FILE         becomes the same program anew, again and again
 *   leave FILE MS     ends after so long
 *   wait FILE         threads wait in the kernel, in every way: none may see an error, or wake early
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
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, WORDS = PAGE / 8, QUIET = 24 << 20, WRITERS = 4, PAGES = 512 };

static uint64_t *quiet;

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

static long n_forked[2];
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
	run_thread(fork_on, &n_forked[0]);
	run_thread(fork_on, &n_forked[1]);
	for (;;) {
		usleep(5000);
		quiet[PAGE]++; /* copied on write */
		report(__atomic_load_n(&n_forked[0], __ATOMIC_SEQ_CST) + __atomic_load_n(&n_forked[1], __ATOMIC_SEQ_CST),
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
