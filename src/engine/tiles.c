/* Geometry, cells, and the ends of a flush; see tiles.h. */
#include "engine/tiles.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "track/fence.h"
#include "track/memory.h"
#include "track/scan.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	TILE_GROUPS = 64,      /* one word of bits */
	FENCE_GROUPS = 16,     /* where the fence also tells what was written: finer, so that less is hashed in vain */
	TILES_MAX = 32 << 10,  /* a fault per tile and epoch is the price of knowing their order; more buys nothing */
	WATCH_PAGES = 4,       /* smaller regions are copied whole */
};

/* ---- where things are ---------------------------------------------------------------------------------------------- */

uint64_t vv_tiles_groups(const struct vv_tiles *t, const struct vv_region *r, size_t tile)
{
	size_t left = r->n_groups - vv_tiles_group(t, r, tile);
	size_t n = left < t->tile_groups ? left : t->tile_groups;

	return n == 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1;
}

uint64_t vv_tiles_held(const struct vv_tiles *t, const struct vv_region *r, size_t tile)
{
	const uint32_t *cell = r->cell + vv_tiles_group(t, r, tile);
	uint64_t held = 0;

	for (uint64_t left = vv_tiles_groups(t, r, tile), k = 0; left; left >>= 1, k++)
		held |= (uint64_t)(cell[k] != 0) << k;
	return held;
}

uint64_t vv_tiles_bare(const struct vv_tiles *t, const struct vv_region *r, size_t tile)
{
	uintptr_t p = (uintptr_t)r->p + (uint64_t)vv_tiles_group(t, r, tile) * t->group_len;
	uint64_t all = vv_tiles_groups(t, r, tile), bare = 0;

	if (r->lo == r->hi)
		return all;
	if (p >= r->lo && p + (uint64_t)t->tile_groups * t->group_len <= r->hi)
		return 0;
	for (size_t k = 0; all >> k & 1; k++) {
		uintptr_t at = p + k * t->group_len;
		size_t len = vv_tiles_group_len(t, r, vv_tiles_group(t, r, tile) + k);

		if (at < r->lo || at + len > r->hi)
			bare |= (uint64_t)1 << k;
		if (k == 63)
			break;
	}
	return bare;
}

const uint8_t *vv_tiles_bytes(const struct vv_tiles *t, const struct vv_region *r, size_t group)
{
	uint32_t cell = r->cell[group];

	return cell ? t->cells + (uint64_t)(cell - 1) * t->group_len : r->p + (uint64_t)group * t->group_len;
}

void vv_tiles_pages(const struct vv_tiles *t, const struct vv_region *r, size_t tile, uintptr_t *lo, uintptr_t *hi)
{
	uintptr_t page = vv_memory_page();
	uintptr_t from = (uintptr_t)r->p + (uint64_t)vv_tiles_group(t, r, tile) * t->group_len;
	uintptr_t to = from + (uint64_t)t->tile_groups * t->group_len;

	from &= ~(page - 1);
	to = (to + page - 1) & ~(page - 1);
	*lo = from > r->lo ? from : r->lo;
	*hi = to < r->hi ? to : r->hi;
	if (*lo > *hi)
		*lo = *hi;
}

/* ---- cells ----------------------------------------------------------------------------------------------------------- */

bool vv_tiles_hold(struct vv_tiles *t, struct vv_region *r, size_t tile, uint64_t groups)
{
	uint32_t *cell = r->cell + vv_tiles_group(t, r, tile);

	if ((size_t)__builtin_popcountll(groups) > t->n_free)
		return false;
	for (; groups; groups &= groups - 1)
		cell[__builtin_ctzll(groups)] = 1 + t->free_cell[--t->n_free];
	return true;
}

