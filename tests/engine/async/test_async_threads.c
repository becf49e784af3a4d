// ctest: TIMEOUT 120 PROCESSORS 2 COST 3
/* What a checkpoint stores is what the regions held at the call, to the byte, whatever threads write from its return on: with
 * every tracker, buffer, order, granule, codec and chunk. Configurations are drawn; VARVE_TEST_SEED names the first,
 * VARVE_TEST_SECONDS says for how long. */
#include "support/gen.h"
#include "support/must.h"
#include "support/place.h"
#include "support/writers.h"
#include "vv_config.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

enum { PAGE = 4096, REGIONS = 5, EPOCHS = 6 };

/* ---- regions ---------------------------------------------------------------------------------------------------------- */

enum { HEAP, MAPPED, OWNED, TINY, KINDS };

struct region {
	char name[8];
	int kind;
	void *base;
	size_t base_len;
	uint8_t *copy[EPOCHS], *read;
};

struct run {
	uint64_t seed;
	varve *v;
	size_t n;
	struct region r[REGIONS];
	struct area area[REGIONS];
	uint64_t epoch[EPOCHS];
	bool checked[EPOCHS];
	size_t n_epochs;
};

static void make_region(struct run *u, size_t i)
{
	struct region *r = &u->r[i];
	size_t len = 1 + gen_below(&u->seed, gen_below(&u->seed, 3) ? 512 << 10 : 2 << 20), shift = gen_below(&u->seed, 100);

	r->kind = (int)gen_below(&u->seed, KINDS);
	if (r->kind == TINY)
		len = 1 + gen_below(&u->seed, 9000);
	if (gen_below(&u->seed, 3) == 0)
		len = (len + PAGE - 1) / PAGE * PAGE;
	snprintf(r->name, sizeof(r->name), "r%zu", i);
	r->base_len = len + 3 * PAGE;
	if (r->kind == OWNED) {
		r->base = varve_alloc(u->v, r->name, len);
		u->area[i] = (struct area){ r->base, len };
		MUST(r->base);
	} else {
		r->base = r->kind == MAPPED ? mmap(NULL, r->base_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) :
					      calloc(1, r->base_len);
		MUST(r->base && r->base != MAP_FAILED);
		shift = r->kind == MAPPED && gen_below(&u->seed, 2) ? 0 : shift;
		u->area[i] = (struct area){ (uint8_t *)r->base + shift, len };
		MUST(varve_protect(u->v, r->name, u->area[i].p, len) == 0);
	}
	for (size_t e = 0; e < EPOCHS; e++)
		MUST(r->copy[e] = malloc(len));
	MUST(r->read = malloc(len));
}

static void drop_region(struct region *r)
{
	if (r->kind == MAPPED)
		munmap(r->base, r->base_len);
	else if (r->kind != OWNED)
		free(r->base);
	for (size_t e = 0; e < EPOCHS; e++)
		free(r->copy[e]);
	free(r->read);
}

/* ---- epochs ------------------------------------------------------------------------------------------------------------ */

static void check_epoch(struct run *u, size_t e)
{
	for (size_t i = 0; i < u->n; i++) {
		struct region *r = &u->r[i];
		size_t len = u->area[i].len, at = 0;
		char why[200];

		memset(r->read, 0xee, len);
		MUST(varve_restart_region(u->v, u->epoch[e], r->name, r->read, len) == 0);
		while (at < len && r->read[at] == r->copy[e][at])
			at++;
		if (at == len)
			continue;
		snprintf(why, sizeof(why), "epoch %" PRIu64 " region %s (kind %d, %zu bytes at %p) differs at %zu", u->epoch[e],
			 r->name, r->kind, len, (void *)u->area[i].p, at);
		must_fail(__FILE__, __LINE__, why);
	}
	u->checked[e] = true;
}

static void check_stats(varve *v)
{
	struct varve_stats s;

	MUST(varve_stats(v, &s) == 0);
	MUST(s.bytes_memory == s.bytes_unchanged + s.bytes_zero + s.bytes_dup_time + s.bytes_dup_space + s.bytes_new);
	MUST(s.bytes_copied <= s.bytes_dirty + (1 << 20));
	MUST(s.seconds_waits >= 0 && s.seconds_blocked >= 0 && s.seconds_flush > 0);
}

static void take(struct run *u, struct writers *w)
{
	size_t e = u->n_epochs++;

	writers_pause(w);
	for (size_t i = 0; i < u->n; i++)
		memcpy(u->r[i].copy[e], u->area[i].p, u->area[i].len);
	MUST(varve_checkpoint(u->v) == 0);
	writers_go(w);
	u->epoch[e] = varve_epoch(u->v);
	MUST(e == 0 || u->epoch[e] > u->epoch[e - 1]);
}

static void nap(long us)
{
	nanosleep(&(struct timespec){ 0, us * 1000 }, NULL);
}

