/* Finds groups, cells and pages, and ends tiles and flushes; see tiles.h. */
#include "engine/memory/tiles.h"
#include "engine/memory/open_ahead.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/block_signals.h"
#include "base/held.h"
#include "base/search.h"
#include "track/write_protect.h"
#include "track/memory.h"
#include "track/scan.h"
#include <string.h>
#include <sys/mman.h>
#include <time.h>

void vv_tiles_init(struct vv_tiles *t)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->work_cond, NULL);
	pthread_cond_init(&t->fault_cond, &attr);
	pthread_cond_init(&t->caller_cond, NULL);
	pthread_condattr_destroy(&attr);
}

void vv_tiles_fini(struct vv_tiles *t)
{
	pthread_cond_destroy(&t->caller_cond);
	pthread_cond_destroy(&t->fault_cond);
	pthread_cond_destroy(&t->work_cond);
	pthread_mutex_destroy(&t->lock);
}

/* ---- lookup ---------------------------------------------------------------------------------- */

struct vv_region *vv_tiles_region(const struct vv_tiles *t, size_t tile)
{
	return t->geometry.region[t->geometry.tile[tile].region];
}

static uint64_t get(const struct vv_tiles *t, const uint64_t *bits, const struct vv_region *r, size_t tile)
{
	size_t g = vv_tiles_group(t, r, tile);

	return bits[r->tracked->first_word + g / 64] >> g % 64 & vv_tiles_groups(t, r, tile);
}

static void set(const struct vv_tiles *t, uint64_t *bits, const struct vv_region *r, size_t tile, uint64_t groups)
{
	size_t g = vv_tiles_group(t, r, tile);
	uint64_t *word = &bits[r->tracked->first_word + g / 64];

	*word = (*word & ~(vv_tiles_groups(t, r, tile) << g % 64)) | groups << g % 64;
}

uint64_t vv_tiles_dirty(const struct vv_tiles *t, const struct vv_region *r, size_t tile)
{
	return get(t, t->geometry.dirty, r, tile);
}

size_t vv_tiles_next_dirty(const struct vv_tiles *t, const struct vv_region *r, size_t group)
{
	const uint64_t *word = &t->geometry.dirty[r->tracked->first_word];
	size_t n = r->tracked->n_groups, skipped = group % 64;

	for (; group < n; group += 64 - skipped, skipped = 0) {
		uint64_t left = word[group / 64] >> skipped;

		if (left)
			return group + (size_t)__builtin_ctzll(left);
	}
	return n;
}

uint64_t vv_tiles_todo(const struct vv_tiles *t, const struct vv_region *r, size_t tile)
{
	return get(t, t->geometry.todo, r, tile);
}

void vv_tiles_set_dirty(struct vv_tiles *t, const struct vv_region *r, size_t tile, uint64_t groups)
{
	set(t, t->geometry.dirty, r, tile, groups);
}

void vv_tiles_set_todo(struct vv_tiles *t, const struct vv_region *r, size_t tile, uint64_t groups)
{
	set(t, t->geometry.todo, r, tile, groups);
}

uint64_t vv_tiles_groups(const struct vv_tiles *t, const struct vv_region *r, size_t tile)
{
	size_t left = r->tracked->n_groups - vv_tiles_group(t, r, tile);
	size_t n = left < t->geometry.tile_groups ? left : t->geometry.tile_groups;

	return n == 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1;
}

uint64_t vv_tiles_copied(const struct vv_tiles *t, const struct vv_region *r, size_t tile)
{
	const uint32_t *cell = r->tracked->cell + vv_tiles_group(t, r, tile);
	uint64_t held = 0;

	for (uint64_t left = vv_tiles_groups(t, r, tile), k = 0; left; left >>= 1, k++)
		held |= (uint64_t)(cell[k] != 0) << k;
	return held;
}

