/* What a checkpoint does before it returns: find what is dirty, copy of it what fits the buffer, in the order in which it is
 * expected to be written, and fence the rest. Copying a page costs a sixth of catching its first write, so fences stand only
 * where copies do not fit; they stand around the copied tiles too, because the order in which those are written is what
 * the next checkpoint goes by. */
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "engine/tiles.h"
#include "track/fence.h"
#include "track/memory.h"
#include "track/scan.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	HOLE = 4, /* clean tiles between dirty ones that are fenced along: cheaper than two fences */
};

/* Above this share of dirty pages it is cheaper to compare everything than to catch first writes. */
static const double DENSE = 0.06;

/* ---- what is dirty ---------------------------------------------------------------------------------------------------- */

struct seen {
	struct vv_tiles *tiles;
	struct vv_region *region;
	uint64_t pages;
};

/* The groups that the pages lo..hi touch. */
static void mark_pages(void *arg, uintptr_t lo, uintptr_t hi)
{
	struct seen *s = arg;
	struct vv_tiles *t = s->tiles;
	struct vv_region *r = s->region;
	uintptr_t p = (uintptr_t)r->p;
	size_t first = lo > p ? (size_t)((lo - p) / t->group_len) : 0;
	size_t last = (size_t)((hi - 1 - p) / t->group_len);

	s->pages += (hi - lo) / vv_memory_page();
	last = last < r->n_groups ? last : r->n_groups - 1;
	for (size_t g = first; g <= last; g++)
		t->tile[r->first_tile + g / t->tile_groups].dirty |= (uint64_t)1 << g % t->tile_groups;
}

static void mark_all(struct vv_tiles *t, struct vv_region *r)
{
	for (size_t k = 0; k < r->n_tiles; k++)
		t->tile[r->first_tile + k].dirty = vv_tiles_groups(t, r, r->first_tile + k);
}

/* The ends of a region lie on pages that are not its own and not watched. */
static void mark_ends(struct vv_tiles *t, struct vv_region *r)
{
	size_t last = r->first_tile + r->n_tiles - 1;

	t->tile[r->first_tile].dirty |= vv_tiles_bare(t, r, r->first_tile);
	t->tile[last].dirty |= vv_tiles_bare(t, r, last);
}

static void watch(struct varve *v, struct vv_region *r)
{
	if (vv_scan_attach(v->tiles.scan, r->lo, r->hi) == 0) {
		r->how = VV_BY_SCAN;
		return;
	}
	vv_log_info("region '%s' is compared, not tracked: %s", r->name, vv_err_last());
	vv_err_clear();
	r->backoff = UINT32_MAX / 2;
	r->patience = r->backoff;
}

static void unwatch(struct varve *v, struct vv_region *r)
{
	vv_scan_detach(v->tiles.scan, r->lo, r->hi);
	r->how = VV_BY_DIGEST;
	r->backoff = r->backoff ? 2 * r->backoff : 4;
	r->patience = r->backoff;
}

/* Written pages of a watched region. If much of it is written every time, watching costs more than it saves. */
static uint64_t collect(struct varve *v, struct vv_region *r)
{
	struct seen s = { &v->tiles, r, 0 };
	double all = (double)((r->hi - r->lo) / vv_memory_page());

	if (vv_scan_collect(v->tiles.scan, r->lo, r->hi, mark_pages, &s) < 0) {
		vv_log_info("region '%s': %s; all of it is compared", r->name, vv_err_last());
		vv_err_clear();
		vv_scan_detach(v->tiles.scan, r->lo, r->hi);
		r->how = VV_BY_DIGEST;
		watch(v, r);
		mark_all(&v->tiles, r);
		return 0;
	}
	mark_ends(&v->tiles, r);
	if (v->watch_auto && (double)s.pages > DENSE * all)
		unwatch(v, r);
	return s.pages;
}

/* Tiles that were opened by a write. */
static uint64_t collect_opened(struct varve *v, struct vv_region *r)
{
	struct vv_tiles *t = &v->tiles;
	uint64_t pages = 0;

	for (size_t k = r->first_tile; k < r->first_tile + r->n_tiles; k++) {
		if (!(t->tile[k].flags & VV_TILE_OPEN))
			continue;
		t->tile[k].dirty = vv_tiles_groups(t, r, k);
		pages += (uint64_t)__builtin_popcountll(t->tile[k].dirty) * t->group_len / vv_memory_page();
	}
	mark_ends(t, r);
	return pages;
}

/* Should a region that is compared whole be watched? If little of it changed, and not too often in vain. */
static void reconsider(struct varve *v, struct vv_region *r)
{
	if (v->tracker != VV_BY_SCAN || r->lo == r->hi || !v->tiles.scan)
		return;
	if (r->patience)
		r->patience--;
	else if (!v->watch_auto || (double)r->changed <= DENSE * (double)r->shape.len || r->backoff == 0)
		watch(v, r);
}

