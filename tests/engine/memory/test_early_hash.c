// ctest: TIMEOUT 180 COST 21
/* What does not fit the buffer, and holds nothing new, is found out before the call returns: no fence is put around it, and it may be written at once. Whatever of it is new after all, whatever
 * fails, whoever writes: every epoch holds what was there at the call, and says the same of it as one that is stored in the call. */
#include "store/dir/dir.h"
#include "support/gatefs.h"
#include "support/gen.h"
#include "support/must.h"
#include "support/place.h"
#include "support/threadcomm.h"
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>

enum { PAGE = 4096, PAGES = 8192, EVERY = 16, STATES = 3 };

static const size_t LEN = (size_t)PAGES * PAGE;

struct run {
	varve *v;
	char store[PLACE_MAX];
	uint8_t *p, *copy, *read;
	uint64_t seed, news;
};

/* Content of a page: one of a few states that come again and again, or what never was. The thread sanitizer does not see it: a fence orders these writes, which it cannot know. */
__attribute__((noinline, no_sanitize("thread"))) static void set(struct run *u, size_t page, uint64_t state)
{
	volatile uint64_t *word = (uint64_t *)(void *)(u->p + page * PAGE);

	word[page % 512] = (uint64_t)page << 32 | state;
}

static void set_new(struct run *u, size_t page)
{
	set(u, page, STATES + ++u->news);
}

/* false: not with this kernel. */
static bool begin(struct run *u, const char *options)
{
	int rc;

	must_begin("%s", options);
	*u = (struct run){ .seed = 5 };
	gatefs_pass();
	place_path(u->store, "store");
	rc = varve_open(u->store, "run", options, &u->v);
	if (rc == VARVE_ENOTSUP) {
		printf("skipped: %s\n", varve_last_error());
		return false;
	}
	MUST(rc == 0);
	u->p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	u->copy = malloc(LEN);
	u->read = malloc(LEN);
	MUST(u->p != MAP_FAILED && u->copy && u->read && varve_protect(u->v, "p", u->p, LEN) == 0);
	for (size_t i = 0; i < PAGES; i++)
		set(u, i, 0);
	return true;
}

static void end(struct run *u)
{
	gatefs_pass();
	MUST(varve_close(u->v) == 0);
	munmap(u->p, LEN);
	free(u->copy);
	free(u->read);
	place_remove(u->store);
}

static void check(struct run *u, uint64_t epoch)
{
	MUST(varve_restart_region(u->v, epoch, "p", u->read, LEN) == 0);
	MUST(memcmp(u->read, u->copy, LEN) == 0);
}

static void take(struct run *u)
{
	memcpy(u->copy, u->p, LEN);
	MUST(varve_checkpoint(u->v) == 0);
}

static void touch(struct run *u, uint64_t state)
{
	for (size_t i = 0; i < PAGES; i += EVERY)
		set(u, i, state);
}

/* Until all that is written is known. */
static void learn(struct run *u)
{
	for (uint64_t k = 0; k < 8; k++) {
		touch(u, k % STATES);
		take(u);
		MUST(varve_wait(u->v, varve_epoch(u->v)) == 0);
	}
}

/* A session that has learned, and a last state that it knows. */
static bool begin_known(struct run *u, const char *tracker, const char *more)
{
	char options[200];

	snprintf(options, sizeof(options), "tracker=%s buffer=512KiB codec=none log=error %s", tracker, more);
	if (!begin(u, options))
		return false;
	learn(u);
	touch(u, 2);
	return true;
}

/* ---- what may be written at once -------------------------------------------------------------------------------------------- */

