/* Figures that all sources must agree on: what a call in mode=sync takes is in the layer and in the file of `stats`, and the time in faults of pages that were written
 * after the epoch had been stored is the next epoch's, as these pages are. */
#include "base/clock.h"
#include "support/must.h"
#include "support/place.h"
#include <sys/mman.h>

enum { PAGE = 4096, PAGES = 4096, LEN = PAGES * PAGE };

static uint8_t *memory;

static void touch(int step)
{
	for (size_t i = 0; i < LEN; i += PAGE)
		((volatile uint8_t *)memory)[i] = (uint8_t)(step + i / PAGE * 7);
}

/* Of the last line. */
static double journal(const char *path, const char *key)
{
	char line[4096], *at = NULL;
	FILE *f = fopen(path, "re");
	double value = -1;

	MUST(f);
	while (fgets(line, sizeof(line), f))
		if ((at = strstr(line, key)))
			value = strtod(at + strlen(key), NULL);
	fclose(f);
	return value;
}

static void sync_calls(void)
{
	char store[PLACE_MAX], lines[PLACE_MAX], options[PLACE_MAX + 100];
	struct varve_stats st;
	varve *v;

	must_begin("mode=sync");
	place_path(store, "store");
	place_path(lines, "lines");
	snprintf(options, sizeof(options), "mode=sync codec=none stats=%s", lines);
	MUST(varve_open(store, "run", options, &v) == 0 && varve_protect(v, "p", memory, LEN) == 0);
	for (int e = 0; e < 3; e++) {
		double start, took;

		touch(e);
		start = vv_clock_s();
		MUST(varve_checkpoint(v) == 0);
		took = vv_clock_s() - start;
		MUST(varve_stats(v, &st) == 0);
		MUST(st.seconds_blocked > 0 && st.seconds_blocked <= took && st.seconds_blocked >= st.seconds_flush);
		MUST(journal(lines, "\"seconds_blocked\":") >= 0.99 * journal(lines, "\"seconds_flush\":") && journal(lines, "\"seconds_flush\":") > 0);
	}
	MUST(varve_close(v) == 0);
	place_remove(store);
	place_remove(lines);
}

static void faults(const char *tracker)
{
	char store[PLACE_MAX], options[100];
	struct varve_stats st;
	varve *v;
	int rc;

	must_begin("faults, %s", tracker);
	place_path(store, "store");
	snprintf(options, sizeof(options), "tracker=%s granule=4096 codec=none", tracker);
	rc = varve_open(store, "run", options, &v);
	if (rc == VARVE_ENOTSUP)
		return;
	MUST(rc == 0 && varve_protect(v, "p", memory, LEN) == 0);
	MUST(varve_checkpoint(v) == 0 && varve_wait(v, varve_epoch(v)) == 0);
	for (int e = 0; e < 3; e++) {
		double start = vv_clock_s(), took;

		touch(e + 10);
		took = vv_clock_s() - start;
		MUST(varve_checkpoint(v) == 0 && varve_wait(v, varve_epoch(v)) == 0 && varve_stats(v, &st) == 0);
		MUST(st.after.pages == PAGES && st.seconds_faults > 0 && st.seconds_faults < took);
	}
	MUST(varve_checkpoint(v) == 0 && varve_wait(v, varve_epoch(v)) == 0 && varve_stats(v, &st) == 0);
	MUST(st.after.pages == 0 && st.seconds_faults == 0);
	MUST(varve_close(v) == 0);
	place_remove(store);
}

int main(void)
{
	memory = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(memory != MAP_FAILED);
	sync_calls();
	faults("mprotect");
	faults("sigbus");
	return 0;
}