/* Fills the tiles' dirty masks; pages that were seen to be written are counted. */
static void find_dirty(struct varve *v, uint64_t *pages)
{
	struct vv_tiles *t = &v->tiles;

	for (size_t i = 0; i < t->n_regions; i++) {
		struct vv_region *r = t->region[i];

		bool whole = r->fresh || r->how == VV_BY_DIGEST;

		if (r->n_tiles == 0)
			continue;
		if (r->how == VV_BY_SCAN)
			*pages += collect(v, r);
		else if (r->how == VV_BY_FENCE)
			*pages += collect_opened(v, r);
		else
			reconsider(v, r);
		if (whole)
			mark_all(t, r);
		r->fresh = false;
		r->changed = 0;
	}
}

/* ---- audit ------------------------------------------------------------------------------------------------------------ */

static uint64_t draw(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static int audit_group(struct varve *v, struct vv_region *r, size_t g)
{
	const struct vv_tiles *t = &v->tiles;

	for (size_t i = vv_tiles_chunk(t, g); i < vv_tiles_chunk_end(t, r, g); i++) {
		const struct vv_digest *old = vv_region_digest(v, r, i);
		struct vv_digest now;

		v->digest(r->p + (uint64_t)i * r->shape.chunk, vv_region_chunk_len(r, i), &now);
		if (!old || vv_digest_equal(old, &now))
			continue;
		r->fresh = true;
		r->untracked = true;
		return vv_err_set(VV_EMISMATCH,
				  "audit: region '%s' changed at offset %" PRIu64 " without being seen by tracker %s; is it written by a "
				  "device or another process? It is compared whole from now on (see varve_untrack)",
				  r->name, (uint64_t)i * r->shape.chunk, vv_conf_text(&v->conf, "tracker"));
	}
	return 0;
}

/* Random groups that the tracker says are as they were. A miss is an error, and the region is not tracked any more. */
static int audit(struct varve *v)
{
	struct vv_tiles *t = &v->tiles;
	uint64_t state = vv_clock_ns();
	int rc = 0;

	for (unsigned n = 0; rc == 0 && t->n && n < v->audit; n++) {
		size_t tile = (size_t)(draw(&state) % t->n);
		struct vv_region *r = t->region[t->tile[tile].region];
		uint64_t clean = vv_tiles_groups(t, r, tile) & ~t->tile[tile].dirty;
		unsigned skip = clean ? (unsigned)(draw(&state) % (unsigned)__builtin_popcountll(clean)) : 0;

		if (!clean)
			continue;
		while (skip--)
			clean &= clean - 1;
		rc = audit_group(v, r, vv_tiles_group(t, r, tile) + (size_t)__builtin_ctzll(clean));
		if (rc)
			t->stale = true;
	}
	return rc;
}

/* ---- copies ------------------------------------------------------------------------------------------------------------- */

static void reset_cells(struct vv_tiles *t)
{
	for (size_t i = 0; i < t->n_cells; i++)
		t->free_cell[i] = (uint32_t)(t->n_cells - 1 - i); /* taken from the end: ascending */
	t->n_free = t->n_cells;
}

static void copy_one(void *arg, size_t k)
{
	struct vv_tiles *t = arg;
	size_t tile = t->queue[k];
	struct vv_region *r = t->region[t->tile[tile].region];

	vv_tiles_copy(t, r, tile, vv_tiles_held(t, r, tile));
}

/* First what cannot be fenced, then the tiles in their order, as long as there are cells. Bytes copied. */
static uint64_t copy_ahead(struct varve *v, bool eager)
{
	struct vv_tiles *t = &v->tiles;
	size_t before = t->n_free, n = 0;

	for (size_t k = 0; k < t->n_queue; k++) {
		size_t tile = t->queue[k];
		struct vv_region *r = t->region[t->tile[tile].region];

		vv_tiles_hold(t, r, tile, t->tile[tile].dirty & vv_tiles_bare(t, r, tile));
	}
	for (; eager && n < t->n_queue; n++) {
		size_t tile = t->queue[n];
		struct vv_region *r = t->region[t->tile[tile].region];

		if (!vv_tiles_hold(t, r, tile, t->tile[tile].dirty & ~vv_tiles_held(t, r, tile)))
			break;
		vv_order_copied(&t->order, (uint32_t)tile);
	}
	if (before != t->n_free)
		vv_pool_each(v->pool, t->n_queue, copy_one, t);
	return (before - t->n_free) * (uint64_t)t->group_len;
}

/* ---- fences -------------------------------------------------------------------------------------------------------------- */

static bool fence_region(struct varve *v, struct vv_region *r)
{
	if (!r->fenced)
		r->fenced = vv_fence_add(v->tiles.fence, r->lo, r->hi) == 0;
	if (r->fenced && v->tracker == VV_BY_FENCE)
		r->how = VV_BY_FENCE;
	if (r->fenced)
		return true;
	vv_log_info("region '%s' is copied or stored before varve_checkpoint returns: %s", r->name, vv_err_last());
	vv_err_clear();
	if (r->how == VV_BY_SCAN)
		vv_scan_detach(v->tiles.scan, r->lo, r->hi);
	r->how = VV_BY_DIGEST;
	r->lo = r->hi = 0;
	return false;
}

/* The fence, and the regions in it; a region that cannot be fenced is left out. */
static int need_fence(struct varve *v)
{
	struct vv_tiles *t = &v->tiles;
	bool sigbus = strcmp(vv_conf_text(&v->conf, "tracker"), "sigbus") == 0;
	int rc = t->fence ? 0 : vv_fence_new(sigbus ? VV_FENCE_SIGBUS : VV_FENCE_MPROTECT, vv_fault_ask, v, &t->fence);
	size_t kept = 0;

	if (rc)
		return rc;
	for (size_t i = 0; i < t->n_by_address; i++)
		if (fence_region(v, t->by_address[i]))
			t->by_address[kept++] = t->by_address[i];
	t->n_by_address = kept;
	return 0;
}

static bool shall_shut(const struct vv_tiles *t, const struct vv_region *r, size_t tile)
{
	return t->tile[tile].flags & VV_TILE_OPEN && (r->how == VV_BY_FENCE || t->tile[tile].dirty);
}

static int shut_run(struct vv_tiles *t, struct vv_region *r, size_t first, size_t last)
{
	uintptr_t lo, hi, ignored;
	int rc;

	vv_tiles_pages(t, r, first, &lo, &ignored);
	vv_tiles_pages(t, r, last, &ignored, &hi);
	if (lo >= hi)
		return 0;
	rc = vv_fence_shut(t->fence, lo, hi);
	for (size_t k = first; rc == 0 && k <= last; k++)
		t->tile[k].flags &= (uint8_t)~VV_TILE_OPEN;
	return rc;
}

/* Runs of tiles, small holes included. */
static int shut_region(struct vv_tiles *t, struct vv_region *r)
{
	size_t end = r->first_tile + r->n_tiles, k = r->first_tile;
	int rc = 0;

	while (rc == 0 && k < end) {
		size_t first, last;

		while (k < end && !shall_shut(t, r, k))
			k++;
		if (k == end)
			break;
		first = last = k;
		for (; k < end && k - last <= HOLE; k++)
			if (shall_shut(t, r, k))
				last = k;
		rc = shut_run(t, r, first, last);
	}
	return rc;
}

/* Is there anything dirty that has no copy? */
static bool overflows(const struct vv_tiles *t)
{
	for (size_t k = t->n_queue; k-- > 0;) {
		size_t tile = t->queue[k];
		struct vv_region *r = t->region[t->tile[tile].region];

		if (t->tile[tile].dirty & ~vv_tiles_held(t, r, tile))
			return true;
	}
	return false;
}

static void find_must(struct vv_tiles *t)
{
	for (size_t k = 0; k < t->n_queue; k++) {
		size_t tile = t->queue[k];
		struct vv_region *r = t->region[t->tile[tile].region];

		if (t->tile[tile].dirty & vv_tiles_bare(t, r, tile) & ~vv_tiles_held(t, r, tile)) {
			t->tile[tile].flags |= VV_TILE_MUST;
			t->must++;
		}
	}
}

static int shut_all(struct varve *v)
{
	struct vv_tiles *t = &v->tiles;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < t->n_by_address; i++)
		if (t->by_address[i]->fenced)
			rc = shut_region(t, t->by_address[i]);
	return rc;
}