static void run_epochs(struct run *u, unsigned threads)
{
	struct writers *w = writers_new(threads, u->seed, u->area, u->n);

	while (u->n_epochs < EPOCHS) {
		take(u, w);
		if (gen_below(&u->seed, 2)) {
			MUST(varve_wait(u->v, u->epoch[u->n_epochs - 1]) == 0);
			MUST(varve_test(u->v, u->epoch[u->n_epochs - 1]) == 1);
			check_epoch(u, u->n_epochs - 1);
			check_stats(u->v);
		} else {
			int rc = varve_test(u->v, u->epoch[u->n_epochs - 1]);

			MUST(rc == 0 || rc == 1);
		}
		nap((long)gen_below(&u->seed, 8) * 500);
	}
	MUST(varve_wait(u->v, u->epoch[EPOCHS - 1]) == 0);
	writers_free(w);
	for (size_t e = 0; e < EPOCHS; e++)
		check_epoch(u, e);
}

/* ---- configurations ------------------------------------------------------------------------------------------------------ */

static const char *pick(uint64_t *seed, const char *const *list)
{
	size_t n = 0;

	while (list[n])
		n++;
	return list[gen_below(seed, n)];
}

static const char *draw_options(uint64_t *seed, const char *tracker, char *out, size_t cap)
{
	static const char *const buffer[] = { "0", "64KiB", "1MiB", "50%", "100%", NULL };
	static const char *const granule[] = { "0", "4096", "65536", NULL };
	static const char *const order[] = { "adaptive", "address", NULL };
	static const char *const yes[] = { "yes", "yes", "no", NULL };
	static const char *const chunk[] = { "4096", "4096", "512", "10000", "65536", NULL };
	static const char *const codec[] = { "none",
#if VV_HAVE_ZSTD
					     "zstd",
#endif
					     "auto", NULL };
	static const char *const bandwidth[] = { "0", "0", "20MiB", "60MiB", NULL };
	static const char *const threads[] = { "1", "2", NULL };
	static const char *const block[] = { "1MiB", "64KiB", NULL };
	static const char *const audit[] = { "0", "0", "20", NULL };

	snprintf(out, cap, "tracker=%s buffer=%s granule=%s order=%s eager=%s dedup=%s chunk=%s codec=%s bandwidth=%s threads=%s "
			   "block=%s audit=%s",
		 tracker, pick(seed, buffer), pick(seed, granule), pick(seed, order), pick(seed, yes),
		 gen_below(seed, 6) ? "yes" : "no", pick(seed, chunk), pick(seed, codec), pick(seed, bandwidth), pick(seed, threads),
		 pick(seed, block), pick(seed, audit));
	return out;
}

/* false: the kernel does not have the tracker. */
static bool run_case(const char *tracker, uint64_t seed)
{
	struct run u = { .seed = seed };
	char options[400], store[PLACE_MAX];
	unsigned threads = 1 + (unsigned)gen_below(&u.seed, 8);
	int rc;

	draw_options(&u.seed, tracker, options, sizeof(options));
	must_begin("seed %" PRIu64 ", %u threads, \"%s\"", seed, threads, options);
	if (gen_below(&u.seed, 4))
		snprintf(store, sizeof(store), "mem:threads");
	else
		place_path(store, "store");
	rc = varve_open(store, "run", options, &u.v);
	if (rc == VARVE_ENOTSUP)
		return false;
	MUST(rc == 0);
	for (u.n = 0; u.n < 1 + gen_below(&u.seed, REGIONS); u.n++)
		make_region(&u, u.n);
	run_epochs(&u, threads);
	MUST(varve_close(u.v) == 0);
	for (size_t i = 0; i < u.n; i++)
		drop_region(&u.r[i]);
	if (store[0] == '/' || store[0] == '.')
		place_remove(store);
	return true;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(void)
{
	static const char *const trackers[] = { "auto", "wpasync", "sigbus", "mprotect", "digest" };
	const char *seed = getenv("VARVE_TEST_SEED"), *seconds = getenv("VARVE_TEST_SECONDS"), *only = getenv("VARVE_TEST_TRACKER");
	uint64_t first = seed ? strtoull(seed, NULL, 10) : 1;
	double end = now() + (seconds ? atof(seconds) : 8);
	unsigned cases[5] = { 0 };
	bool has[5] = { true, true, true, true, true };

	for (uint64_t s = first; now() < end; s++)
		for (size_t k = 0; k < 5; k++)
			if (has[k] && (!only || strcmp(only, trackers[k]) == 0)) {
				has[k] = run_case(trackers[k], s);
				cases[k] += has[k];
			}
	for (size_t k = 0; k < 5; k++)
		printf("%s: %u cases%s\n", trackers[k], cases[k], has[k] ? "" : ", not with this kernel");
	return 0;
}
