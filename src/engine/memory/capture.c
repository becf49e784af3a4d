/* What a checkpoint does before it returns: find what is dirty, copy of it what fits the buffer, in the order in which it is
 * expected to be written, and fence the rest. Copying a page costs a sixth of catching its first write, so fences stand only
 * where copies do not fit. */
#include "engine/memory/capture.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/memory/open_ahead.h"
#include "engine/memory/dirty.h"
#include "engine/memory/write_fault.h"
#include "engine/memory/early_hash.h"
#include "engine/grains/grain_sets.h"
#include "engine/memory/layout.h"
#include "engine/lost_memory.h"
#include "engine/memory/tiles.h"
#include "track/fence.h"
#include "track/memory.h"
#include "track/scan.h"
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
	HOLE = 256 << 10, /* bytes of clean tiles between dirty ones that are fenced along: cheaper than two fences */
	FEW_GROUPS = 8,   /* tiles of no more than this are opened one by one, and there are many */
};

/* ---- copies ------------------------------------------------------------------------------------------------------------- */

enum { COPY_STEP = 64 }; /* tiles */

struct copying {
	struct vv_tiles *tiles;
	size_t n; /* of the queue */
	_Atomic(struct vv_region *) gone; /* a region whose memory could not be read */
};

struct copying_step {
	struct copying *all;
	size_t step;
	struct vv_region *region; /* the one at hand */
};

static void copy_tiles(void *arg)
{
	struct copying_step *s = arg;
	struct vv_tiles *t = s->all->tiles;

	for (size_t k = s->step * COPY_STEP; k < s->all->n && k < (s->step + 1) * COPY_STEP; k++) {
		s->region = vv_tiles_region(t, t->queue[k]);
		vv_tiles_copy(t, s->region, t->queue[k], vv_tiles_held(t, s->region, t->queue[k]));
	}
}

static void copy_step(void *arg, size_t step)
{
	struct copying_step s = { arg, step, NULL };

	if (vv_fence_try(copy_tiles, &s) < 0)
		atomic_store(&s.all->gone, s.region);
}

/* What cannot be fenced is copied first. */
static void copy_bare(void *arg)
{
	struct copying_step *s = arg;
	struct vv_tiles *t = s->all->tiles;

	for (size_t i = 0; i < t->n_regions; i++) {
		struct vv_region *r = s->region = t->region[i];

		for (size_t k = r->first_tile; k < r->first_tile + r->n_tiles; k = vv_tiles_next_bare(r, k)) {
			uint64_t bare = vv_tiles_todo(t, r, k) & vv_tiles_bare(t, r, k);

			if (bare && vv_tiles_hold(t, r, k, bare))
				vv_tiles_copy(t, r, k, bare);
		}
	}
}

static int check_mapped(const struct varve *v)
{
	for (size_t i = 0; i < v->n_regions; i++)
		if (!v->region[i]->fine && !vv_memory_mapped(v->region[i]->p, v->region[i]->shape.len))
			return vv_lost_memory_error(v->region[i]);
	return 0;
}

/* Bytes by which the last group of each region reaches beyond it, where that group is copied, or else dirty. */
static uint64_t beyond(const struct vv_tiles *t, bool copied)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < t->n_regions; i++) {
		const struct vv_region *r = t->region[i];
		size_t g = r->n_groups - 1;

		if (r->n_tiles && (copied ? r->cell[g] != 0 : t->dirty[r->first_word + g / 64] >> g % 64 & 1))
			sum += t->group_len - vv_tiles_group_len(t, r, g);
	}
	return sum;
}

/* Then the tiles in their order, as long as there are cells. Unless writes to them are to be seen, tiles that are copied stay
 * open. */
static int copy_ahead(struct varve *v, bool eager, uint64_t *bytes)
{
	struct vv_tiles *t = &v->tiles;
	size_t before = t->n_free;
	struct copying c = { .tiles = t };
	struct copying_step bare = { &c, 0, NULL };

	if (vv_fence_try(copy_bare, &bare) < 0)
		return vv_lost_memory_error(bare.region);
	for (; eager && c.n < t->n_queue && t->order.state[t->queue[c.n]] == VV_WRITE_ORDER_SCHEDULED; c.n++) {
		size_t tile = t->queue[c.n];
		struct vv_region *r = vv_tiles_region(t, tile);

		if (!vv_tiles_hold(t, r, tile, vv_tiles_dirty(t, r, tile) & ~vv_tiles_held(t, r, tile)))
			break;
	}
	vv_pool_each(v->pool, (c.n + COPY_STEP - 1) / COPY_STEP, copy_step, &c);
	t->n_copied = c.n;
	*bytes = (before - t->n_free) * (uint64_t)t->group_len - beyond(t, true);
	return c.gone ? vv_lost_memory_error(c.gone) : 0;
}

