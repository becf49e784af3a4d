// ctest: TIMEOUT 120 PROCESSORS 2 COST 3
/* Threads that do not stop for a checkpoint, against the rules. It may fail, or what they write meanwhile may not be in it, but
 * nothing gets lost: once they stop, the next one holds everything. With writes to single pages here and there, more of them
 * than the buffer holds. */
#include "support/gen.h"
#include "support/must.h"
#include "support/place.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

enum { PAGE = 4096, PAGES = 8 << 10, LEN = PAGES * PAGE, THREADS = 2, EPOCHS = 8, LAST_PAGES = 12 };

static uint8_t *memory;
static atomic_bool stop;
static atomic_ulong writes;

// Pages of its own each, so that the last value of a word is the thread's. The sanitizer cannot know that fences order it all.
__attribute__((no_sanitize("thread"))) static void *write_on(void *arg)
{
	uint64_t seed = (uint64_t)(uintptr_t)arg, value = 0;

	while (!atomic_load(&stop)) {
		size_t page = gen_below(&seed, PAGES / THREADS) * THREADS + (uintptr_t)arg % THREADS;

		*(volatile uint64_t *)(void *)(memory + page * PAGE + gen_below(&seed, PAGE / 8) * 8) = ++value;
		atomic_fetch_add(&writes, 1);
	}
	return NULL;
}

static void wait_for_writes(unsigned long n)
{
	unsigned long before = atomic_load(&writes);

	while (atomic_load(&writes) - before < n)
		sched_yield();
}

static void check_last(varve *v)
{
	uint8_t *copy = malloc(LEN);

	MUST(copy);
	(void)varve_wait(v, varve_epoch(v)); // an older one that failed
	MUST(varve_checkpoint(v) == 0);
	MUST(varve_wait(v, varve_epoch(v)) == 0);
	MUST(varve_restart_region(v, VARVE_LATEST, "p", copy, LEN) == 0);
	MUST(memcmp(copy, memory, LEN) == 0);
	free(copy);
}

static void busy(const char *options)
{
	pthread_t thread[THREADS];
	char store[PLACE_MAX];
	varve *v;
	int rc;

	must_begin("%s", options);
	place_path(store, "store");
	memory = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(memory != MAP_FAILED);
	rc = varve_open(store, "run", options, &v);
	if (rc == VARVE_ENOTSUP) {
		munmap(memory, LEN);
		return;
	}
	MUST(rc == 0 && varve_protect(v, "p", memory, LEN) == 0);
	check_last(v);
	atomic_store(&stop, false);
	for (uintptr_t i = 0; i < THREADS; i++)
		MUST(pthread_create(&thread[i], NULL, write_on, (void *)(i + THREADS)) == 0);
	for (int e = 0; e < EPOCHS; e++) { // each failure is told by the next call
		wait_for_writes(2000);
		(void)varve_checkpoint(v);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	check_last(v);
	for (size_t i = 0; i < LAST_PAGES; i++) // few enough for the buffer: nothing is write-protected any more
		memory[i * 80 * PAGE]++;
	check_last(v);
	check_last(v);
	MUST(varve_close(v) == 0);
	munmap(memory, LEN);
	place_remove(store);
}

int main(void)
{
	busy("tracker=wpasync codec=none buffer=256KiB");
	busy("tracker=wpasync codec=none buffer=256KiB granule=4096");
	return 0;
}
