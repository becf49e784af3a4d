/* The regions' memory is laid out in tiles: how large they are, which pages can be watched, and the buffer for copies. */
#include "engine/memory/layout.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/pool.h"
#include "engine/options.h"
#include "engine/memory/hash_tiles.h"
#include "engine/memory/store_tiles.h"
#include "engine/memory/tiles.h"
#include "track/fence.h"
#include "track/memory.h"
#include "track/scan.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	TILE_GROUPS = 64,      /* one word of bits */
	FENCE_GROUPS = 16,     /* where the fence also tells what was written, and every tile costs a fault */
	TILES_MAX = 64 << 10,  /* what they cost in memory is then bounded */
	META = 50,             /* one part in so many of the memory may be used beside the buffer */
	FIXED = 15 << 18,      /* what does not grow: what is held back of a layer, to be written in large pieces (store/dir_put.c), blocks' lists, and the like, */
	PER_CORE = 64 << 10,   /* and what the C library keeps for a thread; */
	FIXED_SHARE = 4,       /* of what a buffer has more than this is for that, at most: */
	SMALL = 1 << 20,
	CODING_SHARE = 4,      /* of the buffer is for blocks that are being coded; */
	CODING_MIN = 256 << 10,
	CODERS = 1280 << 10,   /* what two coders keep */
	WATCH_PAGES = 4,       /* smaller regions are copied whole */
	NARROW = 16 << 20,     /* of the buffer's end are single pages, at most */
};

/* ---- cells ---------------------------------------------------------------------------------------------------------- */

static void free_cells(struct vv_tiles *t)
{
	vv_mem_unmap(t->cells, t->cells_len);
	vv_mem_free(t->free_cell);
	t->cells = NULL;
	t->free_cell = NULL;
	t->cells_len = t->buffer_len = t->wide_len = t->n_cells = t->n_granted = t->n_free = t->max_more = 0;
}

/* What there is of large pages stays. */
static void *map_cells(struct vv_tiles *t, size_t len)
{
	if (!t->wide_len) {
		vv_mem_unmap(t->cells, t->cells_len);
		t->cells = NULL;
		t->cells_len = 0;
		return mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	}
	if (t->cells_len > t->wide_len)
		munmap(t->cells + t->wide_len, t->cells_len - t->wide_len);
	t->cells_len = t->wide_len;
	return mremap(t->cells, t->wide_len, len, MREMAP_MAYMOVE);
}

/* The buffer, in large pages but for its end, of which an epoch may have only a part, and behind it room for every group, in single ones. None of it is touched before it is needed: that costs several times as much as
 * the copy, in a virtual machine whose host has taken back what was free, and much of what is declared may never have been written. Cells are taken in ascending
 * order, so that every checkpoint uses those that the one before has used. */
static int make_cells(struct vv_tiles *t, uint64_t bytes, size_t groups)
{
	size_t page = vv_memory_page(), n = (size_t)(bytes / t->group_len);
	size_t buffer = (n * t->group_len + page - 1) & ~(page - 1), len = buffer + groups * t->group_len;
	size_t narrow;
	uint32_t *free_cell;
	void *p;

	if (n == t->n_cells && groups == t->max_more && len == t->cells_len)
		return 0;
	if (buffer < t->buffer_len || t->buffer_len == 0)
		free_cells(t);
	if (len == 0)
		return 0;
	free_cell = vv_mem_grow(t->free_cell, n + 1, sizeof(*free_cell));
	if (!free_cell)
		return VV_ENOMEM;
	t->free_cell = free_cell;
	p = map_cells(t, len);
	if (p == MAP_FAILED) { /* address space is short: do without that room */
		groups = 0;
		len = buffer;
		p = len ? map_cells(t, len) : MAP_FAILED;
	}
	if (p == MAP_FAILED) {
		free_cells(t);
		return len ? vv_err_set(VV_ENOMEM, "no memory for a buffer of %zu bytes (option buffer)", buffer) : 0;
	}
	narrow = buffer / 2 < NARROW ? buffer / 2 : NARROW;
	narrow &= ~(page - 1);
	madvise(p, buffer - narrow, MADV_HUGEPAGE);
	madvise((uint8_t *)p + buffer - narrow, len - buffer + narrow, MADV_NOHUGEPAGE);
	t->cells = p;
	t->buffer_len = buffer;
	t->wide_len = buffer - narrow;
	t->n_cells = n;
	t->max_more = groups;
	t->cells_len = len;
	return 0;
}