/* ---- all of it ----------------------------------------------------------------------------------------------------------- */

static uint64_t list_dirty(struct vv_tiles *t, size_t *chunks)
{
	uint64_t bytes = 0;
	uint32_t tile;

	for (size_t k = 0; k < t->n; k++)
		if (t->tile[k].dirty)
			vv_order_mark(&t->order, (uint32_t)k);
	vv_order_begin(&t->order);
	t->n_queue = 0;
	*chunks = 0;
	while ((tile = vv_order_eager(&t->order)) != VV_ORDER_NONE) {
		struct vv_tile *x = &t->tile[tile];
		size_t n = (size_t)__builtin_popcountll(x->dirty);

		t->queue[t->n_queue++] = tile;
		x->todo = x->dirty;
		*chunks += n * t->group_chunks;
		bytes += n * (uint64_t)t->group_len;
	}
	return bytes;
}

/* First writes since the last epoch was stored: those that were seen, less those that met its flush. */
static void count_after(struct vv_tiles *t, uint64_t pages, struct varve_stats *st)
{
	uint64_t met = t->seen[VV_ACCESS_WAIT].pages + t->seen[VV_ACCESS_COW].pages + t->seen[VV_ACCESS_AVOIDED].pages;

	st->after.pages = pages > met ? pages - met : 0;
	st->after.bytes = st->after.pages * vv_memory_page();
	memset(t->seen, 0, sizeof(t->seen));
	t->fault_ns = t->wait_ns = t->blocked_ns = 0;
}