/* ---- fences -------------------------------------------------------------------------------------------------------------- */

/* mprotect can be laid over a scan's marks. Where there are none, userfaultfd marks single pages without splitting mappings:
 * opening a page somewhere costs 2 microseconds instead of 4.4, a fault there 3.4 instead of 5.9 (measured). */
static struct vv_fence *fence_for(struct varve *v, const struct vv_region *r)
{
	struct vv_tiles *t = &v->tiles;

	if (v->tracker == VV_BY_FENCE || r->how != VV_BY_DIGEST || t->tile_groups > FEW_GROUPS || t->no_fence_fine)
		return t->fence;
	if (!t->fence_fine && vv_fence_new(VV_FENCE_SIGBUS, vv_write_fault_ask, v, &t->fence_fine) < 0) {
		vv_err_clear();
		t->no_fence_fine = true;
	}
	return t->fence_fine ? t->fence_fine : t->fence;
}

static void put_behind(struct vv_tiles *t, struct vv_region *r, struct vv_fence *fence)
{
	if (r->fenced && r->fence == fence)
		return;
	vv_tiles_unfence(t, r);
	r->fenced = vv_fence_add(fence, r->lo, r->hi) == 0;
	r->fence = fence;
}

/* The region's memory takes no fence, for the reason that the last error says. */
static void leave_open(struct varve *v, struct vv_region *r)
{
	vv_log_info("region '%s' is copied or stored before varve_checkpoint returns: %s", r->name, vv_err_last());
	vv_err_clear();
	if (r->how == VV_BY_SCAN)
		vv_scan_detach(v->tiles.scan, r->lo, r->hi);
	r->how = VV_BY_DIGEST;
	r->lo = r->hi = 0;
}

static bool fence_region(struct varve *v, struct vv_region *r)
{
	put_behind(&v->tiles, r, fence_for(v, r));
	if (!r->fenced)
		put_behind(&v->tiles, r, v->tiles.fence);
	if (r->fenced && v->tracker == VV_BY_FENCE)
		r->how = VV_BY_FENCE;
	if (!r->fenced)
		leave_open(v, r);
	return r->fenced;
}

static void unfence_at(void *arg, uintptr_t lo, uintptr_t hi)
{
	struct vv_tiles *t = arg;

	for (size_t i = 0; i < t->n_by_address; i++)
		if (t->by_address[i]->lo < hi && t->by_address[i]->hi > lo)
			vv_tiles_unfence(t, t->by_address[i]);
}

/* The fence, and the regions in it; a region that cannot be fenced is left out. */
static int need_fence(struct varve *v)
{
	struct vv_tiles *t = &v->tiles;
	bool sigbus = strcmp(vv_conf_text(&v->conf, "tracker"), "sigbus") == 0;
	int rc = t->fence ? 0 : vv_fence_new(sigbus ? VV_FENCE_SIGBUS : VV_FENCE_MPROTECT, vv_write_fault_ask, v, &t->fence);
	size_t kept = 0;

	if (rc == 0)
		rc = vv_fence_find_protected(t->fence, 0, UINTPTR_MAX, unfence_at, t);
	if (rc)
		return rc;
	for (size_t i = 0; i < t->n_by_address; i++)
		if (fence_region(v, t->by_address[i]))
			t->by_address[kept++] = t->by_address[i];
	t->n_by_address = kept;
	return 0;
}

/* To be stored, and first writes to it are to be seen. */
static bool is_due(const struct vv_tiles *t, size_t tile)
{
	return t->order.state[tile] == VV_WRITE_ORDER_SCHEDULED && t->order.access[tile] == VV_ACCESS_NONE;
}

static bool shall_shut(const struct vv_tiles *t, const struct vv_region *r, size_t tile)
{
	if (!(t->tile[tile].flags & VV_TILE_OPEN))
		return false;
	return r->how == VV_BY_FENCE || is_due(t, tile);
}

static int shut_run(struct vv_tiles *t, struct vv_region *r, size_t first, size_t last)
{
	uintptr_t lo, hi, ignored;
	int rc;

	vv_tiles_pages(t, r, first, &lo, &ignored);
	vv_tiles_pages(t, r, last, &ignored, &hi);
	if (lo >= hi)
		return 0;
	rc = vv_fence_shut(r->fence, lo, hi);
	for (size_t k = first; rc == 0 && k <= last; k++)
		t->tile[k].flags &= (uint8_t)~VV_TILE_OPEN;
	return rc;
}

