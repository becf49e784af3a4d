// ctest: TIMEOUT 300 COST 5
/* While a checkpoint is stored behind a program that writes here and there, fences are all over its memory, and each is a mapping of its own. The program still gets memory when it asks
 * for some, no checkpoint fails for want of any, and what is restored is what was there at the call. */
#include "support/must.h"
#include "support/place.h"
#include <stdbool.h>
#include <sys/mman.h>
#include <varve/varve.h>

enum { PAGE = 4096, PAGES = 65536, EPOCHS = 4, ASK_EVERY = 256, SPARE = 100 };

static uint64_t *number(uint8_t *p, size_t i)
{
	return (uint64_t *)(void *)(p + i * PAGE) + i % 500;
}

static void ask_for_memory(void)
{
	void *p[SPARE];

	for (int i = 0; i < SPARE; i++) {
		p[i] = mmap(NULL, PAGE, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		MUST(p[i] != MAP_FAILED);
	}
	for (int i = 0; i < SPARE; i++)
		MUST(munmap(p[i], PAGE) == 0);
}

static void run(const char *options, size_t step, bool jumping)
{
	uint8_t *p = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char store[PLACE_MAX];
	uint64_t *want = calloc(PAGES, sizeof(*want)), next = 0;
	varve *v;

	must_begin("%s, every %zu%s", options, step, jumping ? " jumping" : "");
	place_path(store, "store");
	place_remove(store);
	MUST(p != MAP_FAILED && want);
	for (size_t i = 0; i < PAGES; i++)
		*number(p, i) = ++next * 0x9e3779b97f4a7c15u;
	MUST(varve_open(store, "run", options, &v) == 0 && varve_protect(v, "p", p, (size_t)PAGES * PAGE) == 0);
	for (int e = 1; e <= EPOCHS; e++) {
		for (size_t i = 0; i < PAGES; i++)
			want[i] = *number(p, i);
		MUST(varve_checkpoint(v) == 0);
		for (size_t k = 0; k < PAGES; k += step) {
			*number(p, jumping ? k * 0x9e3779b1u % PAGES : k) = ++next * 0x9e3779b97f4a7c15u;
			if (k / step % ASK_EVERY == 0)
				ask_for_memory();
		}
		MUST(varve_wait(v, varve_epoch(v)) == 0);
	}
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	for (size_t i = 0; i < PAGES; i++)
		MUST(*number(p, i) == want[i]);
	MUST(varve_close(v) == 0);
	munmap(p, (size_t)PAGES * PAGE);
	free(want);
}

/* The buffer is a share of regions that become more and fewer: it is made larger, and smaller, and what is restored is right. */
static void change_regions(void)
{
	enum { N = 6, LEN = 1024 };
	static const int order[] = { 0, 1, 2, 3, 4, 5, 3, 1, 4 };
	uint8_t *p[N];
	char store[PLACE_MAX], name[8];
	uint64_t want[N][LEN], next = 1;
	bool on[N] = { false };
	varve *v;

	must_begin("regions that come and go");
	place_path(store, "grow");
	MUST(varve_open(store, "run", "buffer=40% codec=none bandwidth=300MB", &v) == 0);
	for (int i = 0; i < N; i++) {
		p[i] = mmap(NULL, (size_t)LEN * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		MUST(p[i] != MAP_FAILED);
	}
	for (size_t k = 0; k < sizeof(order) / sizeof(order[0]); k++) {
		int r = order[k];

		snprintf(name, sizeof(name), "r%d", r);
		on[r] = !on[r];
		MUST((on[r] ? varve_protect(v, name, p[r], (size_t)LEN * PAGE) : varve_unprotect(v, name)) == 0);
		for (int i = 0; i < N; i++)
			for (size_t j = 0; j < LEN; j++)
				want[i][j] = *number(p[i], j) = ++next * 0x9e3779b97f4a7c15u;
		MUST(varve_checkpoint(v) == 0);
		for (int i = 0; i < N; i++)
			for (size_t j = 0; j < LEN; j++)
				*number(p[i], j) = ++next;
		MUST(varve_wait(v, varve_epoch(v)) == 0);
		MUST(varve_restart(v, VARVE_LATEST) == 1);
		for (int i = 0; i < N; i++)
			for (size_t j = 0; on[i] && j < LEN; j++)
				MUST(*number(p[i], j) == want[i][j]);
	}
	MUST(varve_close(v) == 0);
}

int main(void)
{
	change_regions();
	run("buffer=4MiB codec=none bandwidth=600MB", 2, false);
	run("buffer=4MiB codec=none bandwidth=600MB", 2, true);
	run("buffer=4MiB codec=none bandwidth=600MB tracker=mprotect granule=4096", 2, false);
	run("buffer=0 codec=none bandwidth=600MB tracker=digest", 2, false);
	return 0;
}
