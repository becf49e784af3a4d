// ctest: TIMEOUT 120 MODES COST 3
/* The option `history`: what a session remembers of stored content does not grow without end, and whatever it forgets, epochs are whole,
 * and what the regions hold is not stored twice: also after a restart, from any epoch, with and without the index cache. */
#include "base/err.h"
#include "base/mem.h"
#include "base/pool.h"
#include "engine/ranks/group.h"
#include "engine/epoch/load_parent.h"
#include "engine/context.h"
#include "engine/upkeep/verify.h"
#include "engine/write/index_cache.h"
#include "engine/write/index_limit.h"
#include "support/must.h"
#include "support/pages.h"
#include "support/place.h"
#include "support/settle.h"
#include "support/threadcomm.h"
#include "vv_test.h"
#include <sys/wait.h>
#include <unistd.h>
#include <varve/varve_comm.h>

enum { CHUNK = 64, CHUNKS = 1024, SIZE = CHUNK * CHUNKS, FIXED = SIZE / 2, MANY = 200 };

#define SMALL "chunk=64 codec=none threads=1 block=4096 "

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { MEASURES_MEMORY = 0 }; /* their heap keeps what is freed */
#else
enum { MEASURES_MEMORY = 1 };
#endif

static uint8_t region[SIZE], want[SIZE];
static char store[PLACE_MAX];

static void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		abort();
	}
}

/* State n: nothing of it is in any other, but for the first half, which all have, if it stays. */
static void content(uint8_t *p, unsigned n, bool stays)
{
	for (unsigned c = 0; c < CHUNKS; c++)
		pages_fill(stays && c < CHUNKS / 2 ? 1 + c : (n + 1) * CHUNKS + c, p + c * CHUNK, CHUNK);
}

static varve *begin(const char *options)
{
	varve *v = NULL;

	ok(varve_open(store, "L", options, &v));
	ok(varve_protect(v, "r", region, sizeof(region)));
	return v;
}

/* Lays down what the region holds; how much of it was new? */
static uint64_t lay_now(varve *v)
{
	struct varve_stats st;

	ok(settle_checkpoint(v));
	settle_idle(v);
	ok(varve_stats(v, &st));
	return st.bytes_new;
}

/* A state. What is as before is not written: where pages are watched nobody looks at it. */
static uint64_t lay(varve *v, unsigned n, bool stays)
{
	content(want, n, stays);
	for (size_t at = 0; at < SIZE; at += CHUNK)
		if (memcmp(region + at, want + at, CHUNK) != 0)
			memcpy(region + at, want + at, CHUNK);
	return lay_now(v);
}

static void check_epoch(varve *v, uint64_t epoch, unsigned n, bool stays)
{
	static uint8_t got[SIZE];

	ok(varve_restart_region(v, epoch, "r", got, SIZE));
	content(want, n, stays);
	CHECK(memcmp(got, want, SIZE) == 0);
}

static void verify(void)
{
	struct vv_store_options opt = { 0 };
	struct vv_verify_report report;
	struct vv_pool *pool = NULL;
	struct vv_store *s = NULL;
	struct vv_lineage lin;

	ok(vv_pool_new(0, &pool));
	ok(vv_store_open(store, &opt, &s));
	ok(vv_catalog_open(s, "L", false, &lin));
	ok(vv_verify_run(&lin, pool, 0, false, NULL, NULL, NULL, &report));
	CHECK_EQ(report.problems, 0);
	vv_store_close(s);
	vv_pool_free(pool);
}

static size_t resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	size_t all = 0, pages = 0;

	CHECK(f && fscanf(f, "%zu %zu", &all, &pages) == 2);
	fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static size_t index_bytes(const varve *v)
{
	const struct vv_index *x = &v->index_cache->index;

	return x->cap * (sizeof(*x->digest) + sizeof(*x->where)) + x->n_slots * sizeof(*x->slot) + x->layers_cap * sizeof(*x->layer);
}

/* All content new in every epoch; all epochs are kept. Returns the largest index; *grown: what the process grew by from the twentieth
 * epoch on. */
static size_t rewrite(const char *options, size_t *grown)
{
	size_t largest = 0, before = 0;
	varve *v;

	place_remove(store);
	v = begin(options);
	for (unsigned n = 1; n <= MANY; n++) {
		CHECK_EQ(lay(v, n, false), SIZE);
		largest = index_bytes(v) > largest ? index_bytes(v) : largest;
		before = n == 20 ? resident() : before;
	}
	*grown = resident() > before ? resident() - before : 0;
	for (unsigned n = 1; n <= MANY; n += 33)
		check_epoch(v, n, n, false);
	ok(varve_close(v));
	return largest;
}