/* Runs of tiles, small holes included. */
static int shut_region(struct vv_tiles *t, struct vv_region *r)
{
	size_t end = r->first_tile + r->n_tiles, k = r->first_tile, hole = HOLE / (t->tile_groups * t->group_len) + 1;
	int rc = 0;

	while (rc == 0 && k < end) {
		size_t first, last;

		while (k < end && !shall_shut(t, r, k))
			k++;
		if (k == end)
			break;
		first = last = k;
		for (; k < end && k - last <= hole; k++)
			if (shall_shut(t, r, k))
				last = k;
		rc = shut_run(t, r, first, last);
	}
	return rc;
}

/* Of a region that was shut first: where for long nothing is waited for, it opens again. */
static void open_holes(struct vv_tiles *t, struct vv_region *r)
{
	size_t end = r->first_tile + r->n_tiles, k = r->first_tile, hole = HOLE / (t->tile_groups * t->group_len) + 1;

	while (k < end) {
		size_t first = k;

		while (k < end && !is_due(t, k))
			k++;
		if (k - first > hole)
			vv_write_fault_open(t, r, first, k - 1);
		while (k < end && is_due(t, k))
			k++;
	}
}

/* Is there anything dirty that has no copy? */
static bool overflows(const struct vv_tiles *t)
{
	for (size_t k = t->n_queue; k-- > 0;) {
		size_t tile = t->queue[k];
		struct vv_region *r = vv_tiles_region(t, tile);

		if (vv_tiles_todo(t, r, tile) & ~vv_tiles_held(t, r, tile))
			return true;
	}
	return false;
}

static void find_must(struct vv_tiles *t)
{
	for (size_t i = 0; i < t->n_regions; i++) {
		struct vv_region *r = t->region[i];

		for (size_t k = r->first_tile; k < r->first_tile + r->n_tiles; k = vv_tiles_next_bare(r, k))
			if (vv_tiles_todo(t, r, k) & vv_tiles_bare(t, r, k) & ~vv_tiles_held(t, r, k)) {
				t->tile[k].flags |= VV_TILE_MUST;
				t->must++;
			}
	}
}

/* The memory of a tile. */
static struct vv_memory_range range_of(const struct vv_tiles *t, const struct vv_region *r, size_t tile)
{
	uint64_t len = (uint64_t)t->tile_groups * t->group_len, at = (tile - r->first_tile) * len, end = at + len;

	return (struct vv_memory_range){ (uintptr_t)r->p + at, (uintptr_t)r->p + (end < r->shape.len ? end : r->shape.len), false };
}

static const struct vv_region *region_at(const struct vv_tiles *t, uintptr_t lo, uintptr_t hi)
{
	for (size_t i = 0; i < t->n_regions; i++)
		if ((uintptr_t)t->region[i]->p < hi && (uintptr_t)t->region[i]->p + t->region[i]->shape.len > lo)
			return t->region[i];
	return NULL;
}

/* Memory that takes no fence may be such that nobody can read: the call, which waits for it, says so. */
static int check_must(const struct vv_tiles *t)
{
	struct vv_memory_range *must = vv_mem_new(t->must, sizeof(*must));
	uintptr_t lo, hi;
	size_t n = 0;
	bool lost;

	if (!must)
		return VV_ENOMEM;
	for (size_t k = 0; k < t->n_queue && n < t->must; k++)
		if (t->tile[t->queue[k]].flags & VV_TILE_MUST)
			must[n++] = range_of(t, vv_tiles_region(t, t->queue[k]), t->queue[k]);
	lost = vv_lost_memory_find(must, n, &lo, &hi);
	vv_mem_free(must);
	return lost ? vv_lost_memory_error(region_at(t, lo, hi)) : 0;
}

/* A region that was mapped anew in part has lost a part of its fence: it is fenced once more, all of it. */
static int shut_again(struct vv_tiles *t, struct vv_region *r)
{
	int rc;

	vv_tiles_unfence(t, r);
	rc = vv_fence_add(r->fence, r->lo, r->hi);
	r->fenced = rc == 0;
	return rc == 0 ? shut_region(t, r) : rc;
}