void vv_tiles_copy(const struct vv_tiles *t, const struct vv_region *r, size_t tile, uint64_t groups)
{
	size_t first = vv_tiles_group(t, r, tile);

	while (groups) {
		size_t k = (size_t)__builtin_ctzll(groups), n = 0, len = 0;

		do { /* as long as groups and cells lie side by side */
			len += vv_tiles_group_len(t, r, first + k + n);
			groups &= groups - 1;
			n++;
		} while (k + n < 64 && groups >> (k + n) & 1 && r->cell[first + k + n] == r->cell[first + k] + n);
		memcpy(t->cells + (uint64_t)(r->cell[first + k] - 1) * t->group_len,
		       r->p + (uint64_t)(first + k) * t->group_len, len);
	}
}

void vv_tiles_let_go(struct vv_tiles *t, struct vv_region *r, size_t tile, uint64_t groups)
{
	uint32_t *cell = r->cell + vv_tiles_group(t, r, tile);

	for (; groups; groups &= groups - 1) {
		uint32_t *c = &cell[__builtin_ctzll(groups)];

		if (*c)
			t->free_cell[t->n_free++] = *c - 1;
		*c = 0;
	}
}

static void free_cells(struct vv_tiles *t)
{
	if (t->cells)
		munmap(t->cells, t->cells_len);
	vv_mem_free(t->free_cell);
	t->cells = NULL;
	t->free_cell = NULL;
	t->cells_len = t->n_cells = t->n_free = 0;
}

/* Touched now, so that no copy has to wait for the kernel to find and clear a page. */
static int make_cells(struct vv_tiles *t, uint64_t bytes)
{
	size_t n = (size_t)(bytes / t->group_len), len = n * t->group_len;

	if (n == t->n_cells && len == t->cells_len)
		return 0;
	free_cells(t);
	if (n == 0)
		return 0;
	t->free_cell = vv_mem_new(n, sizeof(*t->free_cell));
	if (!t->free_cell)
		return VV_ENOMEM;
	t->cells = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (t->cells == MAP_FAILED) {
		t->cells = NULL;
		return vv_err_set(VV_ENOMEM, "no memory for a buffer of %zu bytes (option buffer)", len);
	}
	madvise(t->cells, len, MADV_HUGEPAGE);
	memset(t->cells, 0, len);
	t->n_cells = n;
	t->cells_len = len;
	return 0;
}

/* ---- layout ---------------------------------------------------------------------------------------------------------- */

static size_t tiles_in(const struct vv_tiles *t, const struct vv_region *r)
{
	uint64_t len = (uint64_t)t->tile_groups * t->group_len;

	return (size_t)((r->shape.len + len - 1) / len);
}

static uint64_t memory_of(const struct varve *v)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < v->n_regions; i++)
		sum += v->region[i]->shape.len;
	return sum;
}

/* Tiles so large that fences around them stay below what the kernel allows: every second one open is the worst case. */
static void choose_geometry(struct varve *v)
{
	struct vv_tiles *t = &v->tiles;
	size_t chunk = (size_t)vv_conf_number(&v->conf, "chunk"), page = vv_memory_page();
	size_t granule = (size_t)vv_conf_number(&v->conf, "granule"), most = vv_memory_map_room();
	bool by_fence = v->tracker == VV_BY_FENCE;

	t->group_chunks = chunk < page ? page / chunk : 1;
	t->group_len = t->group_chunks * chunk;
	t->tile_groups = by_fence ? FENCE_GROUPS : TILE_GROUPS;
	if (granule)
		t->tile_groups = granule / t->group_len;
	t->tile_groups = t->tile_groups < 1 ? 1 : t->tile_groups > TILE_GROUPS ? TILE_GROUPS : t->tile_groups;
	most = !granule && most > TILES_MAX ? TILES_MAX : most;
	while (memory_of(v) / (t->tile_groups * t->group_len) > most) {
		if (t->tile_groups < TILE_GROUPS) {
			t->tile_groups *= 2;
		} else {
			t->group_chunks *= 2;
			t->group_len *= 2;
		}
	}
	if (t->tile_groups > TILE_GROUPS)
		t->tile_groups = TILE_GROUPS;
}

