// ctest: TIMEOUT 120
/* The tracker `auto` watches a region or compares it whole, by the share of it that is written and by what both cost here. Whatever it
 * does, every write is found. */
#include "base/err.h"
#include "base/mem.h"
#include "engine/context.h"
#include "engine/memory/layout.h"
#include "engine/memory/tiles.h"
#include "support/gen.h"
#include "support/must.h"
#include "support/place.h"
#include <sys/mman.h>

enum { PAGE = 4096, PAGES = 2000, LEN = PAGES * PAGE };

static uint8_t *memory;
static varve *v;

static void checkpoint(void)
{
	static uint8_t copy[LEN];

	MUST(varve_checkpoint(v) == 0 && varve_wait(v, varve_epoch(v)) == 0);
	MUST(varve_restart_region(v, VARVE_LATEST, "p", copy, LEN) == 0);
	MUST(memcmp(copy, memory, LEN) == 0);
}

// Some percent of the pages are written, and hold something else then.
static void epochs(int n, size_t percent, uint64_t *seed)
{
	for (int e = 0; e < n; e++) {
		for (size_t k = 0; k < PAGES * percent / 100; k++)
			memory[(k * 100 / percent + gen_below(seed, 100 / percent)) * PAGE + gen_below(seed, PAGE)]++;
		checkpoint();
	}
}

static bool is_watched(void)
{
	return v->region[0]->tracked->method == VV_BY_SCAN;
}

// What hashing a page shall have cost so far.
static void say_cost(double seconds)
{
	v->tiles->meters.hashed_pages = 1e5;
	v->tiles->meters.hashed_s = seconds * v->tiles->meters.hashed_pages;
}

// granule: tiles of one size, so that the memory is not laid out anew, which makes all of it count as written.
static void begin(const char *what, char *store)
{
	must_begin("%s", what);
	place_path(store, "store");
	MUST(varve_open(store, "run", "tracker=auto codec=none granule=4096 log=error", &v) == 0 && varve_protect(v, "p", memory, LEN) == 0);
}

static void end(const char *store)
{
	MUST(varve_close(v) == 0);
	place_remove(store);
}

// A program that writes little, everything, and little again.
static void changes_its_mind(uint64_t *seed)
{
	char store[PLACE_MAX];

	begin("a program that changes its mind", store);
	epochs(3, 1, seed);
	MUST(!v->tiles->protection.scan || is_watched());
	epochs(2, 100, seed);
	MUST(!is_watched());
	epochs(8, 1, seed);
	MUST(!v->tiles->protection.scan || is_watched());
	end(store);
}

// The same share of pages is much or little, by what hashing costs.
static void minds_the_cost(uint64_t *seed)
{
	char store[PLACE_MAX];

	begin("a machine on which hashing is dear", store);
	checkpoint();
	for (int e = 0; e < 4; e++) {
		say_cost(1);
		epochs(1, 33, seed);
		MUST(!v->tiles->protection.scan || is_watched());
	}
	say_cost(1);
	epochs(1, 100, seed);
	MUST(!is_watched());
	end(store);

	begin("a machine on which it costs nothing", store);
	checkpoint();
	say_cost(0);
	epochs(1, 2, seed);
	MUST(!v->tiles->protection.scan || is_watched());
	/* Without the cost of hashing, comparing pays above a ninth at the latest (dense in dirty.c), however much faults are seen to cost. */
	say_cost(0);
	epochs(1, 20, seed);
	MUST(!is_watched());
	end(store);
}

// A layout that fails for lack of memory leaves no page watched: vv_tiles_detach would not find the region.
static void lacks_memory(uint64_t *seed)
{
	char store[PLACE_MAX];
	int rc = VV_ENOMEM;

	begin("no memory for a new layout", store);
	for (long k = 1; rc == VV_ENOMEM; k++) {
		epochs(3, 1, seed);
		MUST(!v->tiles->protection.scan || is_watched());
		v->tiles->resize = true;
		vv_mem_fail_at(k);
		rc = vv_layout_run(v);
		vv_mem_fail_at(0);
		MUST(rc == 0 || (rc == VV_ENOMEM && !is_watched()));
	}
	epochs(2, 1, seed);
	end(store);
}

int main(void)
{
	uint64_t seed = 3;

	memory = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(memory != MAP_FAILED);
	changes_its_mind(&seed);
	minds_the_cost(&seed);
	lacks_memory(&seed);
	munmap(memory, LEN);
	return 0;
}