/* Pages that are not there cost a little of the next call, so that is for when the memory is needed. Those at the end are needed last. */
void vv_layout_lend_buffer(struct varve *v, size_t n)
{
	struct vv_tiles *t = &v->tiles;
	size_t first;

	pthread_mutex_lock(&t->lock);
	first = t->n_granted * t->group_len;
	first -= n < first ? n : first;
	if (t->cells && t->n_free == t->n_granted && !t->n_more)
		vv_mem_discard(t->cells + first, t->cells_len - first);
	pthread_mutex_unlock(&t->lock);
}

/* ---- layout ---------------------------------------------------------------------------------------------------------- */

static size_t tiles_in(const struct vv_tiles *t, const struct vv_region *r)
{
	uint64_t len = (uint64_t)t->tile_groups * t->group_len;

	return r->fine ? 0 : (size_t)((r->shape.len + len - 1) / len);
}

static uint64_t memory_of(const struct varve *v)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < v->n_regions; i++)
		sum += v->region[i]->fine ? 0 : v->region[i]->shape.len;
	return sum;
}

/* While the sink is slow a tile is a page, so that a program that jumps about waits for no more than it writes; otherwise it is
 * large, so that few faults are met. Larger also as the memory grows, so that fences around every second one stay about what the
 * kernel allows (engine/memory/write_fault.c knows what to do if it does not). */
static void choose_geometry(struct varve *v)
{
	struct vv_tiles *t = &v->tiles;
	size_t chunk = (size_t)vv_conf_number(&v->conf, "chunk"), page = vv_memory_page();
	size_t granule = (size_t)vv_conf_number(&v->conf, "granule"), most = 2 * vv_memory_map_room();

	t->group_chunks = chunk < page ? page / chunk : 1;
	t->group_len = t->group_chunks * chunk;
	t->tile_groups = granule || t->fine ? 1 : TILE_GROUPS;
	if (v->tracker == VV_BY_FENCE && !granule)
		t->tile_groups = FENCE_GROUPS;
	while (t->tile_groups < TILE_GROUPS && 2 * t->tile_groups * t->group_len <= granule)
		t->tile_groups *= 2;
	most = most > TILES_MAX ? TILES_MAX : most;
	while (memory_of(v) / (t->tile_groups * t->group_len) > most) {
		if (t->tile_groups < TILE_GROUPS) {
			t->tile_groups *= 2;
		} else {
			t->group_chunks *= 2;
			t->group_len *= 2;
		}
	}
}

/* What the session needs beside the buffer, in an epoch that looks at so many chunks, while the index knows so many: tiles and their order, cells' numbers and bits, chunk states, and the
 * index, of which a sixteenth is for what is not counted (small sessions may know more, engine/write/index_limit.c: that is not of the buffer). While the epoch is stored, notes of blocks, which are of a few tiles where somebody waits, and digests of what is not placed yet;
 * after it, what the index is cut with. */
