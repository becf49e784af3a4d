/* Nicolae and Cappello 2013's PROTECTED_PAGE_HANDLER: a thread of the program wants to write to a
 * write-protected page. The handler runs on that thread as a signal handler. So it does not
 * allocate, and takes no lock but that of the tiles. */
#include "engine/memory/write_fault.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/block_signals.h"
#include "base/held.h"
#include "base/mem.h"
#include "base/search.h"
#include "engine/memory/open_ahead.h"
#include "engine/memory/tiles.h"
#include "track/write_protect.h"
#include "track/memory.h"
#include "track/thread.h"
#include <time.h>

static struct vv_region *region_at(const struct vv_tiles *t, uintptr_t page)
{
	size_t i;

	VV_SEARCH(i, 0, t->geometry.n_by_address, t->geometry.by_address[i]->tracked->hi <= page);
	return i < t->geometry.n_by_address && t->geometry.by_address[i]->tracked->lo <= page ? t->geometry.by_address[i] : NULL;
}

static bool is_read(const struct vv_tile *x)
{
	return x->flags & (VV_TILE_HASHING | VV_TILE_COPYING | VV_TILE_READ_IN_PLACE);
}

/* The caller holds the lock and has taken the cells. The bytes are copied without the lock. */
static void copy(struct vv_tiles *t, struct vv_region *r, size_t tile, uint64_t groups)
{
	struct vv_tile *x = &t->geometry.tile[tile];

	VV_HELD(&t->lock);
	x->flags |= VV_TILE_COPYING;
	t->waiters.copying++;
	pthread_mutex_unlock(&t->lock);
	vv_tiles_copy(t, r, tile, groups);
	pthread_mutex_lock(&t->lock);
	x->flags &= (uint8_t)~VV_TILE_COPYING;
	t->waiters.copying--;
	pthread_cond_broadcast(&t->work_cond);
	pthread_cond_broadcast(&t->fault_cond);
}

static uint64_t uncopied(const struct vv_tiles *t, const struct vv_region *r, size_t tile)
{
	return vv_tiles_todo(t, r, tile) & ~vv_tiles_copied(t, r, tile);
}

/* A thread may wait for the flush without limit only if it holds nothing that the flush needs. A
 * handler may have interrupted the allocator and hold locks that the flush needs. If nothing
 * happens for QUIET_MS, the handler copies the tile, beyond the buffer if necessary. A copy is
 * impossible while the flush reads the tile. If moreover a thread stays in the allocator, the
 * handler gives the epoch up. Later handlers use the same finding, since they may run before the
 * interrupted thread continues. */
enum { QUIET_MS = 100, QUIETS = 10 };

struct patience {
	bool looked, endless;
};

static bool is_stuck(const struct vv_tiles *t)
{
	unsigned outs;

	return t->waiters.idle_waits && vv_mem_is_inside(&outs) && outs == t->waiters.idle_waits_outside;
}

static void note_quiet(struct vv_tiles *t)
{
	unsigned outs;
	bool inside = vv_mem_is_inside(&outs);

	t->waiters.idle_waits = inside && outs == t->waiters.idle_waits_outside ? t->waiters.idle_waits + 1 : inside;
	t->waiters.idle_waits_outside = outs;
}

static bool is_in_haste(const struct patience *p)
{
	return p->looked && !p->endless;
}

/* For a handler that can only wait. Returns true if it gives the epoch up. */
static bool gives_up(struct vv_tiles *t, const struct patience *p)
{
	bool gives = is_in_haste(p) && t->waiters.idle_waits >= QUIETS && is_stuck(t);

	t->waiters.must_fail |= gives;
	return gives;
}

static void look(struct patience *p)
{
	const struct vv_thread *self = vv_thread_self();

	p->looked = true;
	p->endless = !self || !self->blocked || !vv_block_signals_blocks(self->blocked);
}

