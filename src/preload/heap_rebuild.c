#include "preload/heap_rebuild.h"
#include "base/err.h"
#include "preload/heap.h"
#include <stdio.h>
#include <sys/mman.h>

enum { MOST_BINS = 128 };

struct bin {
	size_t object, slab;
};

static struct bin bin[MOST_BINS]; /* in the order of sizes */
static size_t n_bins, page;

static size_t ask(const char *name)
{
	size_t value = 0, n = sizeof(value);

	return vv_je_mallctl(name, &value, &n, NULL, 0) == 0 ? value : 0;
}

static size_t ask_of_bin(size_t i, const char *what)
{
	char name[64];

	snprintf(name, sizeof(name), "arenas.bin.%zu.%s", i, what);
	return ask(name);
}

static void ask_sizes(void)
{
	unsigned n = 0;
	size_t len = sizeof(n);

	if (n_bins || vv_je_mallctl("arenas.nbins", &n, &len, NULL, 0) != 0)
		return;
	page = ask("arenas.page");
	for (; n_bins < n && n_bins < MOST_BINS; n_bins++)
		bin[n_bins] = (struct bin){ ask_of_bin(n_bins, "size"), ask_of_bin(n_bins, "slab_size") };
}

/* ---- the extents of a lane ------------------------------------------------------------------- */

/* Objects of one size: one large object, or a slab of small ones. Size 0: free memory. */
struct extent {
	uintptr_t lo, hi;
	size_t size;
};

/* Finds the extent of an object. The length of a slab is the least common multiple of its object
 * size and the page size. So only one page can be its first. */
static bool find_home(uintptr_t at, size_t size, struct extent *out)
{
	size_t i = 0;
	uintptr_t lo = at & ~(uintptr_t)(page - 1);

	while (i < n_bins && bin[i].object < size)
		i++;
	if (i == n_bins) {
		*out = (struct extent){ at, at + size, size };
		return lo == at;
	}
	while ((at - lo) % size && at - lo < bin[i].slab)
		lo -= page;
	*out = (struct extent){ lo, lo + bin[i].slab, size };
	return bin[i].object == size && at - lo < bin[i].slab;
}

/* Finds the extent that begins at `at` and returns 1; 0: the end; -1: the marks contradict each
 * other. */
static int next_extent(uintptr_t at, uintptr_t end, struct extent *out)
{
	uintptr_t object;

	if (at == end)
		return 0;
	object = vv_heap_next(at, end);
	*out = (struct extent){ at, end, 0 };
	if (object == end)
		return 1;
	if (!find_home(object, vv_heap_mark_room(*vv_heap_mark((void *)object)), out) || out->lo < at || out->hi > end)
		return -1;
	if (out->lo > at)
		*out = (struct extent){ at, out->lo, 0 };
	return 1;
}

static bool is_whole(const struct extent *e)
{
	for (uintptr_t at = vv_heap_next(e->lo, e->hi); at < e->hi; at = vv_heap_next(at + VV_HEAP_GRAIN, e->hi))
		if ((at - e->lo) % e->size || vv_heap_mark_room(*vv_heap_mark((void *)at)) != e->size)
			return false;
	return true;
}

bool vv_heap_rebuild_is_sound(uintptr_t lo, size_t n)
{
	uintptr_t end = lo + n;
	struct extent e;
	int more;

	ask_sizes();
	if (!page || n % page)
		return false;
	for (; (more = next_extent(lo, end, &e)) > 0; lo = e.hi)
		if (e.size && !is_whole(&e))
			return false;
	return more == 0;
}

/* ---- jemalloc allocates everything, and frees unmarked objects ------------------------------- */

/* Returns the largest of jemalloc's sizes (four per doubling) that fits, in complete pages: such an
 * object has its own extent. */
static size_t piece_of(size_t n)
{
	unsigned lg = 63 - (unsigned)__builtin_clzll(n);

	return n & ~(((size_t)1 << (lg - 2)) - 1);
}

static size_t step(const struct extent *e, uintptr_t at)
{
	return e->size ? e->size : piece_of(e->hi - at);
}

static int allocate(const struct extent *e, int flags)
{
	for (uintptr_t at = e->lo; at < e->hi; at += step(e, at)) {
		void *p = vv_je_mallocx(step(e, at), flags);

		if (!p)
			return vv_err_set(VV_ENOMEM, "no memory for the allocator's records of the heap");
		if ((uintptr_t)p != at)
			return vv_err_set(VV_ENOTSUP, "the heap cannot be put back: this jemalloc allocates at %p, and not at %#zx (5.3 does)", p, (size_t)at);
	}
	return 0;
}

/* The kernel gets the pages without jemalloc's knowledge: jemalloc never merges memory that it has
 * returned with memory that is freed later. The first piece is the largest and is freed last.
 * Jemalloc merges a large piece with all its neighbours at once, a small one with none. */
static void free_gap(const struct extent *e, int flags)
{
	uintptr_t second = e->lo + step(e, e->lo), next = 0;

	madvise((void *)e->lo, e->hi - e->lo, MADV_DONTNEED);
	for (uintptr_t at = second; at < e->hi; at = next) {
		next = at + step(e, at);
		vv_je_dallocx((void *)at, flags);
	}
	vv_je_dallocx((void *)e->lo, flags);
}

static void free_unmarked(const struct extent *e, int flags)
{
	for (uintptr_t at = e->lo; at < e->hi; at += e->size)
		if (*vv_heap_mark((void *)at) == 0)
			vv_je_dallocx((void *)at, flags);
}

int vv_heap_rebuild_lane(unsigned arena, uintptr_t lo, size_t n)
{
	int flags = MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE, rc = 0;
	struct extent e;

	je_opt_retain = false;
	for (uintptr_t at = lo; rc == 0 && next_extent(at, lo + n, &e) > 0; at = e.hi)
		rc = allocate(&e, flags);
	je_opt_retain = true;
	je_opt_lg_extent_max_active_fit = 63;
	for (uintptr_t at = lo; rc == 0 && next_extent(at, lo + n, &e) > 0; at = e.hi)
		e.size ? free_unmarked(&e, flags) : free_gap(&e, flags);
	return rc;
}
