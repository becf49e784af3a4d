#include "preload/heap.h"
#include "preload/heap_fast.h"
#include "base/err.h"
#include "base/held.h"
#include "base/log.h"
#include "engine/run_protocol.h"
#include "preload/caller.h"
#include "preload/heap_rebuild.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TIB ((size_t)1 << 40)
#define GIB ((size_t)1 << 30)
#define MIB ((size_t)1 << 20)

/* Far from the kernel's mappings, with 47 or 48 bits of addresses. */
static const uintptr_t usual_place = (uintptr_t)32 << 40;
static const size_t main_lane = 4 * TIB, thread_lane = 64 * GIB, later_lane = TIB, records = 256 * GIB;

struct heap_lane {
	extent_hooks_t hooks; /* first, because jemalloc passes a pointer to it */
	pthread_mutex_t lock;
	uintptr_t lo;
	size_t size, used, open; /* open: bytes of writable memory */
	size_t unknown;          /* bytes at the beginning whose objects jemalloc does not know */
	unsigned arena;          /* jemalloc's number of it, plus 1; 0: not created yet */
};

struct vv_heap vv_heap = { .phase = VV_HEAP_NONE };
__thread uintptr_t vv_heap_thread_phase;
static struct heap_lane lane[VV_HEAP_LANES];
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_uint threads;
static char trouble[200];

/* Number of this thread, plus 1. */
static __thread unsigned my_number __attribute__((tls_model("initial-exec")));

/* Objects keep their addresses only if nothing depends on time or chance: no random offsets, and
 * decay only after the start-up. Two dumps of one program differ least if free memory is not kept
 * for long. */
const char *vv_je_malloc_conf = "narenas:1,oversize_threshold:0,percpu_arena:disabled,background_thread:false";

/* From VV_HEAP_SMALL on, four marks per doubling, up to the size of a lane; larger sizes have the
 * unused mark NEVER. */
enum { LARGE_LG = 11, LARGE_FIRST = VV_HEAP_SMALL / VV_HEAP_GRAIN + 1, NEVER = 255 };

uint8_t vv_heap_large_mark(size_t n)
{
	unsigned lg = 63 - (unsigned)__builtin_clzll((unsigned long long)n - 1);

	return n > main_lane ? NEVER : (uint8_t)(LARGE_FIRST + ((lg - LARGE_LG) << 2) + (((n - 1) >> (lg - 2)) & 3));
}

static size_t most(uint8_t mark)
{
	unsigned step = (unsigned)mark - LARGE_FIRST;

	return mark < LARGE_FIRST ? (size_t)mark * VV_HEAP_GRAIN : (size_t)(5 + (step & 3)) << (LARGE_LG - 2 + (step >> 2));
}

/* Returns jemalloc's size for it: beyond 8 grains also four steps per doubling. */
size_t vv_heap_mark_room(uint8_t mark)
{
	size_t n = most(mark), step = VV_HEAP_GRAIN;

	while (n > 8 * step)
		step *= 2;
	return (n + step - 1) & ~(step - 1);
}

/* ---- lanes ----------------------------------------------------------------------------------- */

/* Pieces have 1 MiB at first. From 16 MiB on, there are 8 pieces per doubling. So a checkpoint
 * examines little more than the used memory. */
enum { PIECES = 8 };

size_t vv_heap_piece(unsigned l, size_t i, uintptr_t *lo)
{
	size_t doubled = i < PIECES ? 0 : i / PIECES - 1;

	*lo = lane[l].lo + ((i - doubled * PIECES) << doubled) * MIB;
	return MIB << doubled;
}

/* Memory is made writable in complete pieces, so that a region never changes its length. Several
 * pieces at once let the kernel use large pages. Untouched memory costs nothing. */
static size_t step_at(size_t offset)
{
	size_t of_first = offset / (PIECES * MIB);

	return of_first < 32 ? 16 * MIB : MIB << (63 - __builtin_clzll(of_first));
}

size_t vv_heap_used(unsigned l)
{
	size_t n;

	pthread_mutex_lock(&lane[l].lock);
	n = lane[l].used;
	pthread_mutex_unlock(&lane[l].lock);
	return n;
}

size_t vv_heap_lane_size(unsigned l)
{
	return lane[l].size;
}

static bool make_writable(uintptr_t lo, size_t n)
{
	return mprotect((void *)lo, n, PROT_READ | PROT_WRITE) == 0;
}

