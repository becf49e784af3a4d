// ctest: TIMEOUT 300 PROCESSORS 2 COST 15
/* A session that has restarted learns what its regions held while the program writes them already: what it then stores is what one stores that knew all of it
 * before the program went on. Whatever becomes of the memory, or of the session, meanwhile. */
#include "base/mem.h"
#include "engine/grains/grain_sets.h"
#include "engine/lineage/run_table.h"
#include "engine/memory/tiles.h"
#include "support/gen.h"
#include "support/must.h"
#include "support/place.h"
#include "support/writers.h"
#include "track/scan.h"
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { PAGE = 4096, REGIONS = 4, EPOCHS = 5 };

/* Large ones that are watched, begun inside a page, with a rest that is no grain; and a small one. */
static const size_t lens[REGIONS] = { 4 << 20, (2 << 20) + 12345, (1 << 20) + 3, 70000 };

static const char *const names[REGIONS] = { "long", "odd", "short", "small" };

struct job {
	char store[PLACE_MAX];
	const char *options;
	struct area area[REGIONS];
	uint8_t *map, *gone; /* GONE bytes that are not there any more, and may be somebody else's by now; NULL: none */
	varve *v;
};

enum { GONE = 3 << 20 };

static size_t whole(void)
{
	size_t n = 0;

	for (int r = 0; r < REGIONS; r++)
		n += lens[r] + 3 * PAGE;
	return n;
}

