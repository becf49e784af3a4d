/* Works ahead of the program: the next tiles in the expected order are copied as cells become free,
 * and unprotected once they are safe. The program then meets no write fault as long as it repeats
 * its pattern, but its writes are not seen either. So there are two kinds of epochs. Learning
 * epochs let every first write fault, as in Nicolae and Cappello 2013. The others rely on the
 * learned order until too many writes come at unexpected positions.
 *
 * Unprotecting a tile costs as much as the fault that it saves. Unprotecting all tiles together
 * costs a small part of that. So as long as the program has met no fault, tiles that are safe
 * without a copy stay protected, if necessary until the end. */
#include "engine/memory/open_ahead.h"
#include "base/clock.h"
#include "base/held.h"
#include "engine/memory/write_fault.h"
#include "engine/memory/tiles.h"
#include "track/write_protect.h"
#include "track/memory.h"

enum {
	STEP = 256, /* tiles copied and unprotected in one step */
	SKIP = 4,   /* after a fruitless look at so many tiles, one step is skipped */
	SPARE = 8,  /* tiles' worth of cells reserved for each waiting thread */
	/* A write is at its expected position if it is off by at most one in so many of the
	 * queue. */
	NEAR = 16,
	/* With more surprises than one in so many, the learned order is useless. */
	ODD = 64,
	/* After so many failed attempts, the order is relied on only if it was seen to repeat. */
	PATIENCE = 2,
};

void vv_open_ahead_check_order(struct vv_tiles *t)
{
	bool enough = t->plan.n_seen > t->plan.n_queue_last / 2, repeats = 5 * t->plan.n_hits > 4 * t->plan.n_seen;

	VV_HELD(&t->lock);
	if (t->plan.learning && enough && (repeats || t->plan.relapses < PATIENCE)) {
		t->plan.learning = false;
		if (repeats)
			t->plan.relapses = 0;
	} else if (!t->plan.learning && ODD * t->plan.n_surprises > t->plan.n_queue_last) {
		t->plan.learning = true;
		t->plan.relapses++;
	}
	t->plan.n_seen = t->plan.n_hits = t->plan.n_surprises = 0;
}

void vv_open_ahead_note_write(struct vv_tiles *t, size_t tile, bool safe)
{
	size_t place = t->plan.queue_position[tile], at = t->plan.order.counter;

	VV_HELD(&t->lock);
	t->plan.n_seen++;
	t->plan.n_hits += (place > at ? place - at : at - place) <= t->plan.n_queue / NEAR;
	t->plan.n_surprises += !t->plan.learning && !safe && place > t->plan.reach + 2 * STEP;
}

/* Is the tile safe, or can it be made safe by a copy now? */
static bool can_open(struct vv_tiles *t, struct vv_region *r, size_t tile, uint64_t *copy)
{
	uint64_t need = vv_tiles_todo(t, r, tile) & ~vv_tiles_copied(t, r, tile);
	size_t spare = t->waiters.waiting * SPARE * t->geometry.tile_groups;

	*copy = 0;
	if (t->geometry.tile[tile].flags & VV_TILE_COPYING)
		return false;
	if (t->plan.order.state[tile] == VV_WRITE_ORDER_PROCESSED || !need)
		return true;
	if (!(t->geometry.tile[tile].queue_flags & VV_TILE_DEDUPED))
		/* It will be deduped soon. If it is already stored, it needs no copy. */
		return false;
	if (t->plan.order.state[tile] != VV_WRITE_ORDER_SCHEDULED || (size_t)__builtin_popcountll(need) + spare > t->copies.n_free ||
	    !vv_tiles_take_cells(t, r, tile, need))
		return false;
	vv_write_order_copied(&t->plan.order, (uint32_t)tile);
	t->geometry.tile[tile].flags |= VV_TILE_COPYING;
	*copy = need;
	return true;
}

/* Shell's sort. The C library's sort may call the allocator. A program's handler may have
 * interrupted a thread in the allocator, and that thread then waits for our lock after a write
 * fault. */
static void sort(uint32_t *tile, size_t n)
{
	static const size_t gaps[] = { 132, 57, 23, 10, 4, 1 };

	for (size_t g = 0; g < sizeof(gaps) / sizeof(gaps[0]); g++)
		for (size_t i = gaps[g]; i < n; i++) {
			uint32_t x = tile[i];
			size_t k = i;

			for (; k >= gaps[g] && tile[k - gaps[g]] > x; k -= gaps[g])
				tile[k] = tile[k - gaps[g]];
			tile[k] = x;
		}
}

/* Removes tiles that a write fault has unprotected meanwhile. */
static size_t still_protected(const struct vv_tiles *t, uint32_t *tile, size_t n)
{
	size_t kept = 0;

	for (size_t k = 0; k < n; k++)
		if (!(t->geometry.tile[tile[k]].flags & VV_TILE_OPEN))
			tile[kept++] = tile[k];
	return kept;
}

/* The number of tiles, from the first on, that are adjacent in the region. */
static size_t run_of(const struct vv_region *r, const uint32_t *tile, size_t n)
{
	size_t k = 1;

	while (k < n && tile[k] == tile[k - 1] + 1 && tile[k] < r->tracked->first_tile + r->tracked->n_tiles)
		k++;
	return k;
}

/* Unprotects tiles of one region. For an unprotected tile, a remapping during the flush can no
 * longer be detected. So if the memory was remapped, the tiles stay as they are, and
 * vv_capture_check finds them. */