/* The caller holds its lock. */
static bool reach(struct heap_lane *l, size_t n)
{
	VV_HELD(&l->lock);
	while (l->open < n) {
		size_t step = step_at(l->open);

		if (!make_writable(l->lo + l->open, step) ||
		    !make_writable((uintptr_t)vv_heap_mark((void *)(l->lo + l->open)), step / VV_HEAP_GRAIN))
			return false;
		l->open += step;
	}
	l->used = n > l->used ? n : l->used;
	return true;
}

int vv_heap_extend(unsigned l, size_t n)
{
	bool ok;

	if (n > lane[l].size)
		return vv_err_set(VV_EINVAL, "a heap of %zu bytes does not fit into the range", n);
	pthread_mutex_lock(&lane[l].lock);
	ok = reach(&lane[l], n);
	pthread_mutex_unlock(&lane[l].lock);
	return ok ? 0 : vv_err_sys(errno, "memory for a heap of %zu bytes", n);
}

/* ---- jemalloc's hooks: extents are cut from the end of a lane and never released ------------- */

/* Memory for many objects is in large pages: fewer page faults and fewer TLB misses. But a small
 * heap stays small. An extent above jemalloc's usual growth is one array, of which much may never
 * be written. Memory after the first checkpoint is in small pages, because a checkpoint would
 * examine each new large page completely. */
static void prefer_large_pages(const struct heap_lane *l, uintptr_t p, size_t n)
{
	if (l < &lane[VV_HEAP_LATER] && n <= VV_JE_GROWTH && p - l->lo >= VV_JE_GROWTH)
		madvise((void *)p, n, MADV_HUGEPAGE);
}

static void *extent_alloc(extent_hooks_t *hooks, void *at, size_t n, size_t align, bool *zero, bool *commit, unsigned arena)
{
	struct heap_lane *l = (struct heap_lane *)hooks;
	uintptr_t p;
	bool ok;

	(void)arena;
	(void)zero; /* it always is */
	pthread_mutex_lock(&l->lock);
	p = (l->lo + l->used + align - 1) & ~(uintptr_t)(align - 1);
	ok = (!at || (uintptr_t)at == p) && p - l->lo <= l->size && n <= l->size - (p - l->lo) && reach(l, p + n - l->lo);
	pthread_mutex_unlock(&l->lock);
	if (ok)
		prefer_large_pages(l, p, n);
	*commit = true;
	*zero = true;
	return ok ? (void *)p : NULL;
}

/* true refuses: jemalloc keeps the extent and uses it again. */
static bool extent_dalloc(extent_hooks_t *hooks, void *p, size_t n, bool committed, unsigned arena)
{
	(void)hooks, (void)p, (void)n, (void)committed, (void)arena;
	return true;
}

/* Returns memory to the kernel, unless a checkpoint holds it. A page must not disappear between the
 * search for changed pages and their write protection. This is our own madvise: it first saves the
 * pending pages of a checkpoint. */
static atomic_bool held;
static atomic_uint giving;

static bool give_to_kernel(void *p, size_t n)
{
	bool gone;

	atomic_fetch_add(&giving, 1);
	gone = !atomic_load(&held) && madvise(p, n, MADV_DONTNEED) == 0;
	atomic_fetch_sub(&giving, 1);
	return gone;
}

void vv_heap_keep_freed(bool hold)
{
	atomic_store(&held, hold);
	while (hold && atomic_load(&giving))
		sched_yield();
}

/* true refuses: jemalloc keeps the memory as it is. */
static bool extent_purge(extent_hooks_t *hooks, void *p, size_t size, size_t offset, size_t n, unsigned arena)
{
	(void)hooks, (void)size, (void)arena;
	return !give_to_kernel((char *)p + offset, n);
}

static bool extent_split(extent_hooks_t *hooks, void *p, size_t size, size_t a, size_t b, bool committed, unsigned arena)
{
	(void)hooks, (void)p, (void)size, (void)a, (void)b, (void)committed, (void)arena;
	return false;
}

static bool extent_merge(extent_hooks_t *hooks, void *a, size_t na, void *b, size_t nb, bool committed, unsigned arena)
{
	(void)hooks, (void)a, (void)na, (void)b, (void)nb, (void)committed, (void)arena;
	return false;
}

static const extent_hooks_t extent_hooks = {
	.alloc = extent_alloc,
	.dalloc = extent_dalloc,
	.purge_forced = extent_purge,
	.split = extent_split,
	.merge = extent_merge,
};