static void open_job(struct job *j, const char *store, const char *options)
{
	uint8_t *at = j->map = mmap(NULL, whole(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(at != MAP_FAILED);
	j->gone = NULL;
	place_path(j->store, store);
	j->options = options;
	MUST(varve_open(j->store, "run", options, &j->v) == 0);
	for (int r = 0; r < REGIONS; r++) {
		j->area[r] = (struct area){ at + 16 * (size_t)r, lens[r] };
		MUST(varve_protect(j->v, names[r], j->area[r].p, lens[r]) == 0);
		at += (lens[r] + 2 * PAGE) / PAGE * PAGE;
	}
}

static void close_job(struct job *j)
{
	uint8_t *from = j->gone ? j->gone + GONE : j->map;

	MUST(varve_close(j->v) == 0);
	munmap(from, whole() - (size_t)(from - j->map));
	if (j->gone > j->map)
		munmap(j->map, (size_t)(j->gone - j->map));
}

static void fill(struct job *j, uint64_t *seed)
{
	for (int r = 0; r < REGIONS; r++)
		for (size_t i = 0; i + 8 <= lens[r]; i += 8) {
			uint64_t x = i % 65536 < 6000 ? 0 : i % 65536 < 20000 ? i % 4096 : gen_next(seed);

			memcpy(j->area[r].p + i, &x, 8);
		}
}

/* A series of epochs. */
static void make(const char *store, const char *options)
{
	struct job j;
	uint64_t seed = 5;

	place_path(j.store, store);
	place_remove(j.store);
	open_job(&j, store, options);
	fill(&j, &seed);
	for (int e = 0; e < EPOCHS; e++) {
		for (int k = 0; k < 300; k++)
			writers_write(&seed, j.area, REGIONS);
		MUST(varve_checkpoint(j.v) == 0);
	}
	close_job(&j);
}

static void copy_store(const char *from, const char *to)
{
	char a[PLACE_MAX], b[PLACE_MAX], command[2 * PLACE_MAX + 16];

	place_path(a, from);
	place_path(b, to);
	place_remove(b);
	snprintf(command, sizeof(command), "cp -a '%s' '%s'", a, b);
	MUST(system(command) == 0);
}

/* A region that is watched is learned behind the return, and no other. By itself a session ceases to watch what is written all over. */
static void check_late(const struct job *j)
{
	const struct varve *v = j->v;
	bool may = v->tiles->protection.scan && !strstr(j->options, "method=full");

	if (v->tracking.automatic && v->tip.highest > EPOCHS)
		return;
	for (int r = 0; r < REGIONS; r++) {
		const struct vv_fine *f = v->region[r]->fine;

		MUST((f->unhashed < f->unhashed_end) == (may && lens[r] > 1 << 20));
	}
}

/* ---- the same layers --------------------------------------------------------------------------------------------------------------- */

static void load_table(const char *store, uint64_t epoch, struct vv_run_table *t)
{
	struct vv_store_options opt = { 0 };
	struct vv_store *s = NULL;
	struct vv_lineage lin = { 0 };

	MUST(vv_store_open(store, &opt, &s) == 0 && vv_catalog_open(s, "run", false, &lin) == 0);
	MUST(vv_run_table_load(&lin, epoch, 0, NULL, t) == 0);
	vv_store_close(s);
}

static void compare_tables(const struct job *a, const struct job *b)
{
	struct vv_run_table x = { 0 }, y = { 0 };

	load_table(a->store, varve_epoch(a->v), &x);
	load_table(b->store, varve_epoch(b->v), &y);
	MUST(x.epoch == y.epoch && x.n == y.n && x.depth == y.depth);
	for (size_t i = 0; i < x.n; i++) {
		MUST(strcmp(x.region[i].name, y.region[i].name) == 0 && x.region[i].runs.n == y.region[i].runs.n);
		MUST(memcmp(x.region[i].runs.v, y.region[i].runs.v, x.region[i].runs.n * sizeof(struct vv_run)) == 0);
	}
	vv_run_table_fini(&x);
	vv_run_table_fini(&y);
}

/* What b stores of the same memory, without having been written meanwhile. */
static void compare(struct job *a, struct job *b)
{
	struct varve_stats x, y;

	MUST(varve_checkpoint(a->v) == 0);
	for (int r = 0; r < REGIONS; r++)
		memcpy(b->area[r].p, a->area[r].p, lens[r]);
	MUST(varve_checkpoint(b->v) == 0);
	MUST(varve_stats(a->v, &x) == 0 && varve_stats(b->v, &y) == 0);
	MUST(x.bytes_dirty == y.bytes_dirty && x.bytes_zero == y.bytes_zero && x.bytes_unchanged == y.bytes_unchanged);
	MUST(x.bytes_dup_time == y.bytes_dup_time && x.bytes_dup_space == y.bytes_dup_space && x.bytes_new == y.bytes_new);
	compare_tables(a, b);
	for (int r = 0; r < REGIONS; r++) {
		uint8_t *back = malloc(lens[r]);

		MUST(varve_restart_region(a->v, varve_epoch(a->v), names[r], back, lens[r]) == 0);
		MUST(memcmp(back, a->area[r].p, lens[r]) == 0);
		free(back);
	}
}

/* Written by several threads from the return on, for a while. */
static void restart_written(struct job *j, uint64_t epoch, uint64_t seed, long ms)
{
	struct writers *w = writers_new(3, seed, j->area, REGIONS);

	MUST(varve_restart(j->v, epoch) == 1);
	writers_go(w);
	check_late(j);
	must_nap(ms);
	writers_pause(w);
	writers_free(w);
}

static bool can_scan(void)
{
	struct vv_scan *s = NULL;
	bool can = vv_scan_open(&s) == 0;

	vv_scan_close(s);
	return can;
}

static void same(const char *options, const char *tracker, uint64_t seed)
{
	struct job a, b;
	char before[200], after[200];

	snprintf(before, sizeof(before), "%s tracker=digest", options);
	snprintf(after, sizeof(after), "%s tracker=%s", options, can_scan() ? tracker : "auto");
	must_begin("made: %s", before);
	make("a", before);
	copy_store("a", "b");
	open_job(&a, "a", after);
	open_job(&b, "b", before);
	for (int round = 0; round < 3; round++) {
		uint64_t epoch = round == 1 ? EPOCHS : EPOCHS - 2; /* the second time in the same session, and the third */

		must_begin("same: %s, seed %" PRIu64 ", round %d", after, seed, round);
		restart_written(&a, epoch, seed + (uint64_t)round, (long)gen_below(&seed, 12));
		MUST(varve_restart(b.v, epoch) == 1);
		compare(&a, &b);
		for (int k = 0; k < 20; k++)
			writers_write(&seed, a.area, REGIONS);
		compare(&a, &b);
	}
	close_job(&a);
	close_job(&b);
}

/* ---- what may become of it meanwhile: by calls and writes that the thread sanitizer does not see (support/writers.h) ---------------- */

static void check_stored(struct job *j, int except)
{
	for (int r = 0; r < REGIONS; r++) {
		uint8_t *back = malloc(lens[r]);

		if (r != except) {
			MUST(varve_restart_region(j->v, varve_epoch(j->v), names[r], back, lens[r]) == 0);
			MUST(memcmp(back, j->area[r].p, lens[r]) == 0);
		}
		free(back);
	}
}

static uint8_t *first_page(const struct job *j, int r)
{
	return (uint8_t *)(((uintptr_t)j->area[r].p + PAGE - 1) / PAGE * PAGE);
}

/* The kernel gives zeros for what was there. */
static void drop_pages(struct job *j)
{
	MUST(madvise(first_page(j, 0) + (1 << 20), 2 << 20, MADV_DONTNEED) == 0);
}

static void map_anew(struct job *j)
{
	uint8_t *p = first_page(j, 0) + (2 << 20);

	MUST((uint8_t *)syscall(SYS_mmap, p, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p);
	writers_fill(p + 100, 1, 1);
}

static void take_away(struct job *j)
{
	j->gone = first_page(j, 0);
	MUST(syscall(SYS_munmap, j->gone, GONE) == 0);
}

static void let_go(struct job *j)
{
	MUST(varve_unprotect(j->v, names[0]) == 0);
	take_away(j);
}

static void unmap_first(struct job *j)
{
	take_away(j);
	MUST(varve_unprotect(j->v, names[0]) == 0);
}

static void declare_anew(struct job *j)
{
	MUST(varve_protect(j->v, names[1], j->area[1].p + 48, lens[1] - 4800) == 0);
	MUST(varve_protect(j->v, names[1], j->area[1].p, lens[1]) == 0);
	MUST(varve_refine(j->v, names[2], "list", 256) == 0);
	MUST(varve_untrack(j->v, names[0]) == 0);
}

static void restart_again(struct job *j)
{
	writers_fill(j->area[0].p, 7, lens[0] / 2);
	MUST(varve_restart(j->v, 2) == 1);
	MUST(varve_restart(j->v, 99) < 0);
	writers_fill(j->area[0].p + 5000, 9, lens[0] / 3);
}

static void fork_off(struct job *j)
{
	pid_t child = fork();
	int status;

	MUST(child >= 0);
	if (child == 0) {
		memset(j->area[0].p, 3, lens[0]);
		_exit(varve_checkpoint(j->v) < 0 && varve_close(j->v) == 0 ? 0 : 1);
	}
	writers_fill(j->area[0].p + 3000000, 5, 1000);
	MUST(waitpid(child, &status, 0) == child && status == 0);
}

static void close_at_once(struct job *j)
{
	MUST(varve_close(j->v) == 0);
	MUST(varve_open(j->store, "run", j->options, &j->v) == 0);
	for (int r = 0; r < REGIONS; r++)
		MUST(varve_protect(j->v, names[r], j->area[r].p, lens[r]) == 0);
}

/* What is read once more cannot be read: it is stored anew. */
static void hide_store(struct job *j)
{
	char hidden[PLACE_MAX];
	struct varve_stats st;

	writers_fill(j->area[0].p + 77777, 1, 1 << 20);
	place_path(hidden, "hidden");
	MUST(rename(j->store, hidden) == 0);
	varve_stats(j->v, &st); /* waits */
	MUST(rename(hidden, j->store) == 0);
}

static void meanwhile(const char *what, void (*happen)(struct job *j), const char *options, bool first_is_gone)
{
	struct job j;

	must_begin("%s: %s", what, options);
	copy_store("made", "c");
	open_job(&j, "c", options);
	MUST(varve_restart(j.v, VARVE_LATEST) == 1);
	happen(&j);
	for (int k = 0; k < 2; k++) {
		writers_fill(j.area[1].p + 1234567, (uint8_t)k, 300);
		MUST(varve_checkpoint(j.v) == 0);
		check_stored(&j, first_is_gone ? 0 : -1);
	}
	close_job(&j);
}

/* Any allocation fails, before the return or behind it: what was read counts, and what is stored then is right. */
static void starved(const char *options)
{
	uint64_t seed = 9;
	long asked = 1;

	for (long n = 1; n <= asked; n += 1 + (long)gen_below(&seed, 8)) {
		struct varve_stats st;
		struct job j;
		int rc;

		must_begin("allocation %ld: %s", n, options);
		copy_store("made", "c");
		open_job(&j, "c", options);
		vv_mem_fail_at(n);
		rc = varve_restart(j.v, VARVE_LATEST);
		writers_fill(j.area[1].p + 7777, (uint8_t)n, 100000);
		varve_stats(j.v, &st); /* waits */
		asked = vv_mem_asked();
		vv_mem_fail_at(0);
		MUST(rc == 1 || rc == VARVE_ENOMEM);
		MUST(varve_checkpoint(j.v) == 0);
		check_stored(&j, -1);
		close_job(&j);
	}
}

/* What a session in grains needs is in the regions: for its sake nobody reads every layer, where there is a cache of what they hold. */
static void from_cache(void)
{
	enum { LEN = 200000, MANY = 70 };
	static uint8_t p[LEN];
	char store[PLACE_MAX];
	uint64_t seed = 4;
	varve *v = NULL;

	must_begin("from the cache");
	place_path(store, "many");
	for (int session = 0; session < 2; session++) {
		MUST(varve_open(store, "run", "mode=sync grain=128", &v) == 0);
		MUST(varve_protect(v, "p", p, LEN) == 0);
		MUST(varve_restart(v, VARVE_LATEST) == session);
		for (int e = session ? MANY : 0; e <= MANY; e++) {
			for (int k = 0; k < 50; k++)
				writers_write(&seed, &(struct area){ p, LEN }, 1);
			MUST(varve_checkpoint(v) == 0);
		}
		MUST(v->index_cache->cached && v->index_cache->cached < MANY); /* one that lacks something is written anew */
		MUST(varve_close(v) == 0);
	}
	place_remove(store);
}

/* ---- kill -9 -------------------------------------------------------------------------------------------------------------------------- */

/* The state of an epoch follows from that of the one before it, and its number. */
static void play(struct job *j, uint64_t before)
{
	uint64_t seed = before * 1000 + 1;

	writers_fill(j->area[0].p + before % 40 * 100000, (uint8_t)before, 1000);
	for (int k = 0; k < 200; k++)
		writers_write(&seed, j->area, REGIONS);
}

static void live(const char *options)
{
	struct job j;

	open_job(&j, "c", options);
	MUST(varve_restart(j.v, VARVE_LATEST) == 1);
	for (;;) {
		play(&j, varve_epoch(j.v));
		MUST(varve_checkpoint(j.v) == 0);
		MUST(varve_wait(j.v, varve_epoch(j.v)) == 0);
		MUST(varve_restart(j.v, VARVE_LATEST) == 1);
	}
}

/* Numbers of epochs that a killed process had begun are not used again. */
static void replay(struct job *must, const struct job *is)
{
	struct varve_region_info info;
	uint64_t before = EPOCHS;

	for (uint64_t e = EPOCHS + 1; e <= varve_epoch(is->v); e++) {
		if (varve_region(is->v, e, names[0], &info) < 0)
			continue;
		play(must, before);
		before = e;
	}
	MUST(before == varve_epoch(is->v));
}

static void killed(const char *options)
{
	struct job is, must;
	uint64_t seed = 3;

	must_begin("killed: %s", options);
	copy_store("made", "c");
	copy_store("made", "d");
	for (int k = 0; k < 8; k++) {
		pid_t child = fork();
		int status;

		MUST(child >= 0);
		if (child == 0)
			live(options);
		must_nap(20 + (long)gen_below(&seed, 150));
		MUST(kill(child, SIGKILL) == 0);
		MUST(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
	open_job(&is, "c", options);
	open_job(&must, "d", options);
	MUST(varve_restart(is.v, VARVE_LATEST) == 1);
	MUST(varve_restart(must.v, VARVE_LATEST) == 1);
	replay(&must, &is);
	for (int r = 0; r < REGIONS; r++)
		MUST(memcmp(is.area[r].p, must.area[r].p, lens[r]) == 0);
	close_job(&is);
	close_job(&must);
}

int main(void)
{
	static const char *const ways[] = {
		"mode=sync grain=128 log=error",
		"mode=async grain=64 digest=sha256 log=error",
		"mode=sync grain=32 method=tree threads=1 log=error",
		"mode=async grain=1024 method=list digest=sha256 log=error",
		"mode=sync grain=4096 digest=sha256 verify=bytes log=error",
		"mode=sync grain=256 method=basic log=error",
		"mode=async grain=128 method=full log=error",
		"mode=async grain=128 history=1KiB digest=sha256 log=error",
	};
	static const char *const some[] = { "mode=sync grain=64 digest=sha256 log=error", "mode=async grain=128 log=error" };

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		same(ways[i], i ? "wpasync" : "auto", i + 1);
	make("made", some[0]);
	meanwhile("pages are dropped", drop_pages, some[0], false);
	meanwhile("pages are mapped anew", map_anew, some[0], false);
	meanwhile("a region is given up", let_go, some[0], true);
	meanwhile("memory goes", unmap_first, some[0], true);
	meanwhile("regions are declared anew", declare_anew, some[0], false);
	meanwhile("restarted again", restart_again, some[0], false);
	meanwhile("a child of fork", fork_off, some[0], false);
	meanwhile("closed at once", close_at_once, some[0], false);
	meanwhile("the store cannot be read", hide_store, some[0], false);
	starved("mode=sync grain=64 digest=sha256 log=error");
	from_cache();
	killed(some[0]);
	make("made", some[1]);
	meanwhile("a child of fork", fork_off, some[1], false);
	killed(some[1]);
	return 0;
}