/* What has no copy must not be changed before it is stored. */
static int fence_rest(struct varve *v)
{
	struct vv_tiles *t = &v->tiles;
	int rc;

	t->fencing = overflows(t);
	if (!t->fencing)
		return 0;
	rc = need_fence(v);
	if (rc == 0)
		find_must(t);
	return rc;
}

int vv_capture_take(struct varve *v, bool async, struct varve_stats *st, size_t *chunks)
{
	struct vv_tiles *t = &v->tiles;
	uint64_t pages = 0;
	int rc = vv_tiles_layout(v);

	if (rc == 0 && v->tracker == VV_BY_FENCE)
		rc = need_fence(v);
	if (rc)
		return rc;
	pthread_mutex_lock(&t->lock);
	t->serial++;
	reset_cells(t);
	find_dirty(v, &pages);
	rc = audit(v);
	if (rc) {
		pthread_mutex_unlock(&t->lock);
		return rc;
	}
	count_after(t, pages, st);
	st->bytes_dirty = list_dirty(t, chunks);
	if (async)
		st->bytes_copied = copy_ahead(v, vv_conf_bool(&v->conf, "eager"));
	rc = async ? fence_rest(v) : 0;
	if (rc == 0 && (t->fencing || v->tracker == VV_BY_FENCE))
		rc = shut_all(v);
	pthread_mutex_unlock(&t->lock);
	if (rc)
		vv_tiles_end(v, false);
	return rc;
}

static void release_entered(void *arg, uintptr_t lo, uintptr_t hi)
{
	for (; lo < hi; lo += vv_memory_page())
		vv_fault_ask(arg, lo);
}

void vv_capture_settle(struct varve *v)
{
	struct vv_tiles *t = &v->tiles;

	if (t->fence)
		vv_fence_entered(release_entered, v);
	pthread_mutex_lock(&t->lock);
	while (t->must)
		pthread_cond_wait(&t->freed, &t->lock);
	pthread_mutex_unlock(&t->lock);
}

/* ---- was it really there? -------------------------------------------------------------------------------------------------- */

static void any_page(void *arg, uintptr_t lo, uintptr_t hi)
{
	struct seen *s = arg;
	struct vv_tiles *t = s->tiles;
	uintptr_t p = (uintptr_t)s->region->p;
	size_t first = lo > p ? (size_t)((lo - p) / t->group_len / t->tile_groups) : 0;
	size_t last = (size_t)((hi - 1 - p) / t->group_len / t->tile_groups);

	for (size_t k = first; k <= last && k < s->region->n_tiles; k++)
		if (!(t->tile[s->region->first_tile + k].flags & VV_TILE_OPEN))
			s->pages++;
}

static bool is_intact(struct varve *v, struct vv_region *r)
{
	struct vv_tiles *t = &v->tiles;
	struct seen s = { t, r, 0 };
	size_t end = r->first_tile + r->n_tiles;

	if (r->how == VV_BY_SCAN)
		return vv_scan_look(t->scan, r->lo, r->hi, any_page, &s) == 0 && s.pages == 0;
	for (size_t k = r->first_tile; k < end; k++) {
		size_t first = k;
		uintptr_t lo, hi, ignored;

		while (k < end && !(t->tile[k].flags & VV_TILE_OPEN))
			k++;
		if (k == first)
			continue;
		vv_tiles_pages(t, r, first, &lo, &ignored);
		vv_tiles_pages(t, r, k - 1, &ignored, &hi);
		if (lo < hi && !vv_fence_intact(t->fence, lo, hi))
			return false;
	}
	return true;
}

int vv_capture_check(struct varve *v)
{
	struct vv_tiles *t = &v->tiles;
	int rc = 0;

	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; rc == 0 && t->fencing && i < t->n_by_address; i++)
		if (t->by_address[i]->fenced && !is_intact(v, t->by_address[i]))
			rc = vv_err_set(VV_EINVAL,
					"the memory of region '%s' was unmapped, moved or dropped while its checkpoint was being stored; call "
					"varve_unprotect, varve_protect or varve_wait before that",
					t->by_address[i]->name);
	pthread_mutex_unlock(&t->lock);
	return rc;
}