/* ---- arenas ---------------------------------------------------------------------------------- */

/* jemalloc's own records are outside of the lanes. Returns jemalloc's number plus 1; 0: it
 * failed. */
static unsigned make_arena(struct heap_lane *l)
{
	struct { /* arena_config_t, which jemalloc's header does not declare */
		extent_hooks_t *hooks;
		bool records_by_hooks;
	} config = { &l->hooks, false };
	unsigned arena;
	size_t n = sizeof(arena);

	if (vv_je_mallctl("experimental.arenas_create_ext", &arena, &n, &config, sizeof(config)) != 0)
		return 0;
	vv_je_limit_growth(arena);
	if (l < &lane[VV_HEAP_LATER])
		vv_je_set_decay(arena, -1);
	return arena + 1;
}

/* The main thread has the first lane of a phase. Threads beyond the number of lanes share lanes
 * with others. */
static struct heap_lane *lane_of(int phase)
{
	unsigned n = my_number - 1;

	if (phase != VV_HEAP_STARTUP)
		return &lane[VV_HEAP_LATER + n % (VV_HEAP_LANES - VV_HEAP_LATER)];
	return &lane[n < VV_HEAP_LATER ? n : 1 + n % (VV_HEAP_LATER - 1)];
}

/* Prepares this thread to allocate in the phase. Its cache has memory of the previous phase, or of
 * the early start of the process, and is flushed. */
static bool prepare(int phase)
{
	struct heap_lane *l;
	unsigned bind;

	if (my_number == 0)
		my_number = vv_heap_next_thread() + 1;
	l = lane_of(phase);
	pthread_mutex_lock(&making);
	if (l->arena == 0)
		l->arena = make_arena(l);
	bind = l->arena;
	pthread_mutex_unlock(&making);
	if (bind == 0)
		return false;
	bind--;
	vv_je_mallctl("thread.tcache.flush", NULL, NULL, NULL, 0);
	if (vv_je_mallctl("thread.arena", NULL, NULL, &bind, sizeof(bind)) != 0)
		return false;
	vv_heap_thread_phase = (uintptr_t)phase;
	return true;
}

bool vv_heap_prepare_thread(void)
{
	int phase;

	vv_heap_begin();
	phase = atomic_load(&vv_heap.phase);
	if (phase != VV_HEAP_NONE && (vv_heap_thread_phase == (uintptr_t)phase || prepare(phase)))
		return true;
	errno = ENOMEM;
	return false;
}

unsigned vv_heap_next_thread(void)
{
	return atomic_fetch_add(&threads, 1);
}

void vv_heap_name_thread(unsigned number)
{
	my_number = number + 1;
}

/* ---- objects --------------------------------------------------------------------------------- */

static size_t at_least_grain(size_t n)
{
	return n < VV_HEAP_GRAIN ? VV_HEAP_GRAIN : n;
}

static void *marked(void *p, size_t n)
{
	if (p)
		*vv_heap_mark(p) = vv_heap_mark_of(n);
	return p;
}

void *vv_heap_alloc(size_t n)
{
	return marked(vv_je_malloc(at_least_grain(n)), n);
}

void *vv_heap_alloc_zeroed(size_t n)
{
	return marked(vv_je_calloc(1, at_least_grain(n)), n);
}

/* jemalloc may use a much larger size for it. */
void *vv_heap_alloc_aligned(size_t align, size_t n)
{
	void *p = vv_je_memalign(align, at_least_grain(n));

	return p ? marked(p, vv_je_malloc_usable_size(p)) : NULL;
}

/* ---- objects that jemalloc does not know ----------------------------------------------------- */

/* They are in a lane that could not be rebuilt. Their memory is not used again. */

static bool is_unknown(const void *p)
{
	uintptr_t at = (uintptr_t)p, first = lane[VV_HEAP_LATER].lo, second = lane[VV_HEAP_LATER + 1].lo;
	const struct heap_lane *l = &lane[VV_HEAP_LATER];

	if (vv_heap_is_plain(p) || at < first)
		return false;
	if (at >= second)
		l += 1 + (at - second) / later_lane;
	return at - l->lo < l->unknown;
}

void vv_heap_free(void *p)
{
	if (!is_unknown(p)) {
		vv_heap_free_plain(p);
		return;
	}
	if (*vv_heap_mark(p) == 0)
		abort(); /* freed twice, or never allocated */
	*vv_heap_mark(p) = 0;
}

