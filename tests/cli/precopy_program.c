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
#include "precopy_calls.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

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
	int kind, parted; /* it was of two kinds once: criu brings it back as two areas if it is so when it is frozen, and mremap is for what is one */
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
		return !s->parted && (s->kind == PRIVATE || s->kind == LARGE) ? resize(s, x >> 8) : 1;
	case 2: /* reads as zeros afterwards */
		if (s->kind != PRIVATE && s->kind != LARGE)
			return 1;
		s->empty = s->empty < half ? s->empty : half;
		return madvise(s->p + half * WORDS, (s->n - half) * PAGE, MADV_DONTNEED) == 0;
	case 3:
		s->parted = 1;
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
		expect_signals();
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
