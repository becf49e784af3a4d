// ctest: TIMEOUT 300 COST 20
/* Handlers that write regions interrupt the program in the midst of malloc, and all threads share one arena: the flush, which they wait for, waits for that. Nobody hangs, and an epoch either is
 * what the memory was, as far as nobody wrote meanwhile, or fails and says why. */
#include "support/gen.h"
#include "support/must.h"
#include "support/place.h"
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

enum { PAGE = 4096, PAGES = 2048, LEN = PAGES * PAGE, STILL = LEN / 2, EPOCHS = 5, LIVE = 3000, LEAST = 1100, MORE = 30000, BATCH = 2000, EVERY_NS = 500000 };

static uint8_t *memory, *copy;
static void *live[LIVE];
static uint64_t handler_seed = 9;

/* The second half of the memory is the handlers'. */
static void on_tick(int sig)
{
	(void)sig;
	for (int i = 0; i < 2; i++)
		((volatile uint8_t *)memory)[STILL + gen_below(&handler_seed, LEN - STILL)]++;
}

static void allocate(uint64_t *seed)
{
	for (int j = 0; j < BATCH; j++) {
		size_t i = (size_t)gen_below(seed, LIVE);

		free(live[i]);
		live[i] = malloc(LEAST + (size_t)gen_below(seed, MORE));
		MUST(live[i]);
	}
}

static void run(const char *options)
{
	struct itimerspec every = { { 0, EVERY_NS }, { 0, EVERY_NS } }, never = { { 0, 0 }, { 0, 0 } };
	char store[PLACE_MAX];
	uint64_t seed = 4;
	int failed = 0;
	timer_t timer;
	varve *v;
	int rc;

	must_begin("%s", options);
	place_path(store, "store");
	rc = varve_open(store, "run", options, &v);
	if (rc == VARVE_ENOTSUP)
		return;
	MUST(rc == 0 && varve_protect(v, "p", memory, LEN) == 0);
	MUST(timer_create(CLOCK_MONOTONIC, &(struct sigevent){ .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2 }, &timer) == 0);
	MUST(timer_settime(timer, 0, &every, NULL) == 0);
	for (int e = 0; e < EPOCHS; e++) {
		gen_bytes(&seed, memory, LEN);
		rc = varve_checkpoint(v);
		if (rc)
			MUST(strstr(varve_last_error(), "signal handler"));
		while ((rc = varve_test(v, varve_epoch(v))) == 0)
			allocate(&seed);
		if (rc < 0) {
			MUST(rc == VARVE_EINVAL && strstr(varve_last_error(), "signal handler"));
			failed++;
			continue;
		}
		MUST(varve_restart_region(v, VARVE_LATEST, "p", copy, LEN) == 0 && memcmp(copy, memory, STILL) == 0);
	}
	MUST(timer_settime(timer, 0, &never, NULL) == 0 && timer_delete(timer) == 0);
	(void)varve_wait(v, varve_epoch(v));
	MUST(varve_checkpoint(v) == 0 && varve_wait(v, varve_epoch(v)) == 0);
	MUST(varve_restart_region(v, VARVE_LATEST, "p", copy, LEN) == 0 && memcmp(copy, memory, LEN) == 0);
	MUST(varve_close(v) == 0);
	printf("%s: %d of %d epochs failed\n", options, failed, EPOCHS);
	place_remove(store);
}

int main(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("a sanitizer has an allocator of its own, and runs handlers with faults blocked");
#endif
	MUST(mallopt(M_ARENA_MAX, 1) == 1);
	MUST(signal(SIGUSR2, on_tick) != SIG_ERR);
	memory = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	copy = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(memory != MAP_FAILED && copy != MAP_FAILED);
	run("buffer=1MiB codec=none keep=2 log=error");
	run("buffer=1MiB keep=2 log=error");
	run("tracker=mprotect buffer=64KiB granule=4096 keep=2 log=error");
	return 0;
}