size_t vv_heap_room(const void *p)
{
	return is_unknown(p) ? vv_heap_mark_room(*vv_heap_mark(p)) : vv_je_malloc_usable_size(p);
}

static void *move(void *p, size_t room, size_t n)
{
	void *q = vv_heap_alloc(n);

	if (q) {
		memcpy(q, p, n < room ? n : room);
		vv_heap_free(p);
	}
	return q;
}

/* jemalloc would do the same with small objects, in several times as many steps. */
static void *resize_small(void *p, uint8_t before, uint8_t mark, size_t n)
{
	size_t room = vv_heap_mark_room(before);

	if (vv_heap_mark_room(mark) != room)
		return move(p, room, n);
	*vv_heap_mark(p) = mark;
	return p;
}

/* An object of the start-up keeps its extent after the start-up: the extent must be the same when
 * the program is started again. The mark is cleared before the object is freed: the next owner of
 * the memory sets it again. */
void *vv_heap_resize(void *p, size_t n)
{
	uint8_t before = *vv_heap_mark(p), mark = vv_heap_mark_of(n);
	void *q;

	if (mark == before)
		return p;
	if (!vv_heap_is_thread_ready() && !vv_heap_prepare_thread())
		return NULL;
	if (is_unknown(p) || (vv_heap_thread_phase == VV_HEAP_RUNNING && (uintptr_t)p < lane[VV_HEAP_LATER].lo)) {
		size_t room = vv_heap_room(p);

		return n <= room && n >= room / 2 ? p : move(p, room, n);
	}
	if (before && before < LARGE_FIRST && mark < LARGE_FIRST)
		return resize_small(p, before, mark, n);
	*vv_heap_mark(p) = 0;
	q = vv_je_realloc(p, at_least_grain(n));
	*vv_heap_mark(q ? q : p) = q ? mark : before;
	if (!q)
		errno = ENOMEM; /* this jemalloc does not set it */
	return q;
}

/* ---- start and phases ------------------------------------------------------------------------ */

const char *vv_heap_error(void)
{
	return trouble;
}

void vv_heap_disable(const char *reason)
{
	snprintf(trouble, sizeof(trouble), "%s", reason);
}

static bool read_place(uintptr_t *at)
{
	const char *text = getenv(VV_RUN_PROTOCOL_ARENA);
	char *end = NULL;

	*at = usual_place;
	if (!text || !*text)
		return true;
	errno = 0;
	*at = strtoull(text, &end, 16);
	if (errno == 0 && *end == 0 && *at && *at % GIB == 0)
		return true;
	snprintf(trouble, sizeof(trouble), VV_RUN_PROTOCOL_ARENA "=%.40s is no address: hexadecimal, a multiple of 40000000", text);
	return false;
}

/* ---- fork ------------------------------------------------------------------------------------ */

/* A lock that another thread holds during fork would stay locked in the child. A thread with
 * `making` calls jemalloc, which calls a hook of a lane. So the locks are taken in that order, with
 * jemalloc's own in between. Handlers that are registered last run first. */

static void lock_lanes(void)
{
	for (unsigned i = 0; i < VV_HEAP_LANES; i++)
		pthread_mutex_lock(&lane[i].lock);
}

static void unlock_lanes(void)
{
	for (unsigned i = 0; i < VV_HEAP_LANES; i++)
		pthread_mutex_unlock(&lane[i].lock);
}

/* The checkpoint in progress, and the threads that were returning memory, do not exist in the
 * child. */
static void unlock_lanes_of_child(void)
{
	atomic_store(&held, false);
	atomic_store(&giving, 0);
	unlock_lanes();
}

static void lock_making(void)
{
	pthread_mutex_lock(&making);
}

static void unlock_making(void)
{
	pthread_mutex_unlock(&making);
}

/* The last MiB is not used: jemalloc must not merge free memory of two lanes. */
static size_t lane_size(unsigned i)
{
	return i == 0 || i == VV_HEAP_LATER ? main_lane : i < VV_HEAP_LATER ? thread_lane : later_lane;
}

static size_t lanes_size(void)
{
	size_t n = 0;

	for (unsigned i = 0; i < VV_HEAP_LANES; i++)
		n += lane_size(i);
	return n;
}