static uint64_t needed(const struct varve *v, uint64_t memory, size_t looked, size_t known)
{
	enum { PER_TILE = 36, PER_TILE_STORED = 14, PER_CHUNK = 8 };
	const struct vv_tiles *t = &v->tiles;
	size_t chunk = t->group_len / t->group_chunks, chunks = (size_t)(memory / chunk), groups = (size_t)(memory / t->group_len), tiles = groups / t->tile_groups;
	size_t most = chunks + chunks / 4, entries = (known < most ? known : most) + looked, cut = entries > most ? entries * sizeof(uint32_t) : 0, ahead = vv_hash_tiles_takes(memory, chunk);

	ahead = ahead < looked * sizeof(struct vv_digest) ? ahead : looked * sizeof(struct vv_digest);
	return tiles * PER_TILE + groups * sizeof(uint32_t) + groups / 4 + chunks * PER_CHUNK + vv_index_bytes(entries + entries / 16) +
	       (tiles < looked ? tiles : looked) * PER_TILE_STORED + (ahead > cut ? ahead : cut);
}

/* What a buffer of this size has for what does not grow. */
static uint64_t fixed_bytes(uint64_t buffer)
{
	uint64_t fixed = FIXED + (uint64_t)vv_pool_cores() * PER_CORE, most = buffer > SMALL ? (buffer - SMALL) / FIXED_SHARE : 0;

	return fixed < most ? fixed : most;
}

/* No more cells are made than can be used. */
static uint64_t cells_bytes(const struct varve *v, uint64_t buffer, size_t groups)
{
	uint64_t all = groups * v->tiles.group_len;

	if (v->coding.codec)
		buffer -= buffer / CODING_SHARE;
	return buffer < all ? buffer : all;
}

/* What is more than its share is taken from the buffer, unless that is there to hold all of the memory. The index knows what it knows, where there is no other bound for it, and all that is
 * looked at may be new. */
void vv_layout_grant(struct varve *v, size_t chunks)
{
	struct vv_tiles *t = &v->tiles;
	bool bare = vv_options_history(&v->conf, UINT32_MAX, 0) == 0;
	uint64_t memory = memory_of(v), buffer = (uint64_t)t->n_cells * t->group_len, most = bare ? buffer - buffer / 8 : buffer / 2, meta = 0;

	if (buffer < memory)
		meta = needed(v, memory, chunks, bare ? v->history.index.n : 0) + fixed_bytes(t->buffer) + (v->coding.codec ? CODERS : 0);
	meta = meta > memory / META ? meta - memory / META : 0;
	t->n_granted = (size_t)((buffer - (meta < most ? meta : most)) / t->group_len);
	if (t->n_granted < t->n_cells) /* another epoch may have used them */
		vv_mem_discard(t->cells + t->n_granted * t->group_len, (t->n_cells - t->n_granted) * t->group_len);
	for (size_t i = 0; i < t->n_granted; i++)
		t->free_cell[i] = (uint32_t)(t->n_granted - 1 - i); /* taken from the end: ascending */
	t->n_free = t->n_granted;
}

static int by_address(const void *a, const void *b)
{
	const struct vv_region *const *x = a, *const *y = b;

	return ((*x)->lo > (*y)->lo) - ((*x)->lo < (*y)->lo);
}

/* Which pages of which regions can be watched. Of regions that share pages only the first is: the others are compared and
 * copied whole. */
static int find_pages(struct varve *v)
{
	struct vv_tiles *t = &v->tiles;
	size_t page = vv_memory_page(), kept = 0;
	struct vv_memory_range *range = vv_mem_new(v->n_regions, sizeof(*range));

	t->n_by_address = 0;
	if (!range)
		return VV_ENOMEM;
	for (size_t i = 0; i < v->n_regions; i++) {
		struct vv_region *r = v->region[i];
		uintptr_t lo = 0, hi = 0;

		r->lo = r->hi = 0;
		if (r->untracked || r->fine || !vv_memory_pages(r->p, (size_t)r->shape.len, &lo, &hi) || hi - lo < WATCH_PAGES * page)
			continue;
		r->lo = lo;
		r->hi = hi;
		t->by_address[t->n_by_address++] = r;
	}
	qsort(t->by_address, t->n_by_address, sizeof(struct vv_region *), by_address);
	for (size_t i = 0; i < t->n_by_address; i++) /* the mappings are read once for all */
		range[i] = (struct vv_memory_range){ t->by_address[i]->lo, t->by_address[i]->hi, false };
	vv_memory_look(range, t->n_by_address, vv_memory_is_watchable);
	for (size_t i = 0; i < t->n_by_address; i++) {
		struct vv_region *r = t->by_address[i];

		if (!range[i].ok && r->fresh)
			vv_log_info("region '%s' is compared, not tracked: its memory is shared, of a file, of large pages, a stack, or not writable", r->name);
		if ((kept && t->by_address[kept - 1]->hi > r->lo) || !range[i].ok)
			r->lo = r->hi = 0;
		else
			t->by_address[kept++] = r;
	}
	vv_mem_free(range);
	t->n_by_address = kept;
	return 0;
}