static int by_address(const void *a, const void *b)
{
	const struct vv_region *const *x = a, *const *y = b;

	return ((*x)->lo > (*y)->lo) - ((*x)->lo < (*y)->lo);
}

/* Which pages of which regions can be watched. Of regions that share pages only the first is: the others are compared and
 * copied whole. */
static void find_pages(struct varve *v)
{
	struct vv_tiles *t = &v->tiles;
	size_t page = vv_memory_page(), kept = 0;

	t->n_by_address = 0;
	for (size_t i = 0; i < v->n_regions; i++) {
		struct vv_region *r = v->region[i];
		uintptr_t lo = 0, hi = 0;

		r->lo = r->hi = 0;
		if (r->untracked || !vv_memory_pages(r->p, (size_t)r->shape.len, &lo, &hi) || hi - lo < WATCH_PAGES * page)
			continue;
		r->lo = lo;
		r->hi = hi;
		t->by_address[t->n_by_address++] = r;
	}
	qsort(t->by_address, t->n_by_address, sizeof(struct vv_region *), by_address);
	for (size_t i = 0; i < t->n_by_address; i++) {
		struct vv_region *r = t->by_address[i];

		if ((kept && t->by_address[kept - 1]->hi > r->lo) || !vv_memory_watchable(r->lo, r->hi))
			r->lo = r->hi = 0;
		else
			t->by_address[kept++] = r;
	}
	t->n_by_address = kept;
}

/* New arrays beside the old ones, so that a failure leaves those. */
struct plan {
	struct vv_tile *tile;
	struct vv_order order;
	struct vv_region **region, **by_address;
	uint32_t *queue;
	size_t n;
};

static void drop_plan(struct plan *p)
{
	vv_mem_free(p->tile);
	vv_mem_free(p->region);
	vv_mem_free(p->by_address);
	vv_mem_free(p->queue);
	vv_order_fini(&p->order);
}

static int make_plan(struct varve *v, struct plan *p)
{
	struct vv_tiles *t = &v->tiles;

	for (size_t i = 0; i < v->n_regions; i++) {
		struct vv_region *r = v->region[i];
		size_t groups = (r->n_chunks + t->group_chunks - 1) / t->group_chunks;
		uint32_t *cell = vv_mem_grow(r->cell, groups + 1, sizeof(*cell));

		if (!cell)
			return VV_ENOMEM;
		memset(cell, 0, (groups + 1) * sizeof(*cell));
		r->cell = cell;
		p->n += tiles_in(t, r);
	}
	if (p->n >= VV_ORDER_NONE)
		return vv_err_set(VV_EINVAL, "regions of this size need a larger chunk (option chunk)");
	p->tile = vv_mem_new(p->n, sizeof(*p->tile));
	p->queue = vv_mem_new(p->n, sizeof(*p->queue));
	p->region = vv_mem_new(v->n_regions, sizeof(struct vv_region *));
	p->by_address = vv_mem_new(v->n_regions, sizeof(struct vv_region *));
	if (!p->tile || !p->queue || !p->region || !p->by_address)
		return VV_ENOMEM;
	return vv_order_init(&p->order, p->n, strcmp(vv_conf_text(&v->conf, "order"), "address") == 0);
}

/* Regions get their tiles; one that was there before, and has as many, keeps its past. */
static void number_tiles(struct varve *v, struct plan *p, bool same_geometry)
{
	struct vv_tiles *t = &v->tiles;
	size_t at = 0;

	for (size_t i = 0; i < v->n_regions; i++) {
		struct vv_region *r = v->region[i];
		size_t n = tiles_in(t, r), was_n = r->n_tiles, was = r->first_tile;

		r->first_tile = at;
		r->n_tiles = n;
		r->n_groups = (r->n_chunks + t->group_chunks - 1) / t->group_chunks;
		r->fresh = true;
		if (same_geometry && was_n == n && t->n)
			vv_order_inherit(&p->order, at, &t->order, was, n);
		for (size_t k = 0; k < n; k++)
			p->tile[at + k] = (struct vv_tile){ .region = (uint32_t)i, .flags = VV_TILE_OPEN };
		p->region[i] = r;
		at += n;
	}
}

