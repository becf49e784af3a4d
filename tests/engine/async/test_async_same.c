// ctest: TIMEOUT 120 COST 2
/* A series of states gives the same epochs whether it is stored at once or behind the program, in whatever order: the same bytes
 * new, zero, and found elsewhere; the same content; and nothing that verify would complain of. */
#include "engine/upkeep/verify.h"
#include "support/gen.h"
#include "support/must.h"
#include "support/place.h"
#include "support/writers.h"
#include <inttypes.h>
#include <stdbool.h>
#include <sys/mman.h>

enum { PAGE = 4096, REGIONS = 3, EPOCHS = 8, WAYS = 9 };

static const size_t lens[REGIONS] = { 300 * PAGE, 77 * PAGE + 123, 5000 };

struct trace { /* what one way of storing made of it */
	struct varve_stats stats[EPOCHS];
	uint8_t *content[EPOCHS][REGIONS];
};

static void print_problem(void *arg, const char *problem)
{
	(void)arg;
	fprintf(stderr, "%s\n", problem);
}

static void verify(const char *path)
{
	struct vv_store_options opt = { 0 };
	struct vv_store *store = NULL;
	struct vv_lineage lin = { 0 };
	struct vv_verify_report report = { 0 };
	struct vv_pool *pool = NULL;

	MUST(vv_store_open(path, &opt, &store) == 0 && vv_catalog_open(store, "run", false, &lin) == 0);
	MUST(vv_pool_new(0, &pool) == 0);
	MUST(vv_verify_run(&lin, pool, 0, false, print_problem, NULL, NULL, &report) == 0);
	MUST(report.problems == 0 && report.epochs == EPOCHS);
	vv_pool_free(pool);
	vv_store_close(store);
}

/* The same states every time; what is written after a checkpoint has returned is part of the next state. */
static void play(const char *options, uint64_t seed, struct trace *t)
{
	struct area area[REGIONS];
	char store[PLACE_MAX], name[8];
	varve *v = NULL;

	must_begin("%s, seed %" PRIu64, options, seed);
	place_path(store, "store");
	MUST(varve_open(store, "run", options, &v) == 0);
	for (size_t i = 0; i < REGIONS; i++) {
		snprintf(name, sizeof(name), "r%zu", i);
		area[i] = (struct area){ mmap(NULL, lens[i] + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), lens[i] };
		MUST(area[i].p != MAP_FAILED);
		area[i].p += i * 13;
		MUST(varve_protect(v, name, area[i].p, lens[i]) == 0);
	}
	for (int e = 0; e < EPOCHS; e++) {
		unsigned writes = e % 3 == 2 ? 5 : 400;

		for (unsigned k = 0; k < writes; k++)
			writers_write(&seed, area, REGIONS);
		MUST(varve_checkpoint(v) == 0);
		for (unsigned k = 0; k < writes; k++)
			writers_write(&seed, area, REGIONS);
		MUST(varve_stats(v, &t->stats[e]) == 0);
	}
	for (int e = 0; e < EPOCHS; e++)
		for (size_t i = 0; i < REGIONS; i++) {
			snprintf(name, sizeof(name), "r%zu", i);
			MUST(t->content[e][i] = malloc(lens[i]));
			MUST(varve_restart_region(v, (uint64_t)e + 1, name, t->content[e][i], lens[i]) == 0);
		}
	MUST(varve_close(v) == 0);
	verify(store);
	place_remove(store);
	for (size_t i = 0; i < REGIONS; i++)
		munmap(area[i].p - i * 13, lens[i] + PAGE);
}

static void compare(const struct trace *a, const struct trace *b)
{
	for (int e = 0; e < EPOCHS; e++) {
		MUST(a->stats[e].bytes_memory == b->stats[e].bytes_memory);
		MUST(a->stats[e].bytes_zero == b->stats[e].bytes_zero);
		MUST(a->stats[e].bytes_unchanged == b->stats[e].bytes_unchanged);
		MUST(a->stats[e].bytes_dup_time == b->stats[e].bytes_dup_time);
		MUST(a->stats[e].bytes_dup_space == b->stats[e].bytes_dup_space);
		MUST(a->stats[e].bytes_new == b->stats[e].bytes_new);
		for (size_t i = 0; i < REGIONS; i++)
			MUST(memcmp(a->content[e][i], b->content[e][i], lens[i]) == 0);
	}
}

static void drop(struct trace *t)
{
	for (int e = 0; e < EPOCHS; e++)
		for (size_t i = 0; i < REGIONS; i++)
			free(t->content[e][i]);
}

int main(void)
{
	static const char *const ways[WAYS] = {
		"mode=sync tracker=digest threads=1 log=error",
		"mode=sync log=error",
		"mode=sync tracker=mprotect order=address log=error",
		"mode=async order=address log=error",
		"mode=async order=adaptive log=error",
		"mode=async buffer=0 order=address threads=1 bandwidth=50MiB log=error",
		"mode=async buffer=64KiB granule=4096 tracker=mprotect bandwidth=50MiB log=error",
		"mode=async buffer=100% tracker=digest log=error",
		"mode=async buffer=256KiB eager=no tracker=mprotect codec=none log=error",
	};

	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct trace first = { 0 }, other = { 0 };

		play(ways[0], seed, &first);
		for (size_t k = 1; k < WAYS; k++) {
			play(ways[k], seed, &other);
			compare(&first, &other);
			drop(&other);
		}
		drop(&first);
	}
	return 0;
}
