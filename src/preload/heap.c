#include "preload/heap.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/run_protocol.h"
#include "preload/caller.h"
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

enum { LATER_ARENAS = 16 };

static const uintptr_t usual_place = (uintptr_t)32 << 40; /* far from what the kernel maps, with 47 bits or 48 */
static const size_t main_lane = 4 * TIB, thread_lane = 64 * GIB, later_lane = 4 * TIB, records = 256 * GIB;

struct lane {
	extent_hooks_t hooks; /* first: jemalloc hands back a pointer to it */
	pthread_mutex_t lock;
	uintptr_t lo;
	size_t size, used, open; /* open: writable memory */
};

struct vv_heap vv_heap = { .phase = VV_HEAP_NONE };
__thread uintptr_t vv_heap_settled;
static struct lane lane[VV_HEAP_LANES];
static unsigned startup_arena[VV_HEAP_LATER], later_arena[LATER_ARENAS]; /* jemalloc's number of it, and 1; 0: not made yet */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_uint threads;
static char trouble[200];

static __thread unsigned my_number __attribute__((tls_model("initial-exec"))); /* of this thread, and 1 */

/* Objects lie where they lay only if nothing depends on time or chance: no offsets at random, and what decays does so later. Two
 * dumps of one program differ least if free memory is not kept for long. */
const char *vv_je_malloc_conf = "narenas:1,oversize_threshold:0,percpu_arena:disabled,background_thread:false";

/* From VV_HEAP_SMALL on, four steps to a doubling, up to the size of a lane; what is larger is nobody's mark. */
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

/* jemalloc's size for it: beyond 8 grains four steps to a doubling, too. */
size_t vv_heap_mark_room(uint8_t mark)
{
	size_t n = most(mark), step = VV_HEAP_GRAIN;

	while (n > 8 * step)
		step *= 2;
	return (n + step - 1) & ~(step - 1);
}

/* ---- lanes -------------------------------------------------------------------------------------------------------------- */

/* Of a MiB, and from 16 MiB on 8 to each doubling: what is looked at in every checkpoint is not much more than what is used. */
enum { PIECES = 8 };

size_t vv_heap_piece(unsigned l, size_t i, uintptr_t *lo)
{
	size_t doubled = i < PIECES ? 0 : i / PIECES - 1;

	*lo = lane[l].lo + ((i - doubled * PIECES) << doubled) * MIB;
	return MIB << doubled;
}

/* Memory is made writable by whole pieces, so that a region never changes its length, and by many, so that the kernel can give it in large pages.
 * Untouched memory costs nothing. */
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

