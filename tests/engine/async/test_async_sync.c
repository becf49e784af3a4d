// ctest: TIMEOUT 120 COST 3
/* With mode=sync, a tracker that write-protects pages lets other threads of the program wait for the flush, too. Tiles whose copies
 * were to be made soon are then stored at once, and what is stored of them is their content and not that of an empty buffer. */
#include "support/must.h"
#include "support/place.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <varve/varve.h>

enum { TILE = 64 << 10, LEN = 8 << 20, ROUNDS = 3 };

static uint8_t *memory, *copy;
static atomic_bool stop;

/* Writes the upper half, from its end, while the lower half is stored. */
static void *write_on(void *arg)
{
	(void)arg;
	while (!atomic_load(&stop))
		for (size_t at = LEN; at > LEN / 2 && !atomic_load(&stop); at -= TILE)
			atomic_fetch_add((_Atomic uint64_t *)(void *)(memory + at - TILE), 1);
	return NULL;
}

static void fill(uint64_t round)
{
	for (size_t at = 0; at < LEN; at += 8)
		*(uint64_t *)(void *)(memory + at) = (round + 1) << 32 | (at + 8);
}

static void run(const char *tracker, uint64_t round)
{
	char store[PLACE_MAX], options[200];
	pthread_t thread;
	varve *v;
	int rc;

	snprintf(options, sizeof(options), "tracker=%s mode=sync buffer=1MiB threads=1 codec=none bandwidth=20MiB log=error", tracker);
	must_begin("%s", options);
	place_path(store, "store");
	rc = varve_open(store, "run", options, &v);
	if (rc == VARVE_ENOTSUP)
		return;
	fill(round);
	MUST(rc == 0 && varve_protect(v, "p", memory, LEN) == 0);
	atomic_store(&stop, false);
	MUST(pthread_create(&thread, NULL, write_on, NULL) == 0);
	MUST(varve_checkpoint(v) == 0);
	atomic_store(&stop, true);
	MUST(pthread_join(thread, NULL) == 0);
	MUST(varve_restart_region(v, VARVE_LATEST, "p", copy, LEN) == 0 && memcmp(copy, memory, LEN / 2) == 0);
	MUST(varve_checkpoint(v) == 0);
	MUST(varve_restart_region(v, VARVE_LATEST, "p", copy, LEN) == 0 && memcmp(copy, memory, LEN) == 0);
	MUST(varve_close(v) == 0);
	place_remove(store);
}

int main(void)
{
#ifdef __SANITIZE_THREAD__
	SKIP("these threads race on purpose");
#endif
	memory = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	copy = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(memory != MAP_FAILED && copy != MAP_FAILED);
	for (uint64_t round = 0; round < ROUNDS; round++) {
		run("mprotect", round);
		run("sigbus", round);
	}
	return 0;
}