static void test_bounded(void)
{
	size_t small, large, grown_small, grown_large;

	small = rewrite(SMALL "history=64KiB", &grown_small);
	CHECK(small < 4 * CHUNKS * VV_INDEX_COST + (8 << 10));
	large = rewrite(SMALL "history=1TiB", &grown_large);
	CHECK(large > (size_t)MANY * CHUNKS * 32);
	CHECK(grown_small < grown_large / 4 || !MEASURES_MEMORY);
	large = rewrite(SMALL "history=1MiB", &grown_large);
	CHECK(large < (1 << 20) + 2 * CHUNKS * VV_INDEX_COST);
	CHECK(large > small);
}

/* What comes back within the window is found; beyond it, it is stored again, and both are whole. */
static void test_comes_back(void)
{
	varve *v;

	place_remove(store);
	v = begin(SMALL "history=350KiB"); /* ten states; after the eleventh five are left */
	lay(v, 0, false);
	lay(v, 1, false);
	CHECK_EQ(lay(v, 0, false), 0);
	for (unsigned n = 2; n <= 9; n++)
		CHECK_EQ(lay(v, n, false), SIZE);
	CHECK_EQ(lay(v, 0, false), 0);
	CHECK_EQ(v->index_cache->index.n, 10 * CHUNKS);
	lay(v, 10, false); /* the eleventh: the regions hold this one, so it is the oldest that go */
	settle_idle(v);
	CHECK(v->index_cache->index.n <= 5 * CHUNKS + CHUNKS / 2);
	CHECK_EQ(lay(v, 8, false), 0);
	CHECK_EQ(lay(v, 0, false), SIZE);
	CHECK_EQ(lay(v, 0, false), 0);
	check_epoch(v, 1, 0, false);
	check_epoch(v, 3, 0, false);
	check_epoch(v, 14, 8, false);
	check_epoch(v, 15, 0, false);
	ok(varve_close(v));
	verify();
}

/* history=0: between epochs no more is known than what the regions hold, and a quarter of that. */
static void test_none(void)
{
	varve *v;

	place_remove(store);
	v = begin(SMALL "history=0");
	for (unsigned n = 0; n < 9; n++) {
		CHECK_EQ(lay(v, n, false), SIZE);
		CHECK_EQ(lay(v, n, false), 0);
		settle_idle(v);
		CHECK(v->index_cache->index.n >= CHUNKS && v->index_cache->index.n <= CHUNKS + CHUNKS / 4);
	}
	ok(varve_close(v));
	verify();
}

/* Any number of entries that stay: what the regions hold is always among them. */
static void test_held(void)
{
	varve *v;

	place_remove(store);
	v = begin(SMALL);
	for (unsigned n = 0; n < 12; n++) {
		lay(v, n, true);
		ok(vv_index_limit_shrink(v, n % 3 ? 0 : n * 100));
		CHECK(v->index_cache->index.n >= CHUNKS);
		CHECK(v->index_cache->index.n == CHUNKS || n % 3 == 0);
		CHECK_EQ(lay(v, n, true), 0);
	}
	ok(varve_close(v));
	verify();
}

/* Without memory the index stays as it is. */
static void test_no_memory(void)
{
	varve *v;
	size_t n;

	place_remove(store);
	v = begin(SMALL "log=error");
	for (unsigned i = 0; i < 4; i++)
		lay(v, i, true);
	n = v->index_cache->index.n;
	for (long k = 1; k <= 2; k++) {
		vv_mem_fail_at(k);
		CHECK_EQ(vv_index_limit_shrink(v, 0), VV_ENOMEM);
		vv_mem_fail_at(0);
		CHECK_EQ(v->index_cache->index.n, n);
		CHECK_EQ(lay(v, 3, true), 0);
		CHECK_EQ(lay(v, (unsigned)k - 1, true), 0);
	}
	vv_mem_fail_at(3); /* nothing is left to fail but giving memory back */
	ok(vv_index_limit_shrink(v, 0));
	vv_mem_fail_at(0);
	CHECK_EQ(v->index_cache->index.n, CHUNKS);
	CHECK_EQ(lay(v, 1, true), 0);
	CHECK_EQ(lay(v, 0, true), SIZE - FIXED);
	ok(varve_close(v));
	verify();
}

