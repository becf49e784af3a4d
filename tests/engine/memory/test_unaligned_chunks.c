// ctest: TIMEOUT 120 COST 12
/* Chunks that are no part of a page, nor pages of them: up to three tiles share a page, which may be written only when all of them are safe. Threads write all of it, forwards, backwards and anyhow, from the
 * moment that the call returns; every epoch is what was there at the call, and none fails. */
#include "support/gen.h"
#include "support/must.h"
#include "support/place.h"
#include "support/writers.h"
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

enum { PAGE = 4096, PAGES = 900, THREADS = 3, EPOCHS = 9 };

static const size_t LEN = (size_t)PAGES * PAGE + 77;

struct run {
	varve *v;
	uint8_t *p, *copy[EPOCHS], *read;
	int epoch;
};

struct part {
	struct run *u;
	size_t from;
};

static void *write_part(void *arg)
{
	const struct part *x = arg;
	size_t n = PAGES / THREADS;
	uint64_t seed = (uint64_t)x->u->epoch * THREADS + x->from + 1;

	for (size_t i = 0; i < n; i++) {
		size_t page = x->from + (x->u->epoch % 3 == 0 ? i : x->u->epoch % 3 == 1 ? n - 1 - i : gen_below(&seed, n));

		writers_fill(x->u->p + page * PAGE, (uint8_t)gen_next(&seed), PAGE);
	}
	return NULL;
}

/* Before the next call all have come to their end. */
static void write_all(struct run *u)
{
	struct part part[THREADS];
	pthread_t thread[THREADS];

	for (size_t k = 0; k < THREADS; k++) {
		part[k] = (struct part){ u, k * (PAGES / THREADS) };
		MUST(pthread_create(&thread[k], NULL, write_part, &part[k]) == 0);
	}
	for (size_t k = 0; k < THREADS; k++)
		MUST(pthread_join(thread[k], NULL) == 0);
}

static void run(const char *tracker, int chunk, const char *more)
{
	struct run u = { 0 };
	char store[PLACE_MAX], options[200];
	uint64_t seed = 3;
	uint8_t *map;
	int rc;

	snprintf(options, sizeof(options), "tracker=%s chunk=%d codec=none log=error %s", tracker, chunk, more);
	must_begin("%s", options);
	place_path(store, "store");
	rc = varve_open(store, "run", options, &u.v);
	if (rc == VARVE_ENOTSUP) {
		printf("skipped: %s\n", varve_last_error());
		return;
	}
	map = mmap(NULL, LEN + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	u.p = map + 32;
	u.read = malloc(LEN);
	MUST(rc == 0 && map != MAP_FAILED && u.read && varve_protect(u.v, "p", u.p, LEN) == 0);
	gen_bytes(&seed, u.p, LEN);
	for (u.epoch = 0; u.epoch < EPOCHS; u.epoch++) {
		u.copy[u.epoch] = malloc(LEN);
		MUST(u.copy[u.epoch]);
		memcpy(u.copy[u.epoch], u.p, LEN);
		MUST(varve_checkpoint(u.v) == 0);
		write_all(&u);
	}
	for (int e = 0; e < EPOCHS; e++) {
		MUST(varve_restart_region(u.v, (uint64_t)e + 1, "p", u.read, LEN) == 0);
		MUST(memcmp(u.read, u.copy[e], LEN) == 0);
		free(u.copy[e]);
	}
	MUST(varve_close(u.v) == 0);
	munmap(map, LEN + PAGE);
	free(u.read);
	place_remove(store);
}

int main(void)
{
	static const int chunks[] = { 3000, 1000, 3500, 2100, 4095, 700, 5000 };
	static const char *const trackers[] = { "auto", "digest", "wpasync", "mprotect", "sigbus" };

	for (size_t c = 0; c < sizeof(chunks) / sizeof(chunks[0]); c++)
		for (size_t k = 0; k < sizeof(trackers) / sizeof(trackers[0]); k++) {
			run(trackers[k], chunks[c], "granule=4096 buffer=256KiB bandwidth=200MB");
			run(trackers[k], chunks[c], "buffer=512KiB");
		}
	return 0;
}
