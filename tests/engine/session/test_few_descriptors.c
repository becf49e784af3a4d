// ctest: COST 5
/* A restart from more layers than the process may have files open: some are closed, and it goes on. */
#include "store/dir/dir.h"
#include "support/gen.h"
#include "support/lazyfs.h"
#include "support/must.h"
#include "support/place.h"
#include <stdlib.h>
#include <sys/resource.h>

enum { PAGE = 4096, LAYERS = 300, LEN = LAYERS * PAGE };

static void lay_down(const char *store, const char *options, uint8_t *p)
{
	uint64_t seed = 3;
	varve *v = NULL;

	memset(p, 0, LEN);
	MUST(varve_open(store, "run", options, &v) == 0 && varve_protect(v, "p", p, LEN) == 0);
	for (size_t i = 0; i < LAYERS; i++) {
		gen_text(&seed, p + i * PAGE, PAGE);
		MUST(varve_checkpoint(v) == 0);
	}
	MUST(varve_close(v) == 0);
}

static void limit_descriptors(rlim_t n)
{
	struct rlimit l;

	MUST(getrlimit(RLIMIT_NOFILE, &l) == 0);
	l.rlim_cur = n;
	MUST(setrlimit(RLIMIT_NOFILE, &l) == 0);
}

static void restart(const char *store, const uint8_t *want, rlim_t descriptors, const char *options)
{
	uint8_t *p = calloc(1, LEN), *q = calloc(1, LEN);
	struct rlimit before;
	varve *v = NULL;

	must_begin("%llu descriptors, %s", (unsigned long long)descriptors, options);
	MUST(p && q && getrlimit(RLIMIT_NOFILE, &before) == 0);
	limit_descriptors(descriptors);
	MUST(varve_open(store, "run", options, &v) == 0 && varve_protect(v, "p", p, LEN) == 0);
	MUST(varve_restart(v, VARVE_LATEST) == 1 && memcmp(p, want, LEN) == 0);
	MUST(varve_restart_region(v, VARVE_LATEST, "p", q, LEN) == 0 && memcmp(q, want, LEN) == 0);
	memset(p, 0, LEN);
	MUST(varve_restart(v, LAYERS - 1) == 1 && memcmp(p, want, LEN - PAGE) == 0);
	MUST(varve_close(v) == 0);
	MUST(setrlimit(RLIMIT_NOFILE, &before) == 0);
	free(p);
	free(q);
}

int main(void)
{
	static const char *const options[] = { "mode=sync codec=none log=error", "mode=sync codec=auto log=error" };
	uint8_t *want = malloc(LEN);
	char store[PLACE_MAX];

	vv_dir_set_fs(lazyfs());
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		must_begin("lay down, %s", options[i]);
		lay_down(place_path(store, "store"), options[i], want);
		restart(store, want, 24, options[i]);
		restart(store, want, 64, options[i]);
		restart(store, want, 1024, options[i]);
		place_remove(store);
	}
	free(want);
	return 0;
}