static void begin(void)
{
	size_t size = lanes_size(), all = size + size / VV_HEAP_GRAIN + records;
	uintptr_t at, next;
	void *p;

	if (trouble[0] || !read_place(&at))
		return;
	p = mmap((void *)at, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (p != (void *)at) {
		snprintf(trouble, sizeof(trouble), "%zu GiB of addresses at %#zx cannot be had (%s): is there a limit (ulimit -v)?",
			 all / GIB, (size_t)at, p == MAP_FAILED ? strerror(errno) : "taken");
		if (p != MAP_FAILED)
			munmap(p, all);
		return;
	}
	next = at;
	for (unsigned i = 0; i < VV_HEAP_LANES; i++) {
		lane[i] = (struct heap_lane){ .hooks = extent_hooks, .lock = PTHREAD_MUTEX_INITIALIZER, .lo = next, .size = lane_size(i) - MIB };
		next += lane_size(i);
	}
	vv_heap.lo = vv_heap.plain = at;
	vv_heap.size = vv_heap.n_plain = size;
	vv_heap.mark = at + size - at / VV_HEAP_GRAIN;
	vv_heap.records = at + all - records;
	vv_heap.records_size = records;
	je_opt_cache_oblivious = false;
	my_number = vv_heap_next_thread() + 1;
	/* Before jemalloc starts. */
	pthread_atfork(lock_lanes, unlock_lanes, unlock_lanes_of_child);
	if (prepare(VV_HEAP_STARTUP))
		atomic_store(&vv_heap.phase, VV_HEAP_STARTUP);
	else
		snprintf(trouble, sizeof(trouble), "this jemalloc makes no arenas of another's memory (5.3 or later does)");
	pthread_atfork(lock_making, unlock_making, unlock_making); /* after jemalloc has started */
}

void vv_heap_begin(void)
{
	pthread_once(&once, begin);
}

/* Skips free memory eight marks at a time. */
uintptr_t vv_heap_next(uintptr_t at, uintptr_t end)
{
	const uint8_t *first = vv_heap_mark((void *)at), *mark = first, *last = vv_heap_mark((void *)end);
	uint64_t eight;

	while (mark < last && *mark == 0) {
		if (last - mark >= (ptrdiff_t)sizeof(eight) && (memcpy(&eight, mark, sizeof(eight)), eight == 0))
			mark += sizeof(eight);
		else
			mark++;
	}
	return at + (uintptr_t)(mark - first) * VV_HEAP_GRAIN;
}

static void walk(const struct heap_lane *l, size_t used, void (*fn)(void *arg, uintptr_t at, uint8_t mark), void *arg)
{
	uintptr_t end = l->lo + used, at = vv_heap_next(l->lo, end);

	while (at < end) {
		uint8_t mark = *vv_heap_mark((void *)at);

		fn(arg, at, mark);
		/* No object begins inside another. */
		at += vv_heap_grains(most((uint8_t)(mark - 1)) + 1) * VV_HEAP_GRAIN;
		at = at < end ? vv_heap_next(at, end) : end;
	}
}

void vv_heap_walk(void (*fn)(void *arg, uintptr_t at, uint8_t mark), void *arg)
{
	for (unsigned i = 0; i < VV_HEAP_LATER; i++)
		walk(&lane[i], vv_heap_used(i), fn, arg);
}

/* Contradictory marks come from threads that allocated during the checkpoint. Such a lane keeps its
 * contents, and new memory comes from behind them. */
static int rebuild_lane(struct heap_lane *l)
{
	size_t used = l->used;

	if (used == 0)
		return 0;
	if (!vv_heap_rebuild_is_sound(l->lo, used)) {
		vv_log_warn("threads allocated while the checkpoint was taken: %zu MiB of their heap come back, but will not be used again", used / MIB);
		l->unknown = used;
		vv_heap.n_plain = lane[VV_HEAP_LATER].lo - vv_heap.plain;
		return 0;
	}
	l->arena = make_arena(l);
	l->used = 0;
	return l->arena ? vv_heap_rebuild_lane(l->arena - 1, l->lo, used) : VV_ENOMEM;
}

int vv_heap_run(bool restored)
{
	int rc = 0;

	for (unsigned i = VV_HEAP_LATER; rc == 0 && restored && i < VV_HEAP_LANES; i++)
		rc = rebuild_lane(&lane[i]);
	for (unsigned i = 0; i < VV_HEAP_LATER; i++)
		if (lane[i].arena)
			vv_je_set_decay(lane[i].arena - 1, 10000);
	atomic_store(&vv_heap.phase, VV_HEAP_RUNNING);
	vv_caller_forget();
	return rc;
}

void vv_heap_free_startup(uintptr_t at)
{
	vv_je_free((void *)at);
}