uint64_t vv_tiles_unprotectable(const struct vv_tiles *t, const struct vv_region *r, size_t tile)
{
	uintptr_t p = (uintptr_t)r->p + (uint64_t)vv_tiles_group(t, r, tile) * t->geometry.group_len;
	uint64_t all = vv_tiles_groups(t, r, tile), bare = 0;

	if (r->tracked->lo == r->tracked->hi)
		return all;
	if (p >= r->tracked->lo && p + (uint64_t)t->geometry.tile_groups * t->geometry.group_len <= r->tracked->hi)
		return 0;
	for (size_t k = 0; all >> k & 1; k++) {
		uintptr_t at = p + k * t->geometry.group_len;
		size_t len = vv_tiles_group_len(t, r, vv_tiles_group(t, r, tile) + k);

		if (at < r->tracked->lo || at + len > r->tracked->hi)
			bare |= (uint64_t)1 << k;
		if (k == 63)
			break;
	}
	return bare;
}

const uint8_t *vv_tiles_bytes(const struct vv_tiles *t, const struct vv_region *r, size_t group)
{
	uint32_t cell = r->tracked->cell[group];

	return cell ? t->copies.cells + (uint64_t)(cell - 1) * t->geometry.group_len : r->p + (uint64_t)group * t->geometry.group_len;
}

void vv_tiles_pages(const struct vv_tiles *t, const struct vv_region *r, size_t tile, uintptr_t *lo, uintptr_t *hi)
{
	uintptr_t page = vv_memory_page();
	uintptr_t from = (uintptr_t)r->p + (uint64_t)vv_tiles_group(t, r, tile) * t->geometry.group_len;
	uintptr_t to = from + (uint64_t)t->geometry.tile_groups * t->geometry.group_len;

	from &= ~(page - 1);
	to = (to + page - 1) & ~(page - 1);
	*lo = from > r->tracked->lo ? from : r->tracked->lo;
	*hi = to < r->tracked->hi ? to : r->tracked->hi;
	if (*lo > *hi)
		*lo = *hi;
}

/* ---- cells ----------------------------------------------------------------------------------- */

bool vv_tiles_take_cells(struct vv_tiles *t, struct vv_region *r, size_t tile, uint64_t groups)
{
	uint32_t *cell = r->tracked->cell + vv_tiles_group(t, r, tile);

	VV_HELD(&t->lock);
	if ((size_t)__builtin_popcountll(groups) > t->copies.n_free)
		return false;
	for (; groups; groups &= groups - 1)
		cell[__builtin_ctzll(groups)] = 1 + t->copies.free_cell[--t->copies.n_free];
	return true;
}

bool vv_tiles_take_extra_cells(struct vv_tiles *t, struct vv_region *r, size_t tile, uint64_t groups)
{
	uint32_t *cell = r->tracked->cell + vv_tiles_group(t, r, tile);

	VV_HELD(&t->lock);
	if ((size_t)__builtin_popcountll(groups) > t->copies.max_more - t->copies.n_more)
		return false;
	for (; groups; groups &= groups - 1)
		cell[__builtin_ctzll(groups)] = (uint32_t)(1 + t->copies.n_cells + t->copies.n_more++);
	return true;
}

void vv_tiles_copy(const struct vv_tiles *t, const struct vv_region *r, size_t tile, uint64_t groups)
{
	size_t first = vv_tiles_group(t, r, tile);

	while (groups) {
		size_t k = (size_t)__builtin_ctzll(groups), n = 0, len = 0;

		do { /* while groups and cells are adjacent */
			len += vv_tiles_group_len(t, r, first + k + n);
			groups &= groups - 1;
			n++;
		} while (k + n < 64 && groups >> (k + n) & 1 && r->tracked->cell[first + k + n] == r->tracked->cell[first + k] + n);
		memcpy(t->copies.cells + (uint64_t)(r->tracked->cell[first + k] - 1) * t->geometry.group_len,
		       r->p + (uint64_t)(first + k) * t->geometry.group_len, len);
	}
}

void vv_tiles_free_cells(struct vv_tiles *t, struct vv_region *r, size_t tile, uint64_t groups)
{
	uint32_t *cell = r->tracked->cell + vv_tiles_group(t, r, tile);

	VV_HELD(&t->lock);
	for (; groups; groups &= groups - 1) {
		uint32_t *c = &cell[__builtin_ctzll(groups)];

		if (*c && *c <= t->copies.n_cells)
			t->copies.free_cell[t->copies.n_free++] = *c - 1;
		*c = 0;
	}
}

/* With no flush in progress, no thread stays long in the handler. But some threads may not have
 * left it yet. */
