// ctest: COST 2
// Written pages as the kernel tells them, against a record of what was written.
#include "track/scan.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/pool.h"
#include "vv_test.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGES = 1 << 15, THREADS = 4 };

static size_t page;
static struct vv_scan *scan;

struct map {
	char *p;
	size_t n;
	bool seen[PAGES];
	size_t total, stretches;
	uintptr_t last;
};

static void note(void *arg, uintptr_t lo, uintptr_t hi)
{
	struct map *m = arg;

	CHECK(lo % page == 0 && hi % page == 0 && lo < hi && lo >= m->last);
	CHECK(lo >= (uintptr_t)m->p && hi <= (uintptr_t)m->p + m->n * page);
	m->last = hi;
	m->stretches++;
	for (uintptr_t a = lo; a < hi; a += page) {
		m->seen[(a - (uintptr_t)m->p) / page] = true;
		m->total++;
	}
}

static void fresh(struct map *m)
{
	memset(m->seen, 0, sizeof(m->seen));
	m->total = m->stretches = 0;
	m->last = 0;
}

static int collect(struct map *m)
{
	fresh(m);
	return vv_scan_collect(scan, (uintptr_t)m->p, (uintptr_t)m->p + m->n * page, note, m);
}

static int look(struct map *m)
{
	fresh(m);
	return vv_scan_peek(scan, (uintptr_t)m->p, (uintptr_t)m->p + m->n * page, note, m);
}

static struct map *watch(size_t n, int advice, bool touched)
{
	struct map *m = calloc(1, sizeof(*m));