/* Memory that was taken for fenced and cannot be (large pages, of which a part is the region's; no more mappings) is left open. */
static void shut_all(struct varve *v)
{
	struct vv_tiles *t = &v->tiles;
	size_t kept = 0;

	for (size_t i = 0; i < t->n_by_address; i++) {
		struct vv_region *r = t->by_address[i];
		bool both_ways = t->fencing && (r->scattered || r->shut_first);
		bool timed = both_ways || r->how == VV_BY_SCAN;
		double start = timed ? vv_clock_own_s() : 0, took;

		if (r->fenced && shut_region(t, r) < 0 && shut_again(t, r) < 0) {
			vv_tiles_unfence(t, r);
			leave_open(v, r);
			continue;
		}
		t->by_address[kept++] = r;
		if (r->shut_first)
			open_holes(t, r);
		took = timed ? vv_clock_own_s() - start : 0;
		r->seconds_fenced += took;
		if (both_ways)
			vv_cheaper_way_note(&r->ways, r->shut_first, r->seconds_found + took);
	}
	t->n_by_address = kept;
}

/* ---- all of it ----------------------------------------------------------------------------------------------------------- */

/* A word of bits at a time; a tile's bits never lie in two. */
static void mark_dirty(struct vv_tiles *t, const struct vv_region *r)
{
	uint64_t one = t->tile_groups == 64 ? UINT64_MAX : ((uint64_t)1 << t->tile_groups) - 1;

	for (size_t w = 0; w * 64 < r->n_groups; w++)
		for (uint64_t bits = t->dirty[r->first_word + w]; bits;) {
			size_t k = (size_t)__builtin_ctzll(bits) / t->tile_groups;

			vv_write_order_mark(&t->order, (uint32_t)(r->first_tile + w * (64 / t->tile_groups) + k));
			bits &= ~(one << k * t->tile_groups);
		}
}

static uint64_t list_dirty(struct vv_tiles *t, size_t *chunks)
{
	uint64_t groups = 0;
	uint32_t tile;

	for (size_t i = 0; i < t->n_regions; i++)
		mark_dirty(t, t->region[i]);
	vv_write_order_begin(&t->order);
	t->n_queue = t->front = t->reach = 0;
	while ((tile = vv_write_order_eager(&t->order)) != VV_WRITE_ORDER_NONE) {
		t->place[tile] = (uint32_t)t->n_queue;
		t->queue[t->n_queue++] = tile;
	}
	t->n_queue_last = t->n_queue;
	memcpy(t->todo, t->dirty, t->n_words * sizeof(*t->todo));
	for (size_t i = 0; i < t->n_words; i++)
		groups += (uint64_t)__builtin_popcountll(t->dirty[i]);
	*chunks = groups * t->group_chunks;
	return groups * t->group_len - beyond(t, false);
}

/* First writes since the last epoch was stored: those that were seen, less those that met its flush. */
static void count_after(struct vv_tiles *t, uint64_t pages, struct varve_stats *st)
{
	uint64_t met = t->seen[VV_ACCESS_WAIT].pages + t->seen[VV_ACCESS_COW].pages + t->seen[VV_ACCESS_AVOIDED].pages;

	st->after.pages = pages > met ? pages - met : 0;
	st->after.bytes = st->after.pages * vv_memory_page();
	memset(t->seen, 0, sizeof(t->seen));
	t->fault_after_ns = t->fault_ns - t->fault_told_ns;
	t->fault_ns = t->fault_told_ns = t->wait_ns = t->blocked_ns = 0;
}

/* A system call is writing into these pages at this moment, and cannot be held up: they stay open, and are copied whatever it
 * takes. What of the call's bytes is in the epoch is a matter of chance, but it must not change between hashing and storing. */
static void copy_entered(void *arg, uintptr_t lo, uintptr_t hi)
{
	struct varve *v = arg;
	struct vv_tiles *t = &v->tiles;
	uint64_t len = (uint64_t)t->tile_groups * t->group_len;

	for (size_t i = 0; i < t->n_regions; i++) {
		struct vv_region *r = t->region[i];
		uintptr_t p = (uintptr_t)r->p;
		size_t first, last;

		if (r->n_tiles == 0 || hi <= p || lo >= p + r->shape.len)
			continue;
		first = r->first_tile + (size_t)(lo > p ? (lo - p) / len : 0);
		last = r->first_tile + (size_t)((hi - 1 - p) / len);
		last = last < r->first_tile + r->n_tiles ? last : r->first_tile + r->n_tiles - 1;
		for (size_t k = first; k <= last; k++) {
			uint64_t need = vv_tiles_todo(t, r, k) & ~vv_tiles_held(t, r, k);

			if (need && !vv_tiles_hold(t, r, k, need) && !vv_tiles_hold_more(t, r, k, need))
				continue; /* no address space for it */
			vv_tiles_copy(t, r, k, need);
			vv_write_order_copied(&t->order, (uint32_t)k);
		}
		if (r->fenced)
			vv_write_fault_open(t, r, first, last);
	}
}