static void open_intact(struct vv_tiles *t, struct vv_region *r, const uint32_t *tile, size_t n)
{
	struct vv_memory_range range[STEP];
	size_t runs = 0, run;
	uintptr_t ignored;

	for (size_t k = 0; k < n; k += run) {
		run = run_of(r, tile + k, n - k);
		vv_tiles_pages(t, r, tile[k], &range[runs].lo, &ignored);
		vv_tiles_pages(t, r, tile[k + run - 1], &ignored, &range[runs].hi);
		runs += range[runs].lo < range[runs].hi;
	}
	if (!vv_write_protect_are_intact(r->tracked->write_protect, range, runs))
		return;
	for (size_t k = 0; k < n; k += run) {
		run = run_of(r, tile + k, n - k);
		vv_write_fault_unprotect(t, r, tile[k], tile[k + run - 1]);
	}
	for (size_t k = 0; k < n; k++)
		vv_write_order_presume(&t->plan.order, tile[k]);
}

/* Unprotects safe tiles. */
static void open_tiles(struct vv_tiles *t, uint32_t *tile, size_t n)
{
	for (size_t k = 0; k < n; k++)
		while (t->geometry.tile[tile[k]].flags & (VV_TILE_HASHING | VV_TILE_READ_IN_PLACE))
			pthread_cond_wait(&t->work_cond, &t->lock);
	n = still_protected(t, tile, n);
	sort(tile, n);
	for (size_t k = 0, end; k < n; k = end) {
		struct vv_region *r = vv_tiles_region(t, tile[k]);
		double start = vv_clock_own_s();

		for (end = k + 1; end < n && tile[end] < r->tracked->first_tile + r->tracked->n_tiles;)
			end++;
		open_intact(t, r, tile + k, end - k);
		r->tracked->seconds_protected += vv_clock_own_s() - start;
	}
}

struct open_ahead_step {
	struct vv_tiles *tiles;
	size_t n;
	bool copies; /* some of them are copied first */
	uint32_t tile[STEP];
	uint64_t copy[STEP]; /* groups */
};

/* Are tiles unprotected ahead of the program? */
static bool relies(const struct vv_tiles *t)
{
	return t->protection.is_protecting && t->waiters.copy_when_freed && !t->plan.learning;
}

static bool is_protected(const struct vv_tiles *t, size_t tile)
{
	const struct vv_region *r = vv_tiles_region(t, tile);

	return !(t->geometry.tile[tile].flags & (VV_TILE_OPEN | VV_TILE_CALLER_WAITS)) && r->tracked->method != VV_BY_WRITE_PROTECT && r->tracked->write_protected;
}

/* Chooses the next tiles that are safe or can be made safe. */
static void choose(struct open_ahead_step *s)
{
	struct vv_tiles *t = s->tiles;
	size_t from = t->plan.front;

	if (!t->plan.n_seen && !t->waiters.waiting)
		return;
	if (t->plan.n_skip && !t->plan.n_seen && !t->waiters.waiting) {
		t->plan.n_skip--;
		return;
	}
	for (; relies(t) && t->plan.front < t->plan.n_queue && s->n < STEP; t->plan.front++) {
		uint32_t tile = t->plan.queue[t->plan.front];

		if (!is_protected(t, tile))
			continue;
		if (!can_open(t, vv_tiles_region(t, tile), tile, &s->copy[s->n]))
			break;
		s->copies |= s->copy[s->n] != 0;
		s->tile[s->n++] = tile;
	}
	t->plan.reach = t->plan.front;
	if (s->copies || t->plan.n_seen)
		return;
	t->plan.front = from;
	t->plan.n_skip = s->n / SKIP; /* so that looking costs less than storing */
	s->n = 0;
}

static void copy_all(void *arg)
{
	struct open_ahead_step *s = arg;

	for (size_t k = 0; k < s->n; k++)
		vv_tiles_copy(s->tiles, vv_tiles_region(s->tiles, s->tile[k]), s->tile[k], s->copy[k]);
}

void vv_open_ahead_end(struct vv_tiles *t)
{
	VV_HELD(&t->lock);
	for (; relies(t) && t->plan.front < t->plan.n_queue; t->plan.front++)
		if (is_protected(t, t->plan.queue[t->plan.front]))
			vv_write_order_presume(&t->plan.order, t->plan.queue[t->plan.front]);
}

void vv_open_ahead_step(struct vv_tiles *t)
{
	struct open_ahead_step s = { .tiles = t };
	int rc;

	pthread_mutex_lock(&t->lock);
	choose(&s);
	if (s.n == 0) {
		pthread_mutex_unlock(&t->lock);
		return;
	}
	t->waiters.copying++;
	pthread_mutex_unlock(&t->lock);
	/* The program may have unmapped the memory. The flush will report that. */
	rc = vv_write_protect_try_read(copy_all, &s);
	pthread_mutex_lock(&t->lock);
	t->waiters.copying--;
	for (size_t k = 0; k < s.n; k++)
		if (s.copy[k])
			t->geometry.tile[s.tile[k]].flags &= (uint8_t)~VV_TILE_COPYING;
	/* A hashing thread may wait for the end of copying, and this thread for the end of
	 * hashing. */
	pthread_cond_broadcast(&t->work_cond);
	if (rc == 0)
		open_tiles(t, s.tile, s.n);
	pthread_cond_broadcast(&t->fault_cond);
	pthread_mutex_unlock(&t->lock);
}
