// ctest: TIMEOUT 300 COST 3
/* A handler of the program's that writes regions comes at any moment, in the midst of our calls, too: it must never wait for the thread that it has
 * interrupted. Signals that nobody handles end a process as ever, and none is lost. */
#include "base/block_signals.h"
#include "support/gen.h"
#include "support/must.h"
#include "support/place.h"
#include <sys/mman.h>
#include <sys/wait.h>

enum { PAGE = 4096, PAGES = 512, LEN = PAGES * PAGE, EPOCHS = 30, ASKED = 50, SOON_NS = 60000, FORKING = 8, WRITES = 4, EVERY_NS = 150000 };

static uint8_t *memory;
static uint64_t seed = 5;
static volatile sig_atomic_t came;
static timer_t timer;

static void on_tick(int sig)
{
	(void)sig;
	for (int i = 0; i < WRITES; i++)
		((volatile uint8_t *)memory)[gen_below(&seed, LEN)]++;
	came = 1;
}

static void tick(long ns)
{
	struct itimerspec every = { { 0, ns }, { 0, ns } };

	MUST(timer_settime(timer, 0, &every, NULL) == 0);
}

static void check_last(varve *v)
{
	uint8_t *copy = malloc(LEN);

	MUST(copy && varve_checkpoint(v) == 0 && varve_wait(v, varve_epoch(v)) == 0);
	MUST(varve_restart_region(v, VARVE_LATEST, "p", copy, LEN) == 0);
	MUST(memcmp(copy, memory, LEN) == 0);
	free(copy);
}

/* NULL: there is no such tracker here. */
static varve *begin(char *store, const char *options)
{
	varve *v = NULL;
	int rc;

	place_path(store, "store");
	memory = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(memory != MAP_FAILED);
	rc = varve_open(store, "run", options, &v);
	if (rc == VARVE_ENOTSUP) {
		munmap(memory, LEN);
		return NULL;
	}
	MUST(rc == 0 && varve_protect(v, "p", memory, LEN) == 0);
	return v;
}

static void interrupted(const char *options)
{
	char store[PLACE_MAX];
	struct varve_stats st;
	varve *v;

	must_begin("%s", options);
	v = begin(store, options);
	if (!v)
		return;
	check_last(v);
	tick(EVERY_NS);
	for (int e = 0; e < EPOCHS; e++) {
		for (size_t i = 0; i < LEN; i += PAGE)
			((volatile uint8_t *)memory)[i + (size_t)e]++;
		(void)varve_checkpoint(v); /* which of the handler's writes it holds is chance, and it may fail */
		(void)varve_stats(v, &st);
		if (e % 8 == 7) {
			MUST(varve_unprotect(v, "p") == 0);
			MUST(varve_protect(v, "p", memory, LEN) == 0);
		}
	}
	tick(0);
	(void)varve_wait(v, varve_epoch(v));
	check_last(v);
	tick(EVERY_NS);
	(void)varve_checkpoint(v);
	(void)varve_close(v);
	tick(0);
	munmap(memory, LEN);
	place_remove(store);
}

/* One that waits for the flush interrupts a thread that asks after it all the while: the flush, which has only just been called, must not wait for what that thread holds. */
static void asked(const char *options)
{
	char store[PLACE_MAX];
	varve *v;

	must_begin("asked: %s", options);
	v = begin(store, options);
	if (!v)
		return;
	for (int e = 0; e < ASKED; e++) {
		struct itimerspec once = { .it_value = { 0, 1000 + (long)gen_below(&seed, SOON_NS) } };

		for (size_t i = 0; i < LEN; i += PAGE)
			((volatile uint8_t *)memory)[i + (size_t)e]++;
		MUST(varve_checkpoint(v) == 0 && timer_settime(timer, 0, &once, NULL) == 0);
		while (e % 4 && varve_test(v, varve_epoch(v)) == 0)
			;
		MUST(varve_wait(v, varve_epoch(v)) == 0);
		tick(0);
	}
	check_last(v);
	MUST(varve_close(v) == 0);
	munmap(memory, LEN);
	place_remove(store);
}

/* A thread that forks has all locks of the allocator, which the flush needs, too. */
static void forking(const char *options)
{
	char store[PLACE_MAX];
	int forks = 0, status;
	varve *v;

	must_begin("forking: %s", options);
	v = begin(store, options);
	if (!v)
		return;
	tick(2 * EVERY_NS);
	for (int e = 0; e < FORKING; e++) {
		for (size_t i = 0; i < LEN; i += PAGE)
			((volatile uint8_t *)memory)[i + (size_t)e]++;
		(void)varve_checkpoint(v);
		do {
			pid_t pid = fork();

			if (pid == 0)
				_exit(0);
			MUST(pid > 0);
			while (waitpid(pid, &status, 0) < 0)
				;
			forks++;
		} while (varve_test(v, varve_epoch(v)) == 0);
	}
	tick(0);
	printf("%d forks\n", forks);
	check_last(v);
	MUST(varve_close(v) == 0);
	munmap(memory, LEN);
	place_remove(store);
}

/* One that is handled waits, and comes; one that is not ends the process at once. */
static void waits(void)
{
	sigset_t before;
	int status;
	pid_t pid;

	must_begin("what waits, and what does not");
	MUST(signal(SIGUSR2, on_tick) != SIG_ERR && signal(SIGTERM, SIG_DFL) != SIG_ERR);
	memory = malloc(LEN);
	came = 0;
	vv_block_signals_begin(&before);
	MUST(raise(SIGUSR2) == 0 && !came);
	pid = fork();
	if (pid == 0) {
		raise(SIGTERM);
		_exit(1);
	}
	MUST(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	vv_block_signals_end(&before);
	MUST(came);
	came = 0;
	vv_block_signals_brief(&before);
	pid = fork();
	if (pid == 0) {
		raise(SIGTERM);
		raise(SIGUSR2);
		_exit(came);
	}
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
	vv_block_signals_end(&before);
	free(memory);
}

int main(void)
{
	static const char *const trackers[] = { "auto", "wpasync", "sigbus", "mprotect", "digest" };
	char options[200];

#ifdef __SANITIZE_THREAD__
	SKIP("ThreadSanitizer runs handlers with faults blocked, and a fence ends the program then");
#endif
	waits();
	MUST(signal(SIGUSR2, on_tick) != SIG_ERR);
	MUST(timer_create(CLOCK_MONOTONIC, &(struct sigevent){ .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2 }, &timer) == 0);
	for (size_t i = 0; i < sizeof(trackers) / sizeof(trackers[0]); i++) {
		snprintf(options, sizeof(options), "tracker=%s buffer=0 granule=4096 codec=none log=error", trackers[i]);
		interrupted(options);
		snprintf(options, sizeof(options), "tracker=%s buffer=256KiB codec=none log=error", trackers[i]);
		interrupted(options);
		snprintf(options, sizeof(options), "tracker=%s mode=sync codec=none log=error", trackers[i]);
		interrupted(options);
		snprintf(options, sizeof(options), "tracker=%s buffer=0 granule=4096 codec=none log=error", trackers[i]);
		asked(options);
		snprintf(options, sizeof(options), "tracker=%s buffer=64KiB granule=4096 codec=none bandwidth=40MB log=error", trackers[i]);
		forking(options);
	}
	return 0;
}