void vv_tiles_wait_handlers(struct vv_tiles *t)
{
	VV_HELD(&t->lock);
	while (t->waiters.in_handler)
		pthread_cond_wait(&t->fault_cond, &t->lock);
}

static void note_open(struct vv_tiles *t, const struct vv_region *r)
{
	for (size_t k = 0; k < r->tracked->n_tiles; k++)
		t->geometry.tile[r->tracked->first_tile + k].flags |= VV_TILE_OPEN;
}

void vv_tiles_unprotect(struct vv_tiles *t, struct vv_region *r)
{
	if (!r->tracked->write_protected)
		return;
	vv_write_protect_remove(r->tracked->write_protect, r->tracked->lo, r->tracked->hi);
	r->tracked->write_protected = false;
	note_open(t, r);
}

void vv_tiles_detach(struct varve *v, struct vv_region *r)
{
	struct vv_tiles *t = v->tiles;
	sigset_t mask;
	size_t i;

	vv_block_signals_brief(&mask);
	pthread_mutex_lock(&t->lock);
	VV_SEARCH(i, 0, t->geometry.n_by_address, t->geometry.by_address[i]->tracked->hi <= r->tracked->lo);
	if (i < t->geometry.n_by_address && t->geometry.by_address[i] == r) {
		if (r->tracked->method == VV_BY_SCAN)
			vv_scan_detach(t->protection.scan, r->tracked->lo, r->tracked->hi);
		vv_tiles_unprotect(t, r);
		memmove(&t->geometry.by_address[i], &t->geometry.by_address[i + 1],
			(t->geometry.n_by_address - i - 1) * sizeof(struct vv_region *));
		t->geometry.n_by_address--;
	}
	vv_tiles_wait_handlers(t);
	r->tracked->write_protected = false;
	r->tracked->method = VV_BY_DIGEST;
	r->tracked->lo = r->tracked->hi = 0;
	r->tracked->n_tiles = 0;
	t->stale = true;
	pthread_mutex_unlock(&t->lock);
	vv_block_signals_end(&mask);
}

static void open_all(struct vv_tiles *t)
{
	for (size_t i = 0; i < t->geometry.n_by_address; i++) {
		struct vv_region *r = t->geometry.by_address[i];
		double start;

		if (!r->tracked->write_protected)
			continue;
		start = vv_clock_own_s();
		if (vv_write_protect_disable(r->tracked->write_protect, r->tracked->lo, r->tracked->hi) < 0)
			vv_tiles_unprotect(t, r); /* page by page: some of its memory is gone */
		r->tracked->seconds_protected += vv_clock_own_s() - start;
		note_open(t, r);
	}
}

void vv_tiles_unprotect_all(struct varve *v)
{
	pthread_mutex_lock(&v->tiles->lock);
	open_all(v->tiles);
	for (size_t i = 0; i < v->n_regions; i++)
		v->region[i]->fresh = true;
	pthread_mutex_unlock(&v->tiles->lock);
}

static void open_stored(struct vv_tiles *t)
{
	if (t->protection.to_open)
		open_all(t);
	t->protection.to_open = false;
}

void vv_tiles_unprotect_stored(struct varve *v)
{
	pthread_mutex_lock(&v->tiles->lock);
	open_stored(v->tiles);
	pthread_mutex_unlock(&v->tiles->lock);
}

/* ---- the end of a tile, and of a flush ------------------------------------------------------- */

void vv_tiles_done(struct vv_tiles *t, size_t tile)
{
	struct vv_tile *x = &t->geometry.tile[tile];
	struct vv_region *r = vv_tiles_region(t, tile);
	uint64_t held = vv_tiles_copied(t, r, tile);

	VV_HELD(&t->lock);
	if (x->flags & VV_TILE_PLACED) {
		t->waiters.cells_in_blocks -= (size_t)__builtin_popcountll(vv_tiles_todo(t, r, tile) & held);
		t->waiters.groups_in_blocks -= (size_t)__builtin_popcountll(vv_tiles_todo(t, r, tile));
	}
	vv_tiles_free_cells(t, r, tile, held);
	vv_write_order_done(&t->plan.order, (uint32_t)tile);
	if (x->flags & VV_TILE_CALLER_WAITS && --t->waiters.caller_waits_for == 0)
		pthread_cond_broadcast(&t->caller_cond);
	x->flags &= (uint8_t)~(VV_TILE_CALLER_WAITS | VV_TILE_READ_IN_PLACE);
	pthread_cond_broadcast(&t->fault_cond);
	pthread_cond_broadcast(&t->work_cond);
}