/* Half of the content is as old as the lineage, and everything else is new in every epoch. */
static void write_killed(unsigned first, unsigned last, const char *options)
{
	int status = 0;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		varve *v = begin(options);

		ok(varve_restart(v, VARVE_LATEST));
		for (unsigned n = first; n <= last; n++)
			lay(v, n, true);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void cache_path(char out[PLACE_MAX])
{
	snprintf(out, PLACE_MAX, "%.400s/L/index.r0", store);
}

/* A session that begins, with and without a restart: its first checkpoint is incremental, and it holds no more than it may. */
static void go_on(unsigned newest, const char *options)
{
	varve *v = begin(options);

	CHECK_EQ(varve_restart(v, VARVE_LATEST), 1);
	CHECK_EQ(lay(v, newest, true), 0);
	CHECK(v->index_cache->index.n <= 2 * CHUNKS);
	ok(varve_close(v));
	v = begin(options);
	CHECK_EQ(lay(v, newest, true), 0);
	CHECK(v->index_cache->index.n <= 2 * CHUNKS);
	ok(varve_close(v));
}

static void test_restart(void)
{
	const char *options = SMALL "history=0";
	char cache[PLACE_MAX];

	place_remove(store);
	cache_path(cache);
	write_killed(1, 40, options);
	CHECK(access(cache, F_OK) != 0);
	go_on(40, options);
	write_killed(41, 90, options);
	CHECK(access(cache, F_OK) == 0);
	go_on(90, options);
	place_remove(cache);
	go_on(90, options);
	go_on(90, SMALL "history=1KiB");
	verify();
}

/* On from an old epoch, of which neither the index nor the cache knows anything more; then another session on from that. */
static void test_old_epoch(bool cached)
{
	const char *options = SMALL "history=0";
	unsigned last = cached ? 80 : 30;
	char cache[PLACE_MAX];
	varve *v;

	place_remove(store);
	cache_path(cache);
	v = begin(options);
	for (unsigned n = 1; n <= last; n++)
		lay(v, n, true);
	CHECK_EQ(varve_restart(v, 5), 1);
	CHECK_EQ(lay(v, 5, true), 0);
	CHECK_EQ(varve_restart(v, 9), 1);
	CHECK_EQ(lay(v, 9, true), 0);
	CHECK_EQ(lay(v, 10, true), SIZE - FIXED);
	CHECK_EQ(varve_restart(v, 7), 1);
	CHECK_EQ(lay(v, 7, true), 0);
	ok(varve_close(v));
	CHECK_EQ(access(cache, F_OK) == 0, cached);
	go_on(7, options);
	v = begin(options);
	CHECK_EQ(varve_restart(v, 12), 1);
	CHECK_EQ(lay(v, 12, true), 0);
	for (unsigned n = 1; n <= last; n += 7)
		check_epoch(v, n, n, true);
	ok(varve_close(v));
	verify();
}

/* Every epoch changes one piece of the memory: the state is always in many layers, of some of which only the cache tells. */
static void test_pieces(void)
{
	enum { PIECES = 16, PIECE = SIZE / PIECES, LAST = 64 + PIECES / 2 };
	const char *options = SMALL "history=0";
	varve *v;

	place_remove(store);
	content(region, 0, false);
	v = begin(options);
	CHECK_EQ(lay_now(v), SIZE);
	for (unsigned n = 1; n <= LAST; n++) {
		content(want, n, false);
		memcpy(region + n % PIECES * PIECE, want + n % PIECES * PIECE, PIECE);
		CHECK_EQ(lay_now(v), PIECE);
		CHECK(v->index_cache->index.n <= 2 * CHUNKS);
		CHECK(v->index_cache->index.n_layers <= 2 * PIECES + 1);
		if (n % 10 == 0)
			ok(vv_index_limit_shrink(v, 0));
	}
	ok(varve_close(v));
	memcpy(want, region, SIZE);
	v = begin(options); /* without a restart: everything that is referred to is read, of layers that the cache ties */
	CHECK_EQ(lay_now(v), 0);
	ok(varve_close(v));
	v = begin(options);
	memset(region, 0, SIZE);
	CHECK_EQ(varve_restart(v, VARVE_LATEST), 1);
	CHECK(memcmp(region, want, SIZE) == 0);
	ok(vv_load_parent_run(v, 0));
	ok(vv_index_limit_shrink(v, 0));
	CHECK_EQ(lay_now(v), 0);
	ok(varve_close(v));
	verify();
}

/* A cache that was written with more room is read only as far as there is room now. */
static void test_less_room(void)
{
	varve *v;

	place_remove(store);
	v = begin(SMALL "history=1TiB");
	for (unsigned n = 1; n <= 70; n++)
		lay(v, n, true);
	ok(varve_close(v));
	go_on(70, SMALL "history=0");
	v = begin(SMALL "history=1TiB"); /* the cache says all */
	CHECK_EQ(varve_restart(v, VARVE_LATEST), 1);
	CHECK_EQ(lay(v, 3, true), 0);
	ok(varve_close(v));
	v = begin(SMALL "history=132KiB"); /* 4096 entries, half of them when it begins: half of the newest epochs' */
	CHECK_EQ(varve_restart(v, VARVE_LATEST), 1);
	CHECK_EQ(lay(v, 3, true), 0);
	CHECK(v->index_cache->index.n > 2 * CHUNKS && v->index_cache->index.n <= 3 * CHUNKS);
	CHECK_EQ(lay(v, 69, true), 0);
	CHECK_EQ(lay(v, 20, true), SIZE - FIXED);
	ok(varve_close(v));
	verify();
}

/* Epochs are dropped and their space taken back all the time, and what stays is forgotten besides. */
static void test_gc(void)
{
	varve *v;

	place_remove(store);
	v = begin(SMALL "history=0 keep=3");
	for (unsigned n = 1; n <= 60; n++) {
		CHECK_EQ(lay(v, n, true), n == 1 ? SIZE : SIZE - FIXED);
		CHECK(v->index_cache->index.n <= 4 * CHUNKS);
		if (n % 10 == 0) {
			CHECK_EQ(lay(v, n, true), 0);
			CHECK_EQ(varve_restart(v, varve_epoch(v) - 2), 1);
			CHECK_EQ(lay(v, n - 1, true), 0);
			check_epoch(v, varve_epoch(v), n - 1, true);
		}
	}
	ok(varve_close(v));
	verify();
	go_on(59, SMALL "history=0 keep=3");
}

/* ---- ranks: half of what they hold is the same on all of them, as long as it stays ---- */

enum { RANKS = 3, EPOCHS = 40 };

static void content_of(uint8_t *p, uint32_t rank, unsigned n)
{
	for (unsigned c = 0; c < CHUNKS; c++)
		pages_fill(c < CHUNKS / 2 ? 1 + c : ((n + 1) * RANKS + rank) * CHUNKS + c, p + c * CHUNK, CHUNK);
}

static uint64_t lay_rank(varve *v, uint8_t *p, uint32_t rank, unsigned n)
{
	struct varve_stats st;

	content_of(p, rank, n);
	MUST(settle_checkpoint(v) == 0);
	MUST(varve_stats(v, &st) == 0);
	return st.bytes_new + st.bytes_dup_ranks;
}

static void rank_begin(const struct varve_comm *comm, const char *options, varve **v, uint8_t **p)
{
	MUST(varve_open_comm(comm, store, "L", options, v) == 0);
	*p = varve_alloc(*v, "r", SIZE);
	MUST(*p);
}

static void check_rank(varve *v, uint8_t *p, uint32_t rank, uint64_t epoch, unsigned n)
{
	uint8_t *right = malloc(SIZE);

	memset(p, 0xee, SIZE);
	MUST(varve_restart(v, epoch) == 1);
	content_of(right, rank, n);
	MUST(memcmp(p, right, SIZE) == 0);
	free(right);
}

static void write_rank(const struct varve_comm *comm, void *options)
{
	varve *v = NULL;
	uint8_t *p;

	rank_begin(comm, options, &v, &p);
	for (unsigned n = 1; n <= EPOCHS; n++) {
		MUST(lay_rank(v, p, comm->rank, n) == (n == 1 ? SIZE : SIZE - FIXED));
		settle_idle(v);
		MUST(v->index_cache->index.n <= 2 * CHUNKS);
		MUST(v->ctx.group->owners.n <= 2 * CHUNKS);
		MUST(n < 5 || v->ctx.group->owners.n);
	}
	check_rank(v, p, comm->rank, 7, 7);
	MUST(lay_rank(v, p, comm->rank, 7) == 0);
	MUST(lay_rank(v, p, comm->rank, 8) == SIZE - FIXED);
	MUST(varve_close(v) == 0);
}

static void read_rank(const struct varve_comm *comm, void *options)
{
	varve *v = NULL;
	uint8_t *p;

	rank_begin(comm, options, &v, &p);
	check_rank(v, p, comm->rank, VARVE_LATEST, 8);
	MUST(lay_rank(v, p, comm->rank, 8) == 0);
	for (unsigned n = 1; n <= EPOCHS; n += 13)
		check_rank(v, p, comm->rank, n, n);
	MUST(lay_rank(v, p, comm->rank, EPOCHS) == 0);
	MUST(varve_close(v) == 0);
}

static void test_ranks(const char *options)
{
	char text[200];

	must_begin("ranks, %s", options);
	snprintf(text, sizeof(text), "%s", options);
	place_remove(store);
	threadcomm_run(RANKS, write_rank, text);
	threadcomm_run(RANKS, read_rank, text);
	verify();
}

int main(void)
{
	place_path(store, "store");
	test_ranks(SMALL "history=0");
	test_ranks(SMALL "history=0 keep=0 aggregate=2");
	test_bounded();
	test_comes_back();
	test_none();
	test_held();
	test_no_memory();
	test_restart();
	test_old_epoch(false);
	test_old_epoch(true);
	test_pieces();
	test_less_room();
	test_gc();
	return 0;
}