/* Nothing can be stored, nor even looked at any more: who met a fence would wait forever. */
static void is_open(const char *tracker)
{
	struct varve_stats st;
	struct run u;
	uint64_t epoch;

	if (!begin_known(&u, tracker, ""))
		return;
	gatefs_hold(GATE_OPEN);
	take(&u);
	epoch = varve_epoch(u.v);
	gatefs_await();
	for (size_t i = 0; i < PAGES; i += EVERY)
		set_new(&u, i);
	MUST(varve_test(u.v, epoch) == 0);
	gatefs_pass();
	MUST(varve_wait(u.v, epoch) == 0 && varve_stats(u.v, &st) == 0);
	MUST(st.epoch == epoch && st.bytes_new == 0 && st.wait.pages == 0 && st.cow.pages == 0);
	check(&u, epoch);
	take(&u); /* and what was written is not lost on the next */
	MUST(varve_wait(u.v, epoch + 1) == 0);
	check(&u, epoch + 1);
	end(&u);
}

struct writer {
	struct run *u;
	size_t page;
	atomic_bool done;
};

static void *write_page(void *arg)
{
	struct writer *w = arg;

	set(w->u, w->page, 0);
	atomic_store(&w->done, true);
	return NULL;
}

/* A page that is new keeps its content for the epoch; whoever writes it waits, or it was copied; the others need not. */
static void one_is_new(const char *tracker)
{
	struct writer w = { .page = (PAGES / 4 * 3) / EVERY * EVERY };
	pthread_t thread;
	struct run u;
	uint64_t epoch;

	if (!begin_known(&u, tracker, "order=address"))
		return;
	set_new(&u, w.page);
	w.u = &u;
	gatefs_hold(GATE_OPEN);
	take(&u);
	epoch = varve_epoch(u.v);
	gatefs_await();
	for (size_t i = PAGES / 2; i < PAGES; i += EVERY) /* in tiles that hold nothing new */
		if (i / 64 != w.page / 64)
			set(&u, i, 1);
	MUST(pthread_create(&thread, NULL, write_page, &w) == 0);
	must_nap(20);
	gatefs_pass();
	MUST(pthread_join(thread, NULL) == 0 && w.done);
	MUST(varve_wait(u.v, epoch) == 0);
	check(&u, epoch);
	end(&u);
}

/* The flush fails: what was found known, and let go, is looked at again. */
static void fails(const char *tracker, enum gate kind)
{
	struct run u;
	uint64_t epoch;

	if (!begin_known(&u, tracker, ""))
		return;
	gatefs_fail(kind, EIO);
	take(&u);
	epoch = varve_epoch(u.v);
	MUST(varve_wait(u.v, epoch) == VARVE_EIO);
	gatefs_pass();
	take(&u); /* nothing was written since */
	MUST(varve_epoch(u.v) == epoch + 1 && varve_wait(u.v, epoch + 1) == 0);
	check(&u, epoch + 1);
	end(&u);
}

/* Of several regions the one is named that cannot be read; when it can be, everything goes on. */
static void unreadable(const char *tracker)
{
	enum { N = 9, TILES = 13 }; /* which are not hashed by whole regions */
	char name[8], words[40];
	size_t part = (size_t)TILES * 64 * PAGE;
	struct run u;

	if (!begin_known(&u, tracker, ""))
		return;
	MUST(varve_unprotect(u.v, "p") == 0);
	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "p%d", i);
		MUST(varve_protect(u.v, name, u.p + (size_t)i * part, part) == 0);
	}
	learn(&u);
	for (int i = 0; i < N; i++) {
		uint8_t *page = u.p + (size_t)i * part;

		touch(&u, 2 - (uint64_t)i % 2);
		MUST(mprotect(page, PAGE, PROT_NONE) == 0);
		snprintf(words, sizeof(words), "region 'p%d'", i);
		MUST(varve_checkpoint(u.v) == VARVE_EINVAL || varve_wait(u.v, varve_epoch(u.v)) == VARVE_EINVAL);
		MUST(strstr(varve_last_error(), words));
		MUST(mprotect(page, PAGE, PROT_READ | PROT_WRITE) == 0);
		take(&u);
		MUST(varve_wait(u.v, varve_epoch(u.v)) == 0);
		MUST(varve_restart_region(u.v, VARVE_LATEST, name, u.read, part) == 0);
		MUST(memcmp(u.read, u.copy + (N - 1) * part, part) == 0);
	}
	end(&u);
}