/* New arrays beside the old ones, so that a failure leaves those. */
struct plan {
	struct vv_tile *tile;
	struct vv_write_order order;
	struct vv_region **region, **by_address;
	uint32_t *queue, *place;
	uint64_t *dirty, *todo;
	size_t n, words, groups;
};

static void drop_plan(struct plan *p)
{
	vv_mem_free(p->tile);
	vv_mem_free(p->region);
	vv_mem_free(p->by_address);
	vv_mem_free(p->queue);
	vv_mem_free(p->place);
	vv_mem_free(p->dirty);
	vv_mem_free(p->todo);
	vv_write_order_fini(&p->order);
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
		p->words += groups / 64 + 1;
		p->groups += groups;
	}
	if (p->n >= VV_WRITE_ORDER_NONE)
		return vv_err_set(VV_EINVAL, "regions of this size need a larger chunk (option chunk)");
	p->tile = vv_mem_new(p->n, sizeof(*p->tile));
	p->queue = vv_mem_new(p->n, sizeof(*p->queue));
	p->place = vv_mem_new(p->n, sizeof(*p->place));
	p->region = vv_mem_new(v->n_regions, sizeof(struct vv_region *));
	p->by_address = vv_mem_new(v->n_regions, sizeof(struct vv_region *));
	p->dirty = vv_mem_new(p->words, sizeof(*p->dirty));
	p->todo = vv_mem_new(p->words, sizeof(*p->todo));
	if (!p->tile || !p->queue || !p->place || !p->region || !p->by_address || !p->dirty || !p->todo)
		return VV_ENOMEM;
	if (vv_write_order_init(&p->order, p->n, strcmp(vv_conf_text(&v->conf, "order"), "address") == 0) < 0)
		return VV_ENOMEM;
	p->order.by_access = t->rescue;
	return 0;
}

/* Regions get their tiles; one that was there before, and has as many, keeps its past. */
static void number_tiles(struct varve *v, struct plan *p, bool same_geometry)
{
	struct vv_tiles *t = &v->tiles;
	size_t at = 0, word = 0;

	for (size_t i = 0; i < v->n_regions; i++) {
		struct vv_region *r = v->region[i];
		size_t n = tiles_in(t, r), was_n = r->n_tiles, was = r->first_tile;

		r->first_tile = at;
		r->n_tiles = n;
		r->n_groups = (r->n_chunks + t->group_chunks - 1) / t->group_chunks;
		r->fresh = true;
		if (same_geometry && was_n == n && t->n)
			vv_write_order_inherit(&p->order, at, &t->order, was, n);
		r->first_word = word;
		word += r->n_groups / 64 + 1;
		for (size_t k = 0; k < n; k++)
			p->tile[at + k] = (struct vv_tile){ .flags = VV_TILE_OPEN };
		p->region[i] = r;
		at += n;
	}
}

/* Lifts what there is of watching; the regions start anew. */
static void let_all_go(struct varve *v)
{
	pthread_mutex_lock(&v->tiles.lock);
	for (size_t i = 0; i < v->tiles.n_by_address; i++) {
		struct vv_region *r = v->tiles.by_address[i];

		if (r->how == VV_BY_SCAN)
			vv_scan_detach(v->tiles.scan, r->lo, r->hi);
		vv_tiles_unfence(&v->tiles, r);
		r->how = VV_BY_DIGEST;
	}
	vv_tiles_wait_askers(&v->tiles);
	v->tiles.n_by_address = 0;
	pthread_mutex_unlock(&v->tiles.lock);
}

