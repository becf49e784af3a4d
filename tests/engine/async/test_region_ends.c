// ctest: TIMEOUT 120 COST 4
/* The first and last bytes of a region share pages with other memory, so no tracker watches them. With chunks that do not divide a page, several of them lie there: each write is
 * found, wherever the region ends. */
#include "support/dice.h"
#include "support/must.h"
#include "support/place.h"
#include "vv_test.h"
#include <stdlib.h>

enum { LEAST = 9000, MOST = 60000, LENGTHS = 24, WRITES = 8, NEAR = 3 * 4096 };

static void write_near_the_ends(const char *tracker, unsigned chunk, size_t len)
{
	char store[PLACE_MAX], options[100];
	uint8_t *p, *is = malloc(len);
	varve *v = NULL;

	must_begin("%s, chunk %u, length %zu", tracker, chunk, len);
	place_path(store, "ends");
	snprintf(options, sizeof(options), "tracker=%s chunk=%u", tracker, chunk);
	MUST(varve_open(store, "job", options, &v) == 0);
	p = aligned_alloc(4096, (len + 4095) / 4096 * 4096);
	MUST(p && is);
	noise(p, len);
	MUST(varve_protect(v, "p", p, len) == 0);
	for (int e = 0; e < WRITES; e++) {
		size_t at = upto(NEAR < len ? NEAR : len);

		p[e % 4 ? len - 1 - at : at]++;
		MUST(varve_checkpoint(v) == 0 && varve_wait(v, VARVE_LATEST) == 0);
		MUST(varve_restart_region(v, VARVE_LATEST, "p", is, len) == 0);
		MUST(memcmp(is, p, len) == 0);
	}
	MUST(varve_close(v) == 0);
	free(p);
	free(is);
	place_remove(store);
}

int main(void)
{
	static const char *const tracker[] = { "auto", "wpasync", "mprotect" };
	static const unsigned chunk[] = { 1000, 1400, 2100, 3000, 4095 };

	seed = 88172645463325252ull;
	for (size_t t = 0; t < sizeof(tracker) / sizeof(tracker[0]); t++)
		for (size_t c = 0; c < sizeof(chunk) / sizeof(chunk[0]); c++)
			for (int i = 0; i < LENGTHS; i++)
				write_near_the_ends(tracker[t], chunk[c], LEAST + upto(MOST - LEAST));
	write_near_the_ends("wpasync", 3000, 24001);
	return 0;
}