	m->n = n;
	m->p = mmap(NULL, n * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(m->p != MAP_FAILED);
	madvise(m->p, n * page, advice);
	if (touched)
		memset(m->p, 1, n * page);
	CHECK_EQ(vv_scan_attach(scan, NULL, (uintptr_t)m->p, (uintptr_t)m->p + n * page), 0);
	return m;
}

static void unwatch(struct map *m)
{
	vv_scan_detach(scan, (uintptr_t)m->p, (uintptr_t)m->p + m->n * page);
	munmap(m->p, m->n * page);
	free(m);
}

// Random pages at several densities; more stretches than one call of the kernel gives.
static void test_exact(int advice, bool touched)
{
	static const double share[] = {0, 0.0001, 0.005, 0.019, 0.021, 0.05, 0.5, 1, 0};
	struct map *m = watch(PAGES, advice, touched);
	bool *written = malloc(PAGES);

	srand(7);
	for (size_t k = 0; k < sizeof(share) / sizeof(share[0]); k++) {
		size_t n = 0;

		memset(written, 0, PAGES);
		for (size_t i = 0; i < PAGES; i++)
			if (rand() < share[k] * RAND_MAX || share[k] == 1) {
				written[i] = true;
				m->p[i * page + (size_t)rand() % page] = (char)k;
				n++;
			}
		CHECK_EQ(look(m), 0);
		CHECK_EQ(m->total, n);
		CHECK(memcmp(m->seen, written, PAGES) == 0);
		CHECK_EQ(collect(m), 0);
		CHECK_EQ(m->total, n);
		CHECK(memcmp(m->seen, written, PAGES) == 0);
		if (share[k] == 0.5)
			CHECK(m->stretches > 4096);
		CHECK_EQ(look(m), 0);
		CHECK_EQ(m->total, 0);
	}
	free(written);
	unwatch(m);
}

static void test_events(void)
{
	struct map *m = watch(64, MADV_NOHUGEPAGE, true);
	int zero = open("/dev/zero", O_RDONLY), status;
	pid_t child;

	CHECK_EQ(read(zero, m->p + 3 * page, 2 * page), 2 * page); // the kernel writes
	close(zero);
	child = fork();
	if (child == 0) {
		m->p[7 * page] = 2;
		CHECK_EQ(collect(m), VV_EMISMATCH); // not the child's
		CHECK_EQ(vv_scan_attach(scan, NULL, (uintptr_t)m->p, (uintptr_t)m->p + page), VV_EINVAL);
		vv_scan_detach(scan, (uintptr_t)m->p, (uintptr_t)m->p + 64 * page); // nor may it undo the parent's
		vv_scan_close(scan);
		_exit(0);
	}
	m->p[9 * page] = 2;
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK_EQ(collect(m), 0);
	CHECK(m->total == 3 && m->seen[3] && m->seen[4] && m->seen[9]);

	madvise(m->p + 20 * page, 4 * page, MADV_DONTNEED);
	CHECK_EQ(collect(m), 0);
	CHECK(m->total == 4 && m->seen[20] && m->seen[23]);
	CHECK_EQ(*(volatile char *)(m->p + 21 * page), 0); // to read a hole is no write
	CHECK_EQ(collect(m), 0);
	CHECK_EQ(m->total, 0);
	m->p[22 * page] = 1;
	CHECK_EQ(collect(m), 0);
	CHECK(m->total == 1 && m->seen[22]);

	CHECK_EQ(mprotect(m->p, 64 * page, PROT_READ), 0); // another tracker on top
	CHECK_EQ(mprotect(m->p, 64 * page, PROT_READ | PROT_WRITE), 0);
	m->p[30 * page] = 1;
	CHECK_EQ(collect(m), 0);
	CHECK(m->total == 1 && m->seen[30]);
	unwatch(m);
}

/* All of a page table is dropped, or of a large page. */
static void test_dropped(int advice)
{
	size_t n = (2 << 20) / page;
	struct map *m = watch(4 * n, advice, true);
	size_t first = (n - (uintptr_t)m->p / page % n) % n + n; /* it is aligned */

	if (first + n > m->n)
		first -= n;
	CHECK_EQ(madvise(m->p + first * page, n * page, MADV_DONTNEED), 0);
	CHECK_EQ(look(m), 0);
	CHECK(m->total == n && m->seen[first] && m->seen[first + n - 1]);
	CHECK_EQ(collect(m), 0);
	CHECK(m->total == n && m->seen[first] && m->seen[first + n - 1]);
	CHECK_EQ(look(m), 0);
	CHECK_EQ(m->total, 0);
	unwatch(m);
}

static void test_all(void)
{
	test_exact(MADV_NOHUGEPAGE, true);
	test_exact(MADV_NOHUGEPAGE, false);
	test_exact(MADV_HUGEPAGE, true);
	test_events();
	test_dropped(MADV_NOHUGEPAGE);
	test_dropped(MADV_HUGEPAGE);
}

static void test_lost(void)
{
	struct map *m = watch(64, MADV_NOHUGEPAGE, true);
	void *to = mmap(NULL, 64 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *hole = m->p + 5 * page;

	CHECK_EQ(munmap(hole, page), 0);
	CHECK_EQ(collect(m), VV_EMISMATCH);
	CHECK_EQ(look(m), VV_EMISMATCH);
	CHECK(mmap(hole, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == hole);
	CHECK_EQ(collect(m), VV_EMISMATCH);
	CHECK(strlen(vv_err_last()) > 20);
	CHECK_EQ(vv_scan_attach(scan, NULL, (uintptr_t)m->p, (uintptr_t)m->p + 64 * page), 0); // anew
	CHECK_EQ(collect(m), 0);
	CHECK_EQ(m->total, 0);
	unwatch(m);
	m = watch(64, MADV_NOHUGEPAGE, true);
	m->p = mremap(m->p, 64 * page, 64 * page, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	CHECK(m->p == to);
	m->p[page] = 1;
	CHECK_EQ(collect(m), VV_EMISMATCH);
	unwatch(m);
}

// Each writer counts in pages of its own; a page whose content is not as at the last look must be reported.
struct writer {
	struct map *m;
	size_t id;
	atomic_bool *stop;
};

static _Atomic unsigned *word(const struct map *m, size_t i)
{
	return (_Atomic unsigned *)(void *)(m->p + i * page);
}

static void *scribble(void *arg)
{
	struct writer *w = arg;
	unsigned seed = (unsigned)w->id;

	while (!atomic_load(w->stop)) {
		size_t i = (size_t)rand_r(&seed) % (w->m->n / THREADS) * THREADS + w->id;

		atomic_fetch_add_explicit(word(w->m, i), 1, memory_order_relaxed);
		if (rand_r(&seed) % 64 == 0)
			sched_yield();
	}
	return NULL;
}

static void test_concurrent(size_t n)
{
	struct map *m = watch(n, MADV_NOHUGEPAGE, true);
	unsigned *before = calloc(n, sizeof(*before)), *now = calloc(n, sizeof(*now));
	struct writer w[THREADS];
	pthread_t thread[THREADS];
	atomic_bool stop = false;

	for (size_t i = 0; i < n; i++)
		before[i] = atomic_load(word(m, i));
	for (size_t t = 0; t < THREADS; t++) {
		w[t] = (struct writer){m, t, &stop};
		CHECK_EQ(pthread_create(&thread[t], NULL, scribble, &w[t]), 0);
	}
	for (int round = 0; round < 40; round++) {
		if (round == 39) {
			atomic_store(&stop, true);
			for (size_t t = 0; t < THREADS; t++)
				pthread_join(thread[t], NULL);
		}
		vv_clock_sleep(0.0005);
		for (size_t i = 0; i < n; i++)
			now[i] = atomic_load(word(m, i));
		CHECK_EQ(collect(m), 0);
		for (size_t i = 0; i < n; i++) {
			CHECK(m->seen[i] || now[i] == before[i]);
			if (m->seen[i])
				before[i] = atomic_load(word(m, i));
		}
	}
	free(before);
	free(now);
	unwatch(m);
}

// All parts of much memory, the last one shorter, by several threads: as if it were one. Huge pages lie across their ends.
static void test_parts(int advice, bool there)
{
	struct map *m = watch(PAGES, advice, there);
	uintptr_t lo = (uintptr_t)m->p, hi = lo + PAGES * page;
	struct vv_pool *pool = NULL;
	struct vv_parallel_for loop;
	char *hole;

	CHECK_EQ(vv_pool_new(THREADS - 1, &pool), 0);
	loop = vv_pool_loop(pool);
	CHECK_EQ(vv_scan_rearm(scan, lo, hi), 0);
	CHECK_EQ(look(m), 0);
	CHECK_EQ(m->total, 0);
	for (size_t less = 0; less < 3; less++) {
		memset(m->p, (int)less, PAGES * page);
		CHECK_EQ(vv_scan_rearm(scan, lo, hi - less * page), 0);
		CHECK_EQ(look(m), 0);
		CHECK(m->total == less && (less == 0 || m->seen[PAGES - less]));
	}
	vv_scan_detach(scan, lo, hi);
	memset(m->p, 7, PAGES * page);
	CHECK_EQ(vv_scan_attach(scan, &loop, lo, hi), 0);
	CHECK_EQ(look(m), 0);
	CHECK_EQ(m->total, 0);
	hole = m->p + (PAGES / 3) * page;
	CHECK(mmap(hole, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == hole);
	CHECK_EQ(vv_scan_rearm(scan, lo, hi), VV_EMISMATCH);
	CHECK(strlen(vv_err_last()) > 20);
	vv_pool_free(pool);
	unwatch(m);
}

static void test_refused(void)
{
	char *shared = mmap(NULL, page, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	munmap(shared, page);
	CHECK_EQ(vv_scan_attach(scan, NULL, (uintptr_t)shared, (uintptr_t)shared + page), VV_ENOTSUP);
	vv_scan_detach(scan, (uintptr_t)shared, (uintptr_t)shared + page);
	vv_scan_close(NULL);
}

int main(void)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	if (vv_scan_open(&scan) == VV_ENOTSUP)
		SKIP(vv_err_last());
	test_all();
	vv_scan_search_dropped(scan, true);
	test_all();
	vv_scan_search_dropped(scan, false);
	test_lost();
	test_concurrent(16384); // few of them are written between two looks
	test_concurrent(64);    // most of them are
	test_parts(MADV_NOHUGEPAGE, true);
	test_parts(MADV_NOHUGEPAGE, false);
	test_parts(MADV_HUGEPAGE, true);
	test_refused();
	vv_scan_close(scan);
	return 0;
}