static void wait_on(struct vv_tiles *t, struct patience *p)
{
	struct timespec until;

	if (!p->looked && is_stuck(t)) {
		look(p);
		return;
	}
	if (p->endless) {
		pthread_cond_wait(&t->fault_cond, &t->lock);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += QUIET_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	if (pthread_cond_timedwait(&t->fault_cond, &t->lock, &until) == 0)
		return;
	note_quiet(t);
	if (!p->looked)
		look(p);
}

/* Waits until the tile is stored or a copy has become possible. Nicolae and Cappello 2013 wait for
 * the page alone. While the ranks are being asked, nothing is stored. The waiting thread may be
 * inside MPI, and the ranks may need MPI to finish. So a copy is then made, beyond the buffer if
 * necessary. */
static void wait_for(struct vv_tiles *t, struct vv_region *r, size_t tile, struct patience *p)
{
	uint64_t start = vv_clock_ns();

	t->waiters.waiting++;
	pthread_cond_broadcast(&t->work_cond);
	while (t->plan.order.state[tile] != VV_WRITE_ORDER_PROCESSED) {
		uint64_t groups = uncopied(t, r, tile);
		bool haste = t->waiters.asking_ranks || is_in_haste(p);

		if (t->plan.order.state[tile] == VV_WRITE_ORDER_SCHEDULED && !(t->geometry.tile[tile].flags & VV_TILE_COPYING) && groups &&
		    (((t->waiters.copy_when_freed || haste) && vv_tiles_take_cells(t, r, tile, groups)) || (haste && vv_tiles_take_extra_cells(t, r, tile, groups)))) {
			vv_write_order_copied(&t->plan.order, (uint32_t)tile);
			copy(t, r, tile, groups);
			break;
		}
		if (t->plan.order.state[tile] == VV_WRITE_ORDER_SCHEDULED && !groups)
			break; /* another thread has copied it */
		if (gives_up(t, p))
			break;
		wait_on(t, p);
	}
	t->waiters.waiting--;
	pthread_cond_broadcast(&t->work_cond);
	vv_write_order_waited(&t->plan.order, (uint32_t)tile);
	t->meters.wait_ns += vv_clock_ns() - start;
}

/* Secures the content of the tile that the epoch needs, or gives the epoch up. */
static void secure(struct vv_tiles *t, struct vv_region *r, size_t tile, struct patience *p)
{
	struct vv_tile *x = &t->geometry.tile[tile];
	uint8_t before = t->plan.order.access[tile], after;
	uint64_t groups = uncopied(t, r, tile);
	bool room = (size_t)__builtin_popcountll(groups) <= t->copies.n_free && !(x->flags & VV_TILE_COPYING);
	enum vv_write_order_do what = vv_write_order_write(&t->plan.order, (uint32_t)tile, room);

	if (what == VV_WRITE_ORDER_COPY && vv_tiles_take_cells(t, r, tile, groups))
		copy(t, r, tile, groups);
	else if (what == VV_WRITE_ORDER_WAIT)
		wait_for(t, r, tile, p);
	while (is_read(x) && !gives_up(t, p))
		wait_on(t, p);
	after = t->plan.order.access[tile];
	if (before == VV_ACCESS_NONE && after != VV_ACCESS_NONE && !(x->flags & VV_TILE_OPEN)) {
		uint64_t n = (uint64_t)__builtin_popcountll(vv_tiles_groups(t, r, tile)) * t->geometry.group_len;

		vv_open_ahead_note_write(t, tile, what == VV_WRITE_ORDER_GO);
		t->meters.seen[after].bytes += n;
		t->meters.seen[after].pages += (n + vv_memory_page() - 1) / vv_memory_page();
	}
}

/* Is any tile on this page protected, from this tile on, upwards or downwards? A page that tiles
 * share is unprotected only when all of them may be written. These are two, or three if the chunk
 * size is below a page and does not divide it. */
static bool is_protected_at(const struct vv_tiles *t, const struct vv_region *r, size_t other, int step, uintptr_t page)
{
	for (; other >= r->tracked->first_tile && other < r->tracked->first_tile + r->tracked->n_tiles; other += (size_t)step) {
		uintptr_t lo, hi;

		vv_tiles_pages(t, r, other, &lo, &hi);
		if (page < lo || page >= hi)
			return false;
		if (!(t->geometry.tile[other].flags & VV_TILE_OPEN))
			return true;
	}
	return false;
}

/* Is the tile protected only because it lies between tiles that are being stored? The flush does
 * not read it. After the flush, first writes must still be seen, since they give the order. */
static bool is_idle(const struct vv_tiles *t, const struct vv_region *r, size_t tile)
{
	return t->plan.order.busy && r->tracked->method != VV_BY_WRITE_PROTECT && !(t->geometry.tile[tile].flags & VV_TILE_OPEN) && !vv_tiles_dirty(t, r, tile);
}

/* Is the tile stored, so that the flush no longer reads it? */
static bool is_done(const struct vv_tiles *t, const struct vv_region *r, size_t tile)
{
	(void)r;
	return t->geometry.tile[tile].flags & VV_TILE_OPEN || (t->plan.order.state[tile] == VV_WRITE_ORDER_PROCESSED && !is_read(&t->geometry.tile[tile]));
}

/* Extends the range by adjacent tiles for which `holds` is true, up to a limit. */
static void widen(const struct vv_tiles *t, const struct vv_region *r, size_t *first, size_t *last,
		  bool (*holds)(const struct vv_tiles *t, const struct vv_region *r, size_t tile))
{
	enum { MOST = 64 };
	size_t least = *first - r->tracked->first_tile < MOST ? r->tracked->first_tile : *first - MOST;
	size_t end = r->tracked->first_tile + r->tracked->n_tiles, most = end - *last < MOST ? end : *last + MOST;

	while (*first > least && holds(t, r, *first - 1))
		--*first;
	while (*last + 1 < most && holds(t, r, *last + 1))
		++*last;
}

/* If few mappings are left, the tile is unprotected together with its neighbours. These count as
 * written, too. */
static bool open_wide(struct vv_tiles *t, struct vv_region *r, size_t tile)
{
	size_t first = tile, last = tile;

	widen(t, r, &first, &last, is_done);
	if (first == last || !vv_write_fault_unprotect(t, r, first, last))
		return false;
	for (size_t k = first; k <= last; k++)
		vv_write_order_mark(&t->plan.order, (uint32_t)k);
	return true;
}

/* If the kernel refuses that, too, the whole region is unprotected at once, as soon as the flush no
 * longer needs it. */
static void open_region(struct vv_tiles *t, struct vv_region *r, struct patience *p)
{
	while (t->plan.order.busy && !gives_up(t, p))
		wait_on(t, p);
	vv_write_protect_disable(r->tracked->write_protect, r->tracked->lo, r->tracked->hi);
	for (size_t k = 0; k < r->tracked->n_tiles; k++) {
		t->geometry.tile[r->tracked->first_tile + k].flags |= VV_TILE_OPEN;
		vv_write_order_mark(&t->plan.order, (uint32_t)(r->tracked->first_tile + k));
	}
}

bool vv_write_fault_unprotect(struct vv_tiles *t, struct vv_region *r, size_t first, size_t last)
{
	uintptr_t lo, hi, ignored, page = vv_memory_page();

	VV_HELD(&t->lock);
	widen(t, r, &first, &last, is_idle); /* to keep the number of mappings small */
	vv_tiles_pages(t, r, first, &lo, &ignored);
	vv_tiles_pages(t, r, last, &ignored, &hi);
	if (lo < hi && is_protected_at(t, r, first - 1, -1, lo))
		lo += page;
	if (lo < hi && is_protected_at(t, r, last + 1, 1, hi - page))
		hi -= page;
	if (lo < hi && vv_write_protect_disable(r->tracked->write_protect, lo, hi) < 0)
		return false;
	for (size_t k = first; k <= last; k++)
		t->geometry.tile[k].flags |= VV_TILE_OPEN;
	return true;
}

void vv_write_fault_handle(void *session, uintptr_t page)
{
	struct varve *v = session;
	struct vv_tiles *t = v->tiles;
	uint64_t start = vv_clock_ns(), serial;
	struct patience patience = { 0 };
	struct vv_region *r;
	int cancel;

	/* Waiting here must not be a cancellation point. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&t->lock);
	t->waiters.in_handler++;
	r = region_at(t, page);
	/* A thread of ours must not wait for itself. While the ranks are being asked, MPI may write
	 * to the program's memory on such a thread. At other times it writes its own memory, which
	 * has replaced the program's at this address. */
	if (r && r->tracked->write_protected && !(!t->waiters.asking_ranks && t->plan.order.busy && vv_thread_is_own())) {
		uint64_t len = (uint64_t)t->geometry.group_len * t->geometry.tile_groups;
		uintptr_t p = (uintptr_t)r->p, last = page + vv_memory_page() - 1;
		size_t first = r->tracked->first_tile + (size_t)(page > p ? (page - p) / len : 0);
		size_t end = r->tracked->first_tile + (size_t)((last - p) / len);

		if (end >= r->tracked->first_tile + r->tracked->n_tiles)
			end = r->tracked->first_tile + r->tracked->n_tiles - 1;
		/* A checkpoint may have begun during the wait, and needs the tiles secured
		 * again. */
		do {
			serial = t->protection.serial;
			for (size_t k = first; k <= end; k++)
				if (!(t->geometry.tile[k].flags & VV_TILE_OPEN))
					secure(t, r, k, &patience);
		} while (serial != t->protection.serial);
		for (size_t k = first; k <= end; k++)
			if (!(t->geometry.tile[k].flags & VV_TILE_OPEN) && !vv_write_fault_unprotect(t, r, k, k) && !open_wide(t, r, k))
				open_region(t, r, &patience);
	}
	t->meters.fault_ns += vv_clock_ns() - start;
	if (--t->waiters.in_handler == 0)
		pthread_cond_broadcast(&t->fault_cond);
	pthread_mutex_unlock(&t->lock);
	pthread_setcancelstate(cancel, NULL);
}