static void free_arrays(struct vv_tiles *t)
{
	vv_mem_free(t->dirty);
	vv_mem_free(t->todo);
	vv_mem_free(t->tile);
	vv_mem_free(t->region);
	vv_mem_free(t->by_address);
	vv_mem_free(t->queue);
	vv_mem_free(t->place);
	vv_write_order_fini(&t->order);
	t->tile = NULL;
	t->region = t->by_address = NULL;
	t->queue = t->place = NULL;
	t->dirty = t->todo = NULL;
	t->order = (struct vv_write_order){ 0 };
}

int vv_layout_run(struct varve *v)
{
	struct vv_tiles *t = &v->tiles;
	size_t group_len = t->group_len, tile_groups = t->tile_groups;
	uint64_t buffer = v->async ? vv_conf_share(&v->conf, "buffer", memory_of(v)) : 0;
	struct plan p = { 0 };
	bool same;
	int rc;

	if (!t->stale)
		return 0;
	let_all_go(v);
	choose_geometry(v);
	same = group_len == t->group_len && tile_groups == t->tile_groups;
	if (!same) { /* nothing of the old ones is of use */
		free_arrays(t);
		t->n = t->n_regions = 0;
	}
	rc = make_plan(v, &p);
	if (rc == 0)
		rc = make_cells(t, cells_bytes(v, buffer, p.groups), p.groups);
	if (rc) {
		drop_plan(&p);
		free_arrays(t);
		t->n = t->n_regions = 0;
		return rc;
	}
	number_tiles(v, &p, same);
	free_arrays(t);
	t->tile = p.tile;
	t->order = p.order;
	t->queue = p.queue;
	t->place = p.place;
	t->learning = true;
	t->n_queue_last = t->n_seen = t->relapses = 0;
	t->dirty = p.dirty;
	t->todo = p.todo;
	t->n_words = p.words;
	t->region = p.region;
	t->by_address = p.by_address;
	t->n_regions = v->n_regions;
	t->n = p.n;
	rc = find_pages(v);
	t->buffer = buffer;
	v->coding.memory = (size_t)((buffer < memory_of(v) ? buffer : memory_of(v)) / CODING_SHARE);
	if (v->async && v->coding.memory < CODING_MIN)
		v->coding.memory = CODING_MIN; /* 0 is no limit */
	t->stale = rc != 0;
	return rc;
}

/* Waiting for a page costs more than a fault on each if what is new is much more than the buffer holds, and storing it takes much
 * longer than hashing. Twice in a row, before everything is laid out anew. */
void vv_layout_judge(struct varve *v, const struct varve_stats *st)
{
	static const double HASHED = 8e9; /* bytes a second, about */
	struct vv_tiles *t = &v->tiles;
	bool slow = st->bytes_new > 2 * (uint64_t)t->n_cells * t->group_len &&
		    st->seconds_flush > 3 * (double)st->bytes_dirty / HASHED;

	t->votes = slow == t->fine ? 0 : t->votes + 1;
	if (t->votes < 2 || vv_conf_number(&v->conf, "granule") || v->tracker == VV_BY_FENCE || !v->async)
		return;
	t->fine = slow;
	t->votes = 0;
	t->stale = true;
}

void vv_layout_fini(struct varve *v)
{
	struct vv_tiles *t = &v->tiles;

	if (v->pid == getpid())
		let_all_go(v);
	vv_fence_free(t->fence);
	vv_fence_free(t->fence_fine);
	vv_scan_close(t->scan);
	vv_calls_fini(&t->calls);
	free_arrays(t);
	free_cells(t);
	t->n = 0;
}
