// ctest: TIMEOUT 120 COST 9
/* What is under way to a slow sink and has no copy cannot be written by the program. So it is no more than the sink needs to be kept
 * busy, however many threads there are; and a program that writes meanwhile, wherever, gets through. */
#include "engine/context.h"
#include "engine/memory/tiles.h"
#include "support/gen.h"
#include "support/must.h"
#include "support/place.h"
#include "support/writers.h"
#include <stdbool.h>
#include <sys/mman.h>

enum { PAGE = 4096, PAGES = 512, LEN = PAGES * PAGE, EPOCHS = 3, ENOUGH = 192 << 10 };

static uint8_t *memory;

static size_t uncopied(varve *v)
{
	size_t n;

	pthread_mutex_lock(&v->tiles->lock);
	n = v->tiles->waiters.groups_in_blocks - v->tiles->waiters.cells_in_blocks;
	pthread_mutex_unlock(&v->tiles->lock);
	return n * v->tiles->geometry.group_len;
}

// The sanitizer cannot know that fences order it.
__attribute__((no_sanitize("thread"))) static void write_somewhere(uint64_t *seed)
{
	((volatile uint8_t *)memory)[gen_below(seed, LEN)]++;
}

/* The most that was under way until the epoch was stored. Pages are written now and then: each either waits or takes a copy. */
static size_t watch(varve *v, bool write, uint64_t *seed)
{
	size_t most = 0, now;

	while (varve_test(v, varve_epoch(v)) == 0) {
		now = uncopied(v);
		most = now > most ? now : most;
		if (write)
			write_somewhere(seed);
		must_nap(1);
	}
	return most;
}

static void run(const char *more, bool write)
{
	uint8_t *before = malloc(LEN), *after = malloc(LEN);
	char store[PLACE_MAX], options[200];
	uint64_t seed = 5;
	varve *v = NULL;

	snprintf(options, sizeof(options), "codec=none bandwidth=4MB threads=16 granule=4096 log=error %s", more);
	must_begin("%s%s", options, write ? ", written meanwhile" : "");
	place_path(store, "store");
	MUST(before && after && varve_open(store, "run", options, &v) == 0 && varve_protect(v, "p", memory, LEN) == 0);
	for (int e = 0; e < EPOCHS; e++) {
		size_t most;

		for (size_t i = 0; i < LEN; i += 8)
			*(uint64_t *)(void *)(memory + i) = gen_next(&seed);
		memcpy(before, memory, LEN);
		MUST(varve_checkpoint(v) == 0);
		most = watch(v, write, &seed);
		MUST(varve_wait(v, varve_epoch(v)) == 0);
		MUST(varve_restart_region(v, VARVE_LATEST, "p", after, LEN) == 0);
		MUST(memcmp(before, after, LEN) == 0);
		if (!write && most > ENOUGH + PAGE) {
			fprintf(stderr, "%zu bytes under way in epoch %d\n", most, e);
			MUST(most <= ENOUGH + PAGE);
		}
	}
	MUST(varve_close(v) == 0);
	place_remove(store);
	free(before);
	free(after);
}

int main(void)
{
	memory = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(memory != MAP_FAILED);
	for (int write = 0; write < 2; write++) {
		run("buffer=0", write);
		run("buffer=128KiB", write);
		run("buffer=0 tracker=mprotect eager=no", write);
	}
	munmap(memory, LEN);
	return 0;
}