/* ---- anything, by anybody --------------------------------------------------------------------------------------------------- */

static void write_some(struct run *u, uint64_t *seed, unsigned n, unsigned rare)
{
	for (unsigned k = 0; k < n; k++) {
		size_t page = gen_below(seed, PAGES / 3) * 3;

		if (rare && gen_below(seed, rare) == 0)
			set_new(u, page);
		else
			set(u, page, gen_below(seed, STATES));
	}
}

struct trace {
	struct varve_stats stats[24];
};

/* One thread, and a way of storing; the states are the same whatever it is. */
static void play(const char *options, struct trace *t)
{
	struct run u;

	if (!begin(&u, options))
		return;
	for (int e = 0; e < 24; e++) {
		uint64_t epoch;

		take(&u);
		epoch = varve_epoch(u.v);
		write_some(&u, &u.seed, e % 4 ? 900 : 300, e % 5 == 4 ? 20 : e % 2 ? 400 : 0);
		MUST(varve_wait(u.v, epoch) == 0 && varve_stats(u.v, &t->stats[e]) == 0);
		check(&u, epoch);
	}
	end(&u);
}

/* ---- ranks -------------------------------------------------------------------------------------------------------------------- */

enum { RANKS = 3, RANK_EPOCHS = 16 };

/* Ranks that hold some pages alike, and come to the same states in turn. */
static void write_rank(struct run *u, uint32_t rank, int e)
{
	for (size_t i = 0; i < PAGES; i += EVERY)
		set(u, i, (uint64_t)(e % STATES) + (i % 3 ? 0 : 100 * (rank + 1)));
	if (e % 5 == 4)
		set(u, (size_t)(7 + e) * EVERY, 1000 + (uint64_t)e * RANKS + (e % 2 ? rank : 0));
}

static void run_rank(const struct varve_comm *comm, void *arg)
{
	struct run *all = arg, *u = &all[comm->rank];

	MUST(varve_open_comm(comm, all->store, "run", "tracker=wpasync buffer=512KiB codec=none log=error", &u->v) == 0);
	MUST(varve_protect(u->v, "p", u->p, LEN) == 0);
	for (int e = 0; e < RANK_EPOCHS; e++) {
		write_rank(u, comm->rank, e);
		take(u);
		for (size_t i = 0; i < PAGES; i += EVERY)
			set(u, i, 77);
		MUST(varve_wait(u->v, varve_epoch(u->v)) == 0);
		check(u, varve_epoch(u->v));
	}
	MUST(varve_close(u->v) == 0);
}

static void ranks(void)
{
	struct run u[RANKS];

	if (!begin(&u[0], "tracker=wpasync log=error"))
		return;
	end(&u[0]);
	must_begin("ranks");
	memset(u, 0, sizeof(u));
	place_path(u[0].store, "ranks");
	for (int i = 0; i < RANKS; i++) {
		u[i].p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		u[i].copy = malloc(LEN);
		u[i].read = malloc(LEN);
		MUST(u[i].p != MAP_FAILED && u[i].copy && u[i].read);
		for (size_t k = 0; k < PAGES; k++)
			set(&u[i], k, 0);
	}
	threadcomm_run(RANKS, run_rank, u);
	for (int i = 0; i < RANKS; i++) {
		munmap(u[i].p, LEN);
		free(u[i].copy);
		free(u[i].read);
	}
	place_remove(u[0].store);
}

