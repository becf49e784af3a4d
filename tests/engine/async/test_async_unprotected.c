// ctest: TIMEOUT 240 PROCESSORS 2 COST 25
/* Threads that do not stop for a checkpoint, against the rules, in memory where no fence can hold them: an epoch that counts can be restored, whatever they do.
 * Of what they write while it is taken each word is in it or is not; and what nobody wrote meanwhile is right, although the same content comes and goes in the memory
 * that is written: nothing may refer to what was not stored. */
#include "base/pool.h"
#include "engine/lineage/catalog.h"
#include "engine/upkeep/verify.h"
#include "support/gen.h"
#include "support/must.h"
#include "support/place.h"
#include "support/threadcomm.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

enum { PAGE = 4096, WORDS = PAGE / 8, PAGES = 1024, STILL = 128, KINDS = 4, EPOCHS = 5, THREADS = 2, RANKS = 2, LATE = 3 };

enum kind { UNTRACKED, SHARED, PROTECTED, PLAIN };

struct work {
	const char *options;
	enum kind kind;
	int ranks;     /* 0: alone */
	bool same;     /* the ranks hold the same, and the rest of the memory does */
};

struct memory {
	uint64_t *busy, *still;
	uint32_t rank;
	bool apart; /* no page has what another has */
	_Atomic uint64_t stamp;
	atomic_bool stop;
	atomic_ulong writes;
	struct writer {
		pthread_t thread;
		struct memory *m;
		uint64_t seed;
	} writer[THREADS];
};

static char store[PLACE_MAX];

/* What a page of one of the few contents of an epoch holds in all its words. */
static uint64_t content(const struct memory *m, uint64_t stamp, uint64_t k)
{
	return 0xc0de000000000000u | (uint64_t)m->rank << 40 | stamp << 8 | k;
}

static bool is_legal(const struct memory *m, uint64_t word, uint64_t stamp)
{
	uint64_t its = word >> 8 & 0xffff;

	if (word >> 56 == 0xa5)
		return (word >> 40 & 0xff) == m->rank;
	return word == content(m, its, word & 0xff) && (word & 0xff) < KINDS && its <= stamp + 1;
}

/* Every second page has one of a few contents, the others never the same twice. */
__attribute__((no_sanitize("thread"))) static void write_page(struct memory *m, size_t page, uint64_t *seed)
{
	volatile uint64_t *p = m->busy + page * WORDS;
	uint64_t same = content(m, atomic_load(&m->stamp), gen_below(seed, KINDS));

	for (size_t i = 0; i < WORDS; i++)
		p[i] = page % 2 || m->apart ? 0xa500000000000000u | (uint64_t)m->rank << 40 | (gen_next(seed) & 0xffffffffff) : same;
}

static void *write_on(void *arg)
{
	struct writer *w = arg;

	while (!atomic_load(&w->m->stop)) {
		write_page(w->m, gen_below(&w->seed, PAGES), &w->seed);
		atomic_fetch_add(&w->m->writes, 1);
	}
	return NULL;
}