/* Lifts what there is of watching; the regions start anew. */
static void let_all_go(struct varve *v)
{
	for (size_t i = 0; i < v->tiles.n_by_address; i++) {
		struct vv_region *r = v->tiles.by_address[i];

		if (r->how == VV_BY_SCAN)
			vv_scan_detach(v->tiles.scan, r->lo, r->hi);
		if (r->fenced)
			vv_fence_remove(v->tiles.fence, r->lo, r->hi);
		r->fenced = false;
		r->how = VV_BY_DIGEST;
	}
	v->tiles.n_by_address = 0;
}

static void free_arrays(struct vv_tiles *t)
{
	for (size_t i = 0; i < t->n; i++)
		vv_mem_free(t->tile[i].digest);
	vv_mem_free(t->tile);
	vv_mem_free(t->region);
	vv_mem_free(t->by_address);
	vv_mem_free(t->queue);
	vv_order_fini(&t->order);
	t->tile = NULL;
	t->region = t->by_address = NULL;
	t->queue = NULL;
	t->order = (struct vv_order){ 0 };
}

int vv_tiles_layout(struct varve *v)
{
	struct vv_tiles *t = &v->tiles;
	size_t group_len = t->group_len, tile_groups = t->tile_groups;
	uint64_t buffer = v->async ? vv_conf_share(&v->conf, "buffer", memory_of(v)) : 0;
	struct plan p = { 0 };
	int rc;

	if (!t->stale)
		return 0;
	let_all_go(v);
	choose_geometry(v);
	rc = make_plan(v, &p);
	if (rc == 0)
		rc = make_cells(t, v->coding.codec ? buffer - buffer / 2 : buffer);
	if (rc) {
		drop_plan(&p);
		free_arrays(t);
		t->n = t->n_regions = 0;
		return rc;
	}
	number_tiles(v, &p, group_len == t->group_len && tile_groups == t->tile_groups);
	free_arrays(t);
	t->tile = p.tile;
	t->order = p.order;
	t->queue = p.queue;
	t->region = p.region;
	t->by_address = p.by_address;
	t->n_regions = v->n_regions;
	t->n = p.n;
	find_pages(v);
	v->coding.memory = (size_t)(buffer / 2);
	t->stale = false;
	return 0;
}

void vv_tiles_fini(struct varve *v)
{
	struct vv_tiles *t = &v->tiles;

	if (v->pid == getpid())
		let_all_go(v);
	vv_fence_free(t->fence);
	vv_scan_close(t->scan);
	free_arrays(t);
	free_cells(t);
	t->n = 0;
}

void vv_tiles_detach(struct varve *v, struct vv_region *r)
{
	struct vv_tiles *t = &v->tiles;

	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < t->n_by_address; i++) {
		if (t->by_address[i] != r)
			continue;
		if (r->how == VV_BY_SCAN)
			vv_scan_detach(t->scan, r->lo, r->hi);
		if (r->fenced)
			vv_fence_remove(t->fence, r->lo, r->hi);
		memmove(&t->by_address[i], &t->by_address[i + 1],
			(t->n_by_address - i - 1) * sizeof(struct vv_region *));
		t->n_by_address--;
		break;
	}
	r->fenced = false;
	r->how = VV_BY_DIGEST;
	r->lo = r->hi = 0;
	r->n_tiles = 0;
	t->stale = true;
	pthread_mutex_unlock(&t->lock);
}

static void open_all(struct vv_tiles *t)
{
	for (size_t i = 0; i < t->n_by_address; i++) {
		struct vv_region *r = t->by_address[i];

		if (r->fenced && vv_fence_open(t->fence, r->lo, r->hi) < 0)
			vv_log_warn("a fence stays shut: %s", vv_err_last());
		for (size_t k = 0; r->fenced && k < r->n_tiles; k++)
			t->tile[r->first_tile + k].flags |= VV_TILE_OPEN;
	}
}

