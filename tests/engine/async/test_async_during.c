// ctest: TIMEOUT 240 PROCESSORS 2 COST 11
/* Threads that write while varve_checkpoint is at work, against the rules: what they wrote is in that epoch or in the next one, under every tracker. Nothing may be lost because it came
 * after a page was copied, and before anybody watched for writes to it. */
#include "support/gen.h"
#include "support/must.h"
#include "support/place.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <varve/varve.h>

enum { PAGE = 4096, PAGES = 2048, LEN = PAGES * PAGE, WRITERS = 2, ROUNDS = 24 };

static uint8_t *memory, *copy;
static atomic_bool stop;

static void *write_on(void *arg)
{
	uint64_t seed = *(uint64_t *)arg;

	while (!atomic_load(&stop)) {
		_Atomic uint64_t *word = (_Atomic uint64_t *)(memory + gen_below(&seed, PAGES) * PAGE) + gen_below(&seed, PAGE / 8);

		atomic_fetch_add(word, 1);
	}
	return NULL;
}

static void run(const char *tracker, const char *mode, const char *buffer)
{
	char store[PLACE_MAX], options[200];
	varve *v;
	int rc;

	snprintf(options, sizeof(options), "tracker=%s mode=%s buffer=%s codec=none keep=2 log=error", tracker, mode, buffer);
	must_begin("%s", options);
	place_path(store, "store");
	rc = varve_open(store, "run", options, &v);
	if (rc == VARVE_ENOTSUP)
		return;
	MUST(rc == 0 && varve_protect(v, "p", memory, LEN) == 0);
	MUST(varve_checkpoint(v) == 0);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		pthread_t thread[WRITERS];
		uint64_t seed[WRITERS];

		atomic_store(&stop, false);
		for (size_t k = 0; k < WRITERS; k++) {
			seed[k] = i * WRITERS + k + 1;
			MUST(pthread_create(&thread[k], NULL, write_on, &seed[k]) == 0);
		}
		MUST(varve_checkpoint(v) == 0);
		atomic_store(&stop, true);
		for (size_t k = 0; k < WRITERS; k++)
			MUST(pthread_join(thread[k], NULL) == 0);
		MUST(varve_checkpoint(v) == 0 && varve_wait(v, varve_epoch(v)) == 0);
		MUST(varve_restart_region(v, VARVE_LATEST, "p", copy, LEN) == 0);
		MUST(memcmp(copy, memory, LEN) == 0);
	}
	MUST(varve_close(v) == 0);
	place_remove(store);
}

int main(void)
{
	static const char *const trackers[] = { "mprotect", "sigbus", "wpasync", "auto", "digest" };
	static const char *const buffers[] = { "16MiB", "1MiB", "0" };

#ifdef __SANITIZE_THREAD__
	SKIP("these threads race on purpose");
#endif
	memory = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	copy = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(memory != MAP_FAILED && copy != MAP_FAILED);
	memset(memory, 1, LEN);
	for (size_t i = 0; i < sizeof(trackers) / sizeof(trackers[0]); i++) {
		for (size_t k = 0; k < sizeof(buffers) / sizeof(buffers[0]); k++)
			run(trackers[i], "async", buffers[k]);
		run(trackers[i], "sync", "16MiB");
	}
	return 0;
}