/* In which order copies are stored nobody notices. So it is that of memory: a restart then reads them from one end of the layer to the other. Where each was
 * expected stays noted. */
static void queue_copied(struct vv_tiles *t)
{
	size_t n = 0;

	for (size_t k = vv_write_order_scheduled(&t->order, 0); n < t->n_copied && k < t->n; k = vv_write_order_scheduled(&t->order, k + 1))
		if (t->place[k] < t->n_copied) {
			t->queue[n++] = (uint32_t)k;
			vv_write_order_copied(&t->order, (uint32_t)k);
		}
}

/* What has no copy must not be changed before it is stored. */
static int fence_rest(struct varve *v)
{
	struct vv_tiles *t = &v->tiles;
	int rc;

	t->fencing = t->overflowed = overflows(t);
	for (size_t i = 0; i < t->n_by_address && !t->fencing; i++) {
		struct vv_region *r = t->by_address[i];

		if (r->shut_first)
			vv_write_fault_open(t, r, r->first_tile, r->first_tile + r->n_tiles - 1);
	}
	if (!t->fencing)
		return 0;
	rc = need_fence(v);
	if (rc)
		return rc;
	for (size_t k = 0; k < t->n_copied && v->tracker != VV_BY_FENCE && !t->learning; k++)
		vv_write_order_presume(&t->order, t->queue[k]);
	return 0;
}

int vv_capture_take(struct vv_layer_writer *p, size_t *chunks)
{
	struct varve *v = p->v;
	struct vv_tiles *t = &v->tiles;
	struct varve_stats *st = &p->st;
	uint64_t pages = 0;
	int rc = check_mapped(v);

	if (rc == 0)
		rc = vv_layout_run(v);
	if (rc == 0 && v->tracker == VV_BY_FENCE)
		rc = need_fence(v);
	if (rc)
		return rc;
	pthread_mutex_lock(&t->lock);
	t->serial++;
	vv_dirty_find(v, &pages);
	rc = vv_dirty_audit(v);
	if (rc) {
		pthread_mutex_unlock(&t->lock);
		return rc;
	}
	count_after(t, pages, st);
	vv_open_ahead_judge(t);
	st->bytes_dirty += list_dirty(t, chunks);
	vv_layout_grant(v, *chunks);
	if (v->tracker == VV_BY_FENCE)
		shut_all(v); /* before anything is copied: who writes there afterwards is seen */
	if (v->async)
		rc = vv_early_hash_run(p);
	if (rc == 0 && v->async)
		rc = copy_ahead(v, vv_conf_bool(&v->conf, "eager"), &st->bytes_copied);
	if (rc == 0 && v->async)
		rc = fence_rest(v);
	if (rc == 0 && v->async)
		queue_copied(t);
	if (rc == 0 && t->fencing)
		shut_all(v);
	if (rc == 0)
		vv_fence_entered(copy_entered, v);
	if (rc == 0 && t->fencing)
		find_must(t);
	if (rc == 0 && t->must)
		rc = check_must(t);
	pthread_mutex_unlock(&t->lock);
	if (rc)
		vv_tiles_end(v, false);
	return rc;
}

void vv_capture_settle(struct varve *v)
{
	struct vv_tiles *t = &v->tiles;

	pthread_mutex_lock(&t->lock);
	while (t->must)
		pthread_cond_wait(&t->freed, &t->lock);
	pthread_mutex_unlock(&t->lock);
}

int vv_capture_check(const struct vv_layer_writer *p)
{
	struct varve *v = p->v;
	struct vv_tiles *t = &v->tiles;
	int rc = 0;

	pthread_mutex_lock(&t->lock);
	if (t->spoiled)
		rc = vv_err_set(VV_EINVAL, "a signal handler wrote to a region, and could not wait until that was stored: it had interrupted what storing needs, too, such as the allocator; let "
					   "handlers write no region, or more threads have arenas of their own (MALLOC_ARENA_MAX)");
	for (size_t i = 0; rc == 0 && t->fencing && i < t->n_by_address; i++)
		if (t->by_address[i]->fenced && !vv_dirty_is_intact(v, t->by_address[i]))
			rc = vv_dirty_is_blind(v, t->by_address[i]) ? VV_EIO :
			     vv_err_set(VV_EINVAL,
					"epoch %" PRIu64 " is lost: the memory of region '%s' was freed, unmapped or moved before it was stored; call varve_wait, "
					"varve_unprotect or varve_close before that",
					p->epoch, t->by_address[i]->name);
	pthread_mutex_unlock(&t->lock);
	return rc;
}