void vv_tiles_expose(struct varve *v)
{
	pthread_mutex_lock(&v->tiles.lock);
	open_all(&v->tiles);
	for (size_t i = 0; i < v->n_regions; i++)
		v->region[i]->fresh = true;
	pthread_mutex_unlock(&v->tiles.lock);
}

/* ---- the end of a tile, and of a flush ---------------------------------------------------------------------------------- */

void vv_tiles_done(struct vv_tiles *t, size_t tile)
{
	struct vv_tile *x = &t->tile[tile];

	if (x->flags & VV_TILE_PLACED)
		t->cells_in_blocks -= (size_t)__builtin_popcountll(x->todo & vv_tiles_held(t, t->region[x->region], tile));
	vv_tiles_let_go(t, t->region[x->region], tile, x->dirty);
	vv_order_done(&t->order, (uint32_t)tile);
	if (x->flags & VV_TILE_MUST)
		t->must--;
	x->flags &= (uint8_t)~(VV_TILE_MUST | VV_TILE_MEMORY);
	pthread_cond_broadcast(&t->freed);
	pthread_cond_broadcast(&t->bell);
}

void vv_tiles_sum(struct varve *v, struct varve_stats *st)
{
	struct vv_tiles *t = &v->tiles;

	pthread_mutex_lock(&t->lock);
	st->wait = t->seen[VV_ACCESS_WAIT];
	st->cow = t->seen[VV_ACCESS_COW];
	st->avoided = t->seen[VV_ACCESS_AVOIDED];
	st->seconds_faults = (double)t->fault_ns / 1e9;
	st->seconds_waits = (double)t->wait_ns / 1e9;
	st->seconds_blocked = (double)t->blocked_ns / 1e9;
	pthread_mutex_unlock(&t->lock);
}

void vv_tiles_accept(struct varve *v)
{
	struct vv_tiles *t = &v->tiles;

	for (size_t k = 0; k < t->n_queue; k++) {
		size_t tile = t->queue[k];
		struct vv_region *r = t->region[t->tile[tile].region];
		size_t first = vv_tiles_group(t, r, tile);

		for (uint64_t left = t->tile[tile].dirty; left; left &= left - 1) {
			size_t g = first + (size_t)__builtin_ctzll(left);
			size_t at = vv_tiles_chunk(t, g), end = vv_tiles_chunk_end(t, r, g);

			memcpy(&r->was[at], &r->now[at], (end - at) * sizeof(*r->was));
		}
		t->tile[tile].dirty = 0;
	}
}

void vv_tiles_end(struct varve *v, bool ok)
{
	struct vv_tiles *t = &v->tiles;

	pthread_mutex_lock(&t->lock);
	while (t->copying)
		pthread_cond_wait(&t->bell, &t->lock);
	for (size_t k = 0; k < t->n_queue; k++) {
		struct vv_tile *x = &t->tile[t->queue[k]];

		vv_mem_free(x->digest);
		x->digest = NULL;
		x->in_blocks = 0;
		x->todo = 0;
		vv_tiles_let_go(t, t->region[x->region], t->queue[k], vv_tiles_held(t, t->region[x->region], t->queue[k]));
		x->flags &= VV_TILE_OPEN;
		x->queued = x->quiet = x->sifted = false;
	}
	t->n_queue = 0;
	t->must = t->cells_in_blocks = 0;
	t->ahead = 0;
	if (ok)
		vv_order_end(&t->order);
	else
		vv_order_fail(&t->order);
	if (t->fencing && v->tracker != VV_BY_FENCE)
		open_all(t);
	t->fencing = t->broken = false;
	pthread_cond_broadcast(&t->freed);
	pthread_mutex_unlock(&t->lock);
}