static void start(struct memory *m, const struct work *w, uint32_t rank)
{
	int flags = w->kind == SHARED ? MAP_SHARED : MAP_PRIVATE;
	uint64_t seed = rank + 1;

	*m = (struct memory){ .rank = w->same ? 0 : rank, .apart = w->ranks && !w->same, .stamp = 1 };
	m->busy = mmap(NULL, (PAGES + 1) * PAGE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
	m->still = mmap(NULL, STILL * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(m->busy != MAP_FAILED && m->still != MAP_FAILED);
	for (size_t i = 0; i < PAGES; i++)
		write_page(m, i, &seed);
	m->busy[PAGES * WORDS] = content(m, 1, 0);
	for (size_t i = 1; i < WORDS; i++)
		m->busy[PAGES * WORDS + i] = content(m, 1, 0);
	if (w->kind == PROTECTED)
		MUST(mprotect(m->busy + PAGES * WORDS, PAGE, PROT_READ) == 0);
	for (int i = 0; i < THREADS; i++) {
		m->writer[i] = (struct writer){ .m = m, .seed = rank * THREADS + (uint64_t)i + 100 };
		MUST(pthread_create(&m->writer[i].thread, NULL, write_on, &m->writer[i]) == 0);
	}
}

static void finish(struct memory *m)
{
	atomic_store(&m->stop, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(m->writer[i].thread, NULL);
	munmap(m->busy, (PAGES + 1) * PAGE);
	munmap(m->still, STILL * PAGE);
}

/* What is not written meanwhile has contents that the rest has, too, now or soon. */
static void set_still(struct memory *m, uint64_t *to, uint64_t stamp)
{
	for (size_t i = 0; i < STILL * WORDS; i++)
		to[i] = content(m, stamp - (i / WORDS % 3 && stamp > 1), i / WORDS % KINDS);
}

static void check_epoch(varve *v, struct memory *m, uint64_t epoch, uint64_t stamp)
{
	uint64_t *p = malloc((PAGES + 1) * PAGE), *q = malloc(STILL * PAGE), *want = malloc(STILL * PAGE);

	MUST(p && q && want);
	MUST(varve_restart_region(v, epoch, "busy", p, (PAGES + 1) * PAGE) == 0);
	MUST(varve_restart_region(v, epoch, "still", q, STILL * PAGE) == 0);
	set_still(m, want, stamp);
	MUST(memcmp(q, want, STILL * PAGE) == 0);
	for (size_t i = 0; i < (PAGES + 1) * WORDS; i++)
		MUST(is_legal(m, p[i], stamp));
	free(p);
	free(q);
	free(want);
}

/* What other ranks rely on may have been overwritten, and cannot be had any more. */
static bool may_fail(const struct work *w)
{
	return w->ranks && w->same && strstr(varve_last_error(), "written by another thread");
}

static varve *open_session(const struct work *w, const struct varve_comm *comm)
{
	varve *v = NULL;

	if (comm)
		MUST(varve_open_comm(comm, store, "run", w->options, &v) == 0);
	else
		MUST(varve_open(store, "run", w->options, &v) == 0);
	return v;
}

/* A session that goes on where the last one ended, and knows of its content from the store. */
static void lay_down(const struct work *w, const struct varve_comm *comm, struct memory *m, uint64_t *stamp, uint64_t *epoch, uint64_t n)
{
	varve *v = open_session(w, comm);

	MUST(varve_protect(v, "busy", m->busy, (PAGES + 1) * PAGE) == 0 && varve_protect(v, "still", m->still, STILL * PAGE) == 0);
	if (w->kind == UNTRACKED)
		MUST(varve_untrack(v, "busy") == 0);
	for (uint64_t e = 0; e < n; e++) {
		unsigned long before = atomic_load(&m->writes);
		int rc;

		set_still(m, m->still, ++*stamp);
		atomic_store(&m->stamp, *stamp);
		while (atomic_load(&m->writes) - before < PAGES / 4)
			sched_yield();
		rc = varve_checkpoint(v);
		if (rc == 0)
			rc = varve_wait(v, varve_epoch(v));
		MUST(rc == 0 || may_fail(w));
		epoch[*stamp] = rc == 0 ? varve_epoch(v) : 0;
	}
	MUST(varve_close(v) == 0 || may_fail(w));
}

static void print(void *arg, const char *problem)
{
	(void)arg;
	fprintf(stderr, "verify: %s\n", problem);
}

static void verify_all(void)
{
	struct vv_store_options opt = { 0 };
	struct vv_verify_report report;
	struct vv_lineage lin;
	struct vv_store *s = NULL;
	struct vv_pool *pool = NULL;

	MUST(vv_store_open(store, &opt, &s) == 0 && vv_catalog_open(s, "run", false, &lin) == 0 && vv_pool_new(2, &pool) == 0);
	MUST(vv_verify_run(&lin, pool, 0, true, print, NULL, NULL, &report) == 0);
	MUST(report.problems == 0);
	vv_pool_free(pool);
	vv_store_close(s);
}

static void one(const struct varve_comm *comm, void *arg)
{
	const struct work *w = arg;
	uint64_t epoch[EPOCHS + LATE + 2] = { 0 }, stamp = 1, counted = 0;
	struct memory m;
	varve *v;

	start(&m, w, comm ? comm->rank : 0);
	lay_down(w, comm, &m, &stamp, epoch, EPOCHS);
	lay_down(w, comm, &m, &stamp, epoch, LATE);
	v = open_session(w, comm);
	for (uint64_t e = 2; e <= stamp; e++) {
		if (epoch[e])
			check_epoch(v, &m, epoch[e], e);
		counted += epoch[e] != 0;
	}
	MUST(varve_close(v) == 0);
	MUST(counted == EPOCHS + LATE || (w->ranks && w->same));
	finish(&m);
}

/* Has the build all that the case wants? */
static bool is_there(const struct work *w)
{
	varve *v = NULL;
	int rc = w->ranks ? 0 : varve_open("mem:probe", "run", w->options, &v);

	if (v)
		MUST(varve_close(v) == 0);
	MUST(rc == 0 || rc == VARVE_ENOTSUP);
	return rc == 0;
}

/* With a number only that one of the cases. */
int main(int argc, char **argv)
{
	static const struct work works[] = {
		{ "codec=none buffer=256KiB", UNTRACKED, 0, false },
		{ "codec=none buffer=256KiB tracker=mprotect", UNTRACKED, 0, false },
		{ "codec=none buffer=256KiB block=4096", UNTRACKED, 0, false },
		{ "codec=zstd buffer=256KiB", SHARED, 0, false },
		{ "codec=auto buffer=256KiB", PROTECTED, 0, false },
		{ "codec=none buffer=256KiB dedup=no", SHARED, 0, false },
		{ "mode=sync codec=none", PLAIN, 0, false },
		{ "mode=sync codec=zstd threads=1", PLAIN, 0, false },
		{ "mode=sync codec=none verify=bytes digest=sha256 chunk=1024", PLAIN, 0, false },
		{ "mode=sync codec=none chunk=16384", PLAIN, 0, false },
		{ "codec=none grain=128", PLAIN, 0, false },
		{ "codec=none grain=64 method=tree", PLAIN, 0, false },
		{ "codec=none grain=512 method=list verify=bytes", PLAIN, 0, false },
		{ "codec=none grain=128 method=run verify=bytes", PLAIN, 0, false },
		{ "mode=sync codec=zstd grain=256 method=basic", PLAIN, 0, false },
		{ "codec=none grain=128 method=full", PLAIN, 0, false },
		{ "mode=sync codec=none timeout=60", PLAIN, RANKS, false },
		{ "mode=sync codec=none timeout=60", PLAIN, RANKS, true },
		{ "mode=sync codec=none timeout=60 collective=topk", PLAIN, RANKS, false },
		{ "mode=sync codec=none timeout=60 collective=topk", PLAIN, RANKS, true },
		{ "codec=none buffer=256KiB timeout=60 aggregate=2", UNTRACKED, RANKS, false },
		{ "codec=none timeout=60 grain=128", PLAIN, RANKS, true },
	};

	place_path(store, "store");
	setenv("VARVE_LOG", "error", 1);
	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++) {
		const struct work *w = &works[i];

		if (argc > 1 && strtoul(argv[1], NULL, 10) != i)
			continue;
		must_begin("%s; kind %d, ranks %d%s", w->options, (int)w->kind, w->ranks, w->same ? ", the same" : "");
		if (!is_there(w))
			continue;
		if (w->ranks)
			threadcomm_run((uint32_t)w->ranks, one, (void *)(uintptr_t)w);
		else
			one(NULL, (void *)(uintptr_t)w);
		verify_all();
		place_remove(store);
	}
	return 0;
}