/* Under its lock. */
static bool reach(struct lane *l, size_t n)
{
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

int vv_heap_reach(unsigned l, size_t n)
{
	bool ok;

	if (n > lane[l].size)
		return vv_err_set(VV_EINVAL, "a heap of %zu bytes does not fit into the range", n);
	pthread_mutex_lock(&lane[l].lock);
	ok = reach(&lane[l], n);
	pthread_mutex_unlock(&lane[l].lock);
	return ok ? 0 : vv_err_sys(errno, "memory for a heap of %zu bytes", n);
}

/* ---- jemalloc's hooks: extents are cut from the end of a lane, and never given back ------------------------------------------- */

/* Memory for many objects, in large pages: fewer to be made, and to be looked up. But a small heap stays small; and what is larger than jemalloc takes of
 * itself is one array, of which much may never be written. What comes after the first checkpoint is in small ones: of a new large one all would be
 * looked at. */
static void prefer_large_pages(const struct lane *l, uintptr_t p, size_t n)
{
	if (l != &lane[VV_HEAP_LATER] && n <= VV_JE_GROWTH && p - l->lo >= VV_JE_GROWTH)
		madvise((void *)p, n, MADV_HUGEPAGE);
}

static void *extent_alloc(extent_hooks_t *hooks, void *at, size_t n, size_t align, bool *zero, bool *commit, unsigned arena)
{
	struct lane *l = (struct lane *)hooks;
	uintptr_t p;
	bool ok;

	(void)arena;
	(void)zero; /* it is */
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

/* "No": jemalloc keeps it, to give it out again. */
static bool extent_dalloc(extent_hooks_t *hooks, void *p, size_t n, bool committed, unsigned arena)
{
	(void)hooks, (void)p, (void)n, (void)committed, (void)arena;
	return true;
}

/* To the kernel, if nobody holds it: what a checkpoint looks at must not go away between the search for what has changed and the fence around it. Our
 * own madvise: what a checkpoint has not stored yet is saved first. */
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

void vv_heap_hold(bool hold)
{
	atomic_store(&held, hold);
	while (hold && atomic_load(&giving))
		sched_yield();
}

/* "No" is fine: jemalloc keeps it as it is. */
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

/* ---- arenas --------------------------------------------------------------------------------------------------------------- */

/* jemalloc's own records are kept out of the range. 0: it would not. */
static unsigned make_arena(struct lane *l)
{
	struct { /* arena_config_t, which jemalloc's header does not show */
		extent_hooks_t *hooks;
		bool records_by_hooks;
	} config = { &l->hooks, false };
	unsigned arena;
	size_t n = sizeof(arena);

	if (vv_je_mallctl("experimental.arenas_create_ext", &arena, &n, &config, sizeof(config)) != 0)
		return 0;
	vv_je_limit_growth(arena);
	if (l != &lane[VV_HEAP_LATER])
		vv_je_set_decay(arena, -1);
	return arena + 1;
}

/* This thread allocates as the phase asks. What its cache holds is of the phase before, or of the C library's early days: given back. */
static bool settle(int phase)
{
	unsigned *arena, bind;

	if (my_number == 0)
		my_number = vv_heap_next_thread() + 1;
	if (phase == VV_HEAP_STARTUP) {
		unsigned n = my_number - 1;

		n = n < VV_HEAP_LATER ? n : 1 + n % (VV_HEAP_LATER - 1);
		arena = &startup_arena[n];
	} else {
		arena = &later_arena[my_number % LATER_ARENAS];
	}
	pthread_mutex_lock(&making);
	if (*arena == 0)
		*arena = make_arena(phase == VV_HEAP_STARTUP ? &lane[arena - startup_arena] : &lane[VV_HEAP_LATER]);
	bind = *arena;
	pthread_mutex_unlock(&making);
	if (bind == 0)
		return false;
	bind--;
	vv_je_mallctl("thread.tcache.flush", NULL, NULL, NULL, 0);
	if (vv_je_mallctl("thread.arena", NULL, NULL, &bind, sizeof(bind)) != 0)
		return false;
	vv_heap_settled = (uintptr_t)phase;
	return true;
}

bool vv_heap_settle(void)
{
	int phase;

	vv_heap_begin();
	phase = atomic_load(&vv_heap.phase);
	if (phase != VV_HEAP_NONE && (vv_heap_settled == (uintptr_t)phase || settle(phase)))
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

/* ---- objects -------------------------------------------------------------------------------------------------------------- */

static size_t whole(size_t n)
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
	return marked(vv_je_malloc(whole(n)), n);
}

void *vv_heap_alloc_zeroed(size_t n)
{
	return marked(vv_je_calloc(1, whole(n)), n);
}

/* What jemalloc takes for it may be much more. */
void *vv_heap_alloc_aligned(size_t align, size_t n)
{
	void *p = vv_je_memalign(align, whole(n));

	return p ? marked(p, vv_je_malloc_usable_size(p)) : NULL;
}

/* ---- adopted ones: how many objects lie in each stretch of their memory; when there is none left, the kernel has it back ---------- */

enum { STRETCH = 1 << 16 };
static _Atomic(uint32_t) *users;

static void each_stretch(uintptr_t at, uint8_t mark, void (*fn)(size_t stretch))
{
	size_t first = (at - vv_heap.adopted) / STRETCH, last = (at + vv_heap_mark_room(mark) - 1 - vv_heap.adopted) / STRETCH;
	size_t end = (vv_heap.n_adopted + STRETCH - 1) / STRETCH;

	for (size_t i = first; i <= last && i < end; i++)
		fn(i);
}

static void enter(size_t stretch)
{
	atomic_fetch_add_explicit(&users[stretch], 1, memory_order_relaxed);
}

static void leave(size_t stretch)
{
	uintptr_t lo = vv_heap.adopted + stretch * STRETCH;

	if (atomic_fetch_sub_explicit(&users[stretch], 1, memory_order_relaxed) == 1 && lo + STRETCH <= vv_heap.adopted + vv_heap.n_adopted)
		give_to_kernel((void *)lo, STRETCH);
}

/* jemalloc has never heard of it: its memory goes back to the kernel. */
static void free_adopted(void *p)
{
	uint8_t mark = *vv_heap_mark(p);

	if (!mark)
		abort(); /* freed twice, or never allocated */
	*vv_heap_mark(p) = 0;
	if (users)
		each_stretch((uintptr_t)p, mark, leave);
}

void vv_heap_free(void *p)
{
	if (vv_heap_adopted(p))
		free_adopted(p);
	else
		vv_heap_free_plain(p);
}

static void count(void *arg, uintptr_t at, uint8_t mark)
{
	(void)arg;
	each_stretch(at, mark, enter);
}

size_t vv_heap_room(const void *p)
{
	return vv_heap_adopted(p) ? vv_heap_mark_room(*vv_heap_mark(p)) : vv_je_malloc_usable_size(p);
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

/* jemalloc does the same with small objects, in several times as many steps. */
static void *resize_small(void *p, uint8_t before, uint8_t mark, size_t n)
{
	size_t room = vv_heap_mark_room(before);

	if (vv_heap_mark_room(mark) != room)
		return move(p, room, n);
	*vv_heap_mark(p) = mark;
	return p;
}

/* An object of start-up keeps its extent for ever after: it would have another one when the program is started again. The mark goes before
 * the object does: who gets its memory next sets it anew. */
void *vv_heap_resize(void *p, size_t n)
{
	uint8_t before = *vv_heap_mark(p), mark = vv_heap_mark_of(n);
	void *q;

	if (mark == before)
		return p;
	if (!vv_heap_is_settled() && !vv_heap_settle())
		return NULL;
	if (vv_heap_adopted(p) || (vv_heap_settled == VV_HEAP_RUNNING && (uintptr_t)p < lane[VV_HEAP_LATER].lo)) {
		size_t room = vv_heap_room(p);

		return n <= room && n >= room / 2 ? p : move(p, room, n);
	}
	if (before && before < LARGE_FIRST && mark < LARGE_FIRST)
		return resize_small(p, before, mark, n);
	*vv_heap_mark(p) = 0;
	q = vv_je_realloc(p, whole(n));
	*vv_heap_mark(q ? q : p) = q ? mark : before;
	if (!q)
		errno = ENOMEM; /* this jemalloc leaves it as it was */
	return q;
}

/* ---- its life --------------------------------------------------------------------------------------------------------------- */

const char *vv_heap_trouble(void)
{
	return trouble;
}

void vv_heap_forgo(const char *reason)
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

/* ---- fork: a lock that another thread holds meanwhile would stay locked in the child. Who has `making` asks jemalloc, which asks a lane: so they
 * are locked in that order, with jemalloc's own in between. What is registered last is done first. */

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

/* The checkpoint that was being taken, and who gave memory back, are not here. */
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

static void begin(void)
{
	size_t size = main_lane + (VV_HEAP_LATER - 1) * thread_lane + later_lane, all = size + size / VV_HEAP_GRAIN + records;
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
		size_t n = i == 0 ? main_lane : i == VV_HEAP_LATER ? later_lane : thread_lane;

		lane[i] = (struct lane){ .hooks = extent_hooks, .lock = PTHREAD_MUTEX_INITIALIZER, .lo = next, .size = n };
		next += n;
	}
	vv_heap.lo = vv_heap.plain = at;
	vv_heap.size = vv_heap.n_plain = size;
	vv_heap.mark = at + size - at / VV_HEAP_GRAIN;
	vv_heap.records = at + all - records;
	vv_heap.records_size = records;
	je_opt_cache_oblivious = false;
	my_number = vv_heap_next_thread() + 1;
	pthread_atfork(lock_lanes, unlock_lanes, unlock_lanes_of_child); /* before jemalloc begins */
	if (settle(VV_HEAP_STARTUP))
		atomic_store(&vv_heap.phase, VV_HEAP_STARTUP);
	else
		snprintf(trouble, sizeof(trouble), "this jemalloc makes no arenas of another's memory (5.3 or later does)");
	pthread_atfork(lock_making, unlock_making, unlock_making); /* after that */
}

void vv_heap_begin(void)
{
	pthread_once(&once, begin);
}

static void walk(const struct lane *l, size_t used, void (*fn)(void *arg, uintptr_t at, uint8_t mark), void *arg)
{
	for (uintptr_t at = l->lo, end = at + used; at < end;) {
		uint8_t mark = *vv_heap_mark((void *)at);
		if (mark)
			fn(arg, at, mark);
		at += mark ? vv_heap_grains(most((uint8_t)(mark - 1)) + 1) * VV_HEAP_GRAIN : VV_HEAP_GRAIN; /* no object begins inside another */
	}
}

void vv_heap_walk(void (*fn)(void *arg, uintptr_t at, uint8_t mark), void *arg)
{
	for (unsigned i = 0; i < VV_HEAP_LATER; i++)
		walk(&lane[i], vv_heap_used(i), fn, arg);
}

/* Where there is no memory to count in, nothing is given back. */
static void adopt(void)
{
	struct lane *l = &lane[VV_HEAP_LATER];

	vv_heap.adopted = l->lo;
	vv_heap.n_adopted = l->used;
	vv_heap.plain = l->lo + l->used;
	vv_heap.n_plain = l->size - l->used;
	users = l->used ? vv_mem_map((l->used + STRETCH - 1) / STRETCH * sizeof(*users)) : NULL;
	if (users)
		walk(l, l->used, count, NULL);
}

void vv_heap_run(bool adopted)
{
	if (adopted)
		adopt();
	for (unsigned i = 0; i < VV_HEAP_LATER; i++)
		if (startup_arena[i])
			vv_je_set_decay(startup_arena[i] - 1, 10000);
	atomic_store(&vv_heap.phase, VV_HEAP_RUNNING);
	vv_caller_forget();
}

void vv_heap_disown(uintptr_t at)
{
	vv_je_free((void *)at);
}