static void compare(const char *options, const struct trace *want)
{
	struct trace got = { 0 };

	play(options, &got);
	for (int e = 0; e < 24 && got.stats[0].epoch; e++) {
		MUST(got.stats[e].bytes_unchanged == want->stats[e].bytes_unchanged);
		MUST(got.stats[e].bytes_zero == want->stats[e].bytes_zero);
		MUST(got.stats[e].bytes_dup_time == want->stats[e].bytes_dup_time);
		MUST(got.stats[e].bytes_dup_space == want->stats[e].bytes_dup_space);
		MUST(got.stats[e].bytes_new == want->stats[e].bytes_new);
	}
}

struct crowd {
	struct run *u;
	atomic_bool go, end;
	atomic_uint idle;
};

/* Outside of what the thread sanitizer sees: a fence orders these writes, which it cannot know. */
__attribute__((no_sanitize("thread"))) static void *keep_writing(void *arg)
{
	struct crowd *c = arg;
	uint64_t seed = (uintptr_t)&seed;

	while (!atomic_load(&c->end)) {
		while (!atomic_load(&c->go) && !atomic_load(&c->end))
			must_nap(1);
		atomic_fetch_sub(&c->idle, 1);
		while (atomic_load(&c->go)) {
			size_t page = gen_below(&seed, PAGES / EVERY) * EVERY;
			uint64_t state = gen_below(&seed, 2000) ? gen_below(&seed, STATES) : gen_next(&seed) >> 32;
			volatile uint64_t *word = (uint64_t *)(void *)(c->u->p + page * PAGE);

			word[page % 512] = (uint64_t)page << 32 | state;
		}
		atomic_fetch_add(&c->idle, 1);
	}
	return NULL;
}

/* They write from the moment that the call returns. */
static void crowded(const char *options)
{
	enum { THREADS = 3 };
	pthread_t thread[THREADS];
	struct crowd c = { .idle = THREADS };
	struct run u;

	if (!begin(&u, options))
		return;
	learn(&u);
	c.u = &u;
	for (int i = 0; i < THREADS; i++)
		MUST(pthread_create(&thread[i], NULL, keep_writing, &c) == 0);
	for (int e = 0; e < 40; e++) {
		atomic_store(&c.go, false);
		while (atomic_load(&c.idle) < THREADS)
			must_nap(1);
		take(&u);
		atomic_store(&c.go, true);
		must_nap(e % 3 * 2);
		check(&u, varve_epoch(u.v));
	}
	atomic_store(&c.end, true);
	atomic_store(&c.go, false);
	for (int i = 0; i < THREADS; i++)
		MUST(pthread_join(thread[i], NULL) == 0);
	end(&u);
}

int main(void)
{
	static const char *const ways[] = {
		"tracker=wpasync buffer=512KiB codec=none log=error",
		"tracker=auto buffer=512KiB codec=none log=error",
		"tracker=wpasync buffer=512KiB chunk=512 codec=none log=error",
		"tracker=wpasync buffer=512KiB chunk=16KiB codec=none log=error threads=1",
		"tracker=wpasync buffer=0 codec=none log=error order=address",
		"tracker=mprotect buffer=512KiB codec=none log=error",
		"tracker=sigbus buffer=512KiB codec=none log=error",
	};
	struct trace want = { 0 }, fine = { 0 }, coarse = { 0 };

	vv_dir_set_fs(gatefs());
	is_open("wpasync");
	is_open("auto");
	one_is_new("wpasync");
	for (int kind = 0; kind < GATE_KINDS; kind++)
		fails("wpasync", (enum gate)kind);
	unreadable("wpasync");
	ranks();
	play("mode=sync tracker=digest codec=none log=error", &want);
	play("mode=sync tracker=digest chunk=512 codec=none log=error", &fine);
	play("mode=sync tracker=digest chunk=16KiB codec=none log=error", &coarse);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		compare(ways[i], strstr(ways[i], "chunk=512") ? &fine : strstr(ways[i], "chunk=16") ? &coarse : &want);
		crowded(ways[i]);
	}
	crowded("tracker=wpasync buffer=512KiB dedup=no codec=none log=error");
	return 0;
}