void vv_tiles_sum(struct varve *v, struct varve_stats *st)
{
	struct vv_tiles *t = v->tiles;
	sigset_t mask;

	vv_block_signals_brief(&mask);
	pthread_mutex_lock(&t->lock);
	st->wait = t->meters.seen[VV_ACCESS_WAIT];
	st->cow = t->meters.seen[VV_ACCESS_COW];
	st->avoided = t->meters.seen[VV_ACCESS_AVOIDED];
	st->seconds_faults = (double)(t->meters.fault_after_ns + t->meters.fault_ns) / 1e9;
	t->meters.fault_reported_ns = t->meters.fault_ns;
	st->seconds_waits = (double)t->meters.wait_ns / 1e9;
	st->seconds_blocked = (double)t->meters.blocked_ns / 1e9;
	pthread_mutex_unlock(&t->lock);
	vv_block_signals_end(&mask);
}

void vv_tiles_accept(struct varve *v)
{
	struct vv_tiles *t = v->tiles;

	for (size_t k = 0; k < t->plan.n_queue; k++) {
		size_t tile = t->plan.queue[k];
		struct vv_region *r = vv_tiles_region(t, tile);
		size_t first = vv_tiles_group(t, r, tile);

		for (uint64_t left = vv_tiles_dirty(t, r, tile); left; left &= left - 1) {
			size_t g = first + (size_t)__builtin_ctzll(left);
			size_t at = vv_tiles_chunk(t, g), end = vv_tiles_chunk_end(t, r, g);

			memcpy(&r->was[at], &r->now[at], (end - at) * sizeof(*r->was));
		}
	}
	/* Threads that unprotect tiles read the dirty masks. */
	pthread_mutex_lock(&t->lock);
	if (t->geometry.n_words)
		memset(t->geometry.dirty, 0, t->geometry.n_words * sizeof(*t->geometry.dirty));
	pthread_mutex_unlock(&t->lock);
}

void vv_tiles_end(struct varve *v, bool ok)
{
	struct vv_tiles *t = v->tiles;

	pthread_mutex_lock(&t->lock);
	t->waiters.asking_ranks = false;
	while (t->waiters.copying)
		pthread_cond_wait(&t->work_cond, &t->lock);
	for (size_t k = 0; k < t->plan.n_queue; k++) {
		struct vv_tile *x = &t->geometry.tile[t->plan.queue[k]];
		struct vv_region *r = vv_tiles_region(t, t->plan.queue[k]);

		vv_tiles_free_cells(t, r, t->plan.queue[k], vv_tiles_copied(t, r, t->plan.queue[k]));
		*x = (struct vv_tile){ .flags = x->flags & VV_TILE_OPEN, .region = x->region };
	}
	memset(t->geometry.todo, 0, t->geometry.n_words * sizeof(*t->geometry.todo));
	if (ok)
		vv_open_ahead_end(t);
	t->plan.n_queue = 0;
	if (t->copies.n_more)
		madvise(t->copies.cells + t->copies.n_cells * t->geometry.group_len, t->copies.n_more * t->geometry.group_len, MADV_DONTNEED);
	t->waiters.caller_waits_for = t->waiters.cells_in_blocks = t->waiters.groups_in_blocks = t->copies.n_more = 0;
	if (ok)
		vv_write_order_end(&t->plan.order);
	else
		vv_write_order_fail(&t->plan.order);
	/* While the order is being learned, unwritten tiles are still watched. */
	t->protection.to_open = t->protection.is_protecting && v->tracking.tracker != VV_BY_WRITE_PROTECT && !(t->plan.learning && ok);
	if (!ok)
		open_stored(t);
	t->protection.is_protecting = t->waiters.broken = t->waiters.must_fail = false;
	pthread_cond_broadcast(&t->fault_cond);
	pthread_cond_broadcast(&t->caller_cond);
	pthread_mutex_unlock(&t->lock);
}
