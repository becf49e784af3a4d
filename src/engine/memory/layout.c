/* Lays out the regions' memory in tiles: the size of tiles, the watchable pages, and the buffer for
 * copies. */
#include "engine/memory/layout.h"
#include "base/err.h"
#include "base/held.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/pool.h"
#include "engine/options.h"
#include "engine/memory/hash_tiles.h"
#include "engine/memory/store_tiles.h"
#include "engine/memory/tiles.h"
#include "track/write_protect.h"
#include "track/memory.h"
#include "track/scan.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	TILE_GROUPS = 64,      /* one word of bits */
	/* The size of a tile if write protection also finds dirty memory: every tile costs a
	 * fault. */
	PROTECT_GROUPS = 16,
	LITTLE = 64 << 20,     /* bytes: less memory begins with small tiles */
	TILES_MAX = 64 << 10,  /* limits the memory that tiles take */
	/* One part in so many of the memory may be used in addition to the buffer. */
	META = 50,
	/* Bytes of constant size: layer data held back for large writes (store/dir/dir_put.c),
	 * lists of blocks, and the like. */
	FIXED = 16 << 18,
	PER_CORE = 64 << 10,   /* the same for each core: the C library's memory for a thread */
	/* At most one part in so many of the buffer beyond SMALL is for this constant part. */
	FIXED_SHARE = 3,
	SMALL = 1 << 20,
	CODING_SHARE = 4,      /* one part in so many of the buffer is for compression */
	CODING_MIN = 256 << 10,
	CODING_CORE = 2 << 20, /* bytes with which a core is busy */
	CODING_MOST = 64,      /* one part in so many of all regions, if the buffer has its default size */
	CODERS = 1280 << 10,   /* bytes that two compressors use */
	WATCH_PAGES = 4,       /* smaller regions are copied completely */
	NARROW = 16 << 20,     /* at most this much of the buffer's end is in single pages */
	/* One part in so many of the regions is added to a buffer of the default size, in epochs
	 * whose changes then fit. */
	MORE_SHARE = 8,
};

/* ---- cells ----------------------------------------------------------------------------------- */

static void free_cells(struct vv_tiles *t)
{
	vv_mem_unmap(t->copies.cells, t->copies.cells_len);
	vv_mem_free(t->copies.free_cell);
	t->copies.cells = NULL;
	t->copies.free_cell = NULL;
	t->copies.cells_len = t->copies.buffer_len = t->copies.wide_len = t->copies.n_cells = t->copies.n_granted = t->copies.n_free = t->copies.max_more = 0;
}

/* Keeps the existing large pages. */
static void *map_cells(struct vv_tiles *t, size_t len)
{
	if (!t->copies.wide_len) {
		vv_mem_unmap(t->copies.cells, t->copies.cells_len);
		t->copies.cells = NULL;
		t->copies.cells_len = 0;
		return mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	}
	if (t->copies.cells_len > t->copies.wide_len)
		munmap(t->copies.cells + t->copies.wide_len, t->copies.cells_len - t->copies.wide_len);
	t->copies.cells_len = t->copies.wide_len;
	return mremap(t->copies.cells, t->copies.wide_len, len, MREMAP_MAYMOVE);
}

/* Maps the buffer and, after it, room for every group. The buffer is in large pages except for its
 * end, and an epoch may get only part of it. The extra room is in single pages. No page is touched
 * before it is needed. In a virtual machine whose host has reclaimed free memory, the first touch
 * costs several times as much as the copy. Moreover, much of the declared memory may never have
 * been written. Cells are taken in ascending order, so that each checkpoint reuses the cells of the
 * previous one. */
static int make_cells(struct vv_tiles *t, uint64_t bytes, size_t groups)
{
	size_t page = vv_memory_page(), n = (size_t)(bytes / t->geometry.group_len);
	size_t buffer = (n * t->geometry.group_len + page - 1) & ~(page - 1), len = buffer + groups * t->geometry.group_len;
	size_t narrow;
	uint32_t *free_cell;
	void *p;

	if (n == t->copies.n_cells && groups == t->copies.max_more && len == t->copies.cells_len)
		return 0;
	if (buffer < t->copies.buffer_len || t->copies.buffer_len == 0)
		free_cells(t);
	if (len == 0)
		return 0;
	free_cell = vv_mem_grow(t->copies.free_cell, n + 1, sizeof(*free_cell));
	if (!free_cell)
		return VV_ENOMEM;
	t->copies.free_cell = free_cell;
	p = map_cells(t, len);
	/* If address space is short, the extra room is omitted. */
	if (p == MAP_FAILED) {
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
	t->copies.cells = p;
	t->copies.buffer_len = buffer;
	t->copies.wide_len = buffer - narrow;
	t->copies.n_cells = n;
	t->copies.max_more = groups;
	t->copies.cells_len = len;
	return 0;
}

/* Discarded pages make the next call a little slower, so this is only for when the memory is
 * needed. The pages at the end are needed last. */
void vv_layout_lend_buffer(struct varve *v, size_t n)
{
	struct vv_tiles *t = v->tiles;
	size_t first;

	pthread_mutex_lock(&t->lock);
	first = t->copies.n_granted * t->geometry.group_len;
	first -= n < first ? n : first;
	if (t->copies.cells && t->copies.n_free == t->copies.n_granted && !t->copies.n_more)
		vv_mem_discard(t->copies.cells + first, t->copies.cells_len - first);
	pthread_mutex_unlock(&t->lock);
}

/* ---- layout ---------------------------------------------------------------------------------- */

static size_t tiles_in(const struct vv_tiles *t, const struct vv_region *r)
{
	uint64_t len = (uint64_t)t->geometry.tile_groups * t->geometry.group_len;

	return r->fine ? 0 : (size_t)((r->shape.len + len - 1) / len);
}

static uint64_t memory_of(const struct varve *v)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < v->n_regions; i++)
		sum += v->region[i]->fine ? 0 : v->region[i]->shape.len;
	return sum;
}

/* If the sink is slow, a tile is one page, so that a thread with scattered writes waits only for
 * pages that it writes. Otherwise tiles are large, so that faults are few. Tiles also grow with the
 * memory. Then protecting every second tile needs about as many mappings as the kernel allows.
 * engine/memory/write_fault.c handles a refusal of the kernel. */
static void choose_geometry(struct varve *v)
{
	struct vv_tiles *t = v->tiles;
	size_t chunk = (size_t)vv_conf_number(&v->ctx.conf, "chunk"), page = vv_memory_page();
	size_t granule = (size_t)vv_conf_number(&v->ctx.conf, "granule"), most = 2 * vv_memory_map_room();

	t->geometry.group_chunks = chunk < page ? page / chunk : 1;
	t->geometry.group_len = t->geometry.group_chunks * chunk;
	t->geometry.tile_groups = granule || t->fine ? 1 : TILE_GROUPS;
	if (v->tracking.tracker == VV_BY_WRITE_PROTECT && !granule)
		t->geometry.tile_groups = PROTECT_GROUPS;
	while (t->geometry.tile_groups < TILE_GROUPS && 2 * t->geometry.tile_groups * t->geometry.group_len <= granule)
		t->geometry.tile_groups *= 2;
	most = most > TILES_MAX ? TILES_MAX : most;
	while (memory_of(v) / (t->geometry.tile_groups * t->geometry.group_len) > most) {
		if (t->geometry.tile_groups < TILE_GROUPS) {
			t->geometry.tile_groups *= 2;
		} else {
			t->geometry.group_chunks *= 2;
			t->geometry.group_len *= 2;
		}
	}
}

/* The bytes that the session needs in addition to the buffer. The epoch hashes `looked` chunks, and
 * the index holds `known` entries. Always: tiles and their order, cell numbers and bits, chunk
 * states, and the index with a sixteenth for uncounted entries. (Small sessions may have a larger
 * index, see engine/write/index_limit.c. The buffer does not pay for that.) During the flush: notes
 * of blocks and digests of chunks that are not placed yet. If a thread waits, a block has only a
 * few tiles. After the flush: memory for cutting the index. */
static uint64_t needed(const struct varve *v, uint64_t memory, size_t looked, size_t known)
{
	enum { PER_TILE = 40, PER_TILE_STORED = 14, PER_CHUNK = 8 };
	const struct vv_tiles *t = v->tiles;
	size_t chunk = t->geometry.group_len / t->geometry.group_chunks, chunks = (size_t)(memory / chunk), groups = (size_t)(memory / t->geometry.group_len), tiles = groups / t->geometry.tile_groups;
	size_t most = chunks + chunks / 4, entries = (known < most ? known : most) + looked, cut = entries > most ? entries * sizeof(uint32_t) : 0, ahead = vv_hash_tiles_memory(memory, chunk);

	ahead = ahead < looked * sizeof(struct vv_digest) ? ahead : looked * sizeof(struct vv_digest);
	return tiles * PER_TILE + groups * sizeof(uint32_t) + groups / 4 + chunks * PER_CHUNK + vv_index_bytes(entries + entries / 16) +
	       (tiles < looked ? tiles : looked) * PER_TILE_STORED + (ahead > cut ? ahead : cut);
}

/* The part of a buffer of this size that is reserved for memory of constant size. */
static uint64_t fixed_bytes(uint64_t buffer)
{
	uint64_t fixed = FIXED + (uint64_t)vv_pool_cores() * PER_CORE, most = buffer > SMALL ? (buffer - SMALL) / FIXED_SHARE : 0;

	return fixed < most ? fixed : most;
}

static bool may_grow(const struct varve *v)
{
	return v->ctx.async && strcmp(vv_conf_origin(&v->ctx.conf, "buffer"), "default") == 0;
}

/* The memory of blocks that are being compressed: a part of the buffer. If that has its default
 * size, it may be more: enough for all cores, but little beside the regions. */
static uint64_t coding_bytes(const struct varve *v, uint64_t buffer)
{
	uint64_t memory = memory_of(v), bytes = (buffer < memory ? buffer : memory) / CODING_SHARE, all = 0, cores;

	for (size_t i = 0; i < v->n_regions; i++)
		all += v->region[i]->shape.len;
	cores = (uint64_t)vv_pool_width(v->ctx.pool) * CODING_CORE;
	cores = cores < all / CODING_MOST ? cores : all / CODING_MOST;
	bytes = may_grow(v) && cores > bytes ? cores : bytes;
	return bytes > CODING_MIN ? bytes : CODING_MIN; /* 0 is no limit */
}

/* Makes no more cells than can be used. */
static uint64_t cells_bytes(const struct varve *v, uint64_t buffer, size_t groups, size_t *usual)
{
	uint64_t all = groups * v->tiles->geometry.group_len;

	if (v->coding->codec)
		buffer -= buffer / CODING_SHARE;
	buffer = buffer < all ? buffer : all;
	*usual = (size_t)(buffer / v->tiles->geometry.group_len);
	if (may_grow(v))
		buffer += memory_of(v) / MORE_SHARE;
	return buffer < all ? buffer : all;
}

/* The cells of an epoch with so many dirty groups, if `meta` bytes of the buffer are needed
 * otherwise. Copies take less of the program's time than write faults. So if all groups fit the
 * larger buffer, all are copied. */
static size_t grant(const struct vv_tiles *t, size_t groups, uint64_t meta)
{
	size_t taken = (size_t)((meta + t->geometry.group_len - 1) / t->geometry.group_len), usual = t->copies.n_usual - taken;

	return groups > usual && groups + taken <= t->copies.n_cells ? groups : usual;
}

/* Memory needed beyond one part in META is taken from the buffer, unless the buffer holds all of
 * the memory. Without another limit the index keeps its entries, and all hashed chunks may be
 * new. */
void vv_layout_limit_copies(struct varve *v, size_t chunks)
{
	struct vv_tiles *t = v->tiles;
	bool bare = vv_options_history(&v->ctx.conf, UINT32_MAX, 0) == 0;
	uint64_t memory = memory_of(v), buffer = (uint64_t)t->copies.n_usual * t->geometry.group_len, most = bare ? buffer - buffer / 8 : buffer / 2, meta = 0;

	VV_HELD(&t->lock);
	if (buffer < memory)
		meta = needed(v, memory, chunks, bare ? v->index_cache->index.n : 0) + fixed_bytes(t->copies.buffer) + (v->coding->codec ? CODERS : 0);
	meta = meta > memory / META ? meta - memory / META : 0;
	t->copies.n_granted = grant(t, chunks / t->geometry.group_chunks, meta < most ? meta : most);
	if (t->copies.n_granted < t->copies.n_cells) /* another epoch may have used them */
		vv_mem_discard(t->copies.cells + t->copies.n_granted * t->geometry.group_len, (t->copies.n_cells - t->copies.n_granted) * t->geometry.group_len);
	for (size_t i = 0; i < t->copies.n_granted; i++)
		/* Taken from the end, so in ascending order. */
		t->copies.free_cell[i] = (uint32_t)(t->copies.n_granted - 1 - i);
	t->copies.n_free = t->copies.n_granted;
}

static int by_address(const void *a, const void *b)
{
	const struct vv_region *const *x = a, *const *y = b;

	return ((*x)->tracked->lo > (*y)->tracked->lo) - ((*x)->tracked->lo < (*y)->tracked->lo);
}

static void unwatch(struct varve *v, struct vv_region *r)
{
	if (r->tracked->method == VV_BY_SCAN)
		vv_scan_detach(v->tiles->protection.scan, r->tracked->lo, r->tracked->hi);
	r->tracked->method = VV_BY_DIGEST;
}

static void leave_unwatched(struct varve *v, struct vv_region *r)
{
	r->fresh |= r->tracked->method == VV_BY_SCAN;
	unwatch(v, r);
	r->tracked->lo = r->tracked->hi = 0;
}

/* Finds the watchable pages of the regions. Of regions that share pages only the first is watched.
 * The others are compared and copied completely. */
static int find_pages(struct varve *v)
{
	struct vv_tiles *t = v->tiles;
	size_t page = vv_memory_page(), kept = 0;
	struct vv_memory_range *range = vv_mem_new(v->n_regions, sizeof(*range));

	t->geometry.n_by_address = 0;
	if (!range)
		return VV_ENOMEM;
	for (size_t i = 0; i < v->n_regions; i++) {
		struct vv_region *r = v->region[i];
		uintptr_t lo = 0, hi = 0;

		if (r->untracked || r->fine || !vv_memory_pages(r->p, (size_t)r->shape.len, &lo, &hi) || hi - lo < WATCH_PAGES * page) {
			leave_unwatched(v, r);
			continue;
		}
		r->tracked->lo = lo;
		r->tracked->hi = hi;
		t->geometry.by_address[t->geometry.n_by_address++] = r;
	}
	qsort(t->geometry.by_address, t->geometry.n_by_address, sizeof(struct vv_region *), by_address);
	for (size_t i = 0; i < t->geometry.n_by_address; i++) /* mappings are read once for all */
		range[i] = (struct vv_memory_range){ t->geometry.by_address[i]->tracked->lo, t->geometry.by_address[i]->tracked->hi, false };
	vv_memory_look(range, t->geometry.n_by_address, vv_memory_is_watchable);
	for (size_t i = 0; i < t->geometry.n_by_address; i++) {
		struct vv_region *r = t->geometry.by_address[i];

		if (!range[i].ok && r->fresh)
			vv_log_info("region '%s' is compared, not tracked: its memory is shared, of a file, of large pages, a stack, or not writable", r->name);
		if ((kept && t->geometry.by_address[kept - 1]->tracked->hi > r->tracked->lo) || !range[i].ok)
			leave_unwatched(v, r);
		else
			t->geometry.by_address[kept++] = r;
	}
	vv_mem_free(range);
	t->geometry.n_by_address = kept;
	return 0;
}

/* New arrays, allocated before the old ones are freed, so that a failure leaves the old ones
 * intact. */
struct layout_plan {
	struct vv_tile *tile;
	struct vv_write_order order;
	struct vv_region **region, **by_address;
	uint32_t *queue, *place;
	uint64_t *dirty, *todo;
	size_t n, words, groups;
};

static void drop_plan(struct layout_plan *p)
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

static int make_plan(struct varve *v, struct layout_plan *p)
{
	struct vv_tiles *t = v->tiles;

	for (size_t i = 0; i < v->n_regions; i++) {
		struct vv_region *r = v->region[i];
		size_t groups = (r->n_chunks + t->geometry.group_chunks - 1) / t->geometry.group_chunks;
		uint32_t *cell = vv_mem_grow(r->tracked->cell, groups + 1, sizeof(*cell));

		if (!cell)
			return VV_ENOMEM;
		memset(cell, 0, (groups + 1) * sizeof(*cell));
		r->tracked->cell = cell;
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
	if (vv_write_order_init(&p->order, p->n, strcmp(vv_conf_text(&v->ctx.conf, "order"), "address") == 0) < 0)
		return VV_ENOMEM;
	p->order.by_access = t->waiters.copy_when_freed;
	return 0;
}

/* Assigns tiles to regions. A region that existed before with the same number of tiles keeps its
 * history. */
static void number_tiles(struct varve *v, struct layout_plan *p, bool same_geometry)
{
	struct vv_tiles *t = v->tiles;
	size_t at = 0, word = 0;

	for (size_t i = 0; i < v->n_regions; i++) {
		struct vv_region *r = v->region[i];
		size_t n = tiles_in(t, r), was_n = r->tracked->n_tiles, was = r->tracked->first_tile;

		r->tracked->first_tile = at;
		r->tracked->n_tiles = n;
		r->tracked->n_groups = (r->n_chunks + t->geometry.group_chunks - 1) / t->geometry.group_chunks;
		r->fresh |= t->stale;
		if (same_geometry && was_n == n && t->geometry.n)
			vv_write_order_inherit(&p->order, at, &t->plan.order, was, n);
		r->tracked->first_word = word;
		word += r->tracked->n_groups / 64 + 1;
		for (size_t k = 0; k < n; k++)
			p->tile[at + k] = (struct vv_tile){ .flags = VV_TILE_OPEN, .region = (uint32_t)i };
		p->region[i] = r;
		at += n;
	}
}

/* Ends all write protection; and all watching, if regions start again. */
static void release_all_waiters(struct varve *v, bool again)
{
	pthread_mutex_lock(&v->tiles->lock);
	for (size_t i = 0; i < v->tiles->geometry.n_by_address; i++)
		vv_tiles_unprotect(v->tiles, v->tiles->geometry.by_address[i]);
	for (size_t i = 0; again && i < v->n_regions; i++)
		unwatch(v, v->region[i]);
	vv_tiles_wait_handlers(v->tiles);
	v->tiles->geometry.n_by_address = 0;
	pthread_mutex_unlock(&v->tiles->lock);
}

static void free_arrays(struct vv_tiles *t)
{
	vv_mem_free(t->geometry.dirty);
	vv_mem_free(t->geometry.todo);
	vv_mem_free(t->geometry.tile);
	vv_mem_free(t->geometry.region);
	vv_mem_free(t->geometry.by_address);
	vv_mem_free(t->plan.queue);
	vv_mem_free(t->plan.queue_position);
	vv_write_order_fini(&t->plan.order);
	t->geometry.tile = NULL;
	t->geometry.region = t->geometry.by_address = NULL;
	t->plan.queue = t->plan.queue_position = NULL;
	t->geometry.dirty = t->geometry.todo = NULL;
	t->plan.order = (struct vv_write_order){ 0 };
}

/* Without arrays no region is watched, and vv_tiles_detach would find none. The next layout
 * starts again. */
static void give_up(struct varve *v)
{
	struct vv_tiles *t = v->tiles;

	release_all_waiters(v, true);
	free_arrays(t);
	t->geometry.n = t->geometry.n_regions = 0;
	t->stale = true;
}

int vv_layout_run(struct varve *v)
{
	struct vv_tiles *t = v->tiles;
	size_t group_len = t->geometry.group_len, tile_groups = t->geometry.tile_groups;
	uint64_t buffer = vv_conf_share(&v->ctx.conf, "buffer", memory_of(v));
	struct layout_plan p = { 0 };
	size_t usual = 0;
	bool same;
	int rc;

	if (!t->stale && !t->resize)
		return 0;
	release_all_waiters(v, t->stale);
	if (!t->sized)
		t->fine = memory_of(v) < LITTLE || v->ctx.store->bandwidth;
	t->sized = true;
	choose_geometry(v);
	same = group_len == t->geometry.group_len && tile_groups == t->geometry.tile_groups;
	if (!same) { /* the old arrays are useless */
		free_arrays(t);
		t->geometry.n = t->geometry.n_regions = 0;
	}
	rc = make_plan(v, &p);
	if (rc == 0)
		rc = make_cells(t, cells_bytes(v, buffer, p.groups, &usual), p.groups);
	if (rc) {
		drop_plan(&p);
		give_up(v);
		return rc;
	}
	number_tiles(v, &p, same);
	free_arrays(t);
	t->geometry.tile = p.tile;
	t->plan.order = p.order;
	t->plan.queue = p.queue;
	t->plan.queue_position = p.place;
	t->plan.learning = true;
	t->plan.n_queue_last = t->plan.n_seen = t->plan.relapses = 0;
	t->geometry.dirty = p.dirty;
	t->geometry.todo = p.todo;
	t->geometry.n_words = p.words;
	t->geometry.region = p.region;
	t->geometry.by_address = p.by_address;
	t->geometry.n_regions = v->n_regions;
	t->geometry.n = p.n;
	rc = find_pages(v);
	if (rc) {
		give_up(v);
		return rc;
	}
	t->copies.buffer = buffer;
	t->copies.n_usual = usual < t->copies.n_cells ? usual : t->copies.n_cells;
	v->coding->memory = v->ctx.async ? (size_t)coding_bytes(v, buffer) : 0;
	t->stale = t->resize = false;
	return 0;
}

/* Chooses small or large tiles. With tiles of one page, a program that writes scattered pages waits
 * only for these, but each of them costs a fault. So small tiles pay if the new data is much larger
 * than the buffer, and storing takes much longer than the faults. Two epochs in a row must agree
 * before the tiles change. */
void vv_layout_choose_tile_size(struct varve *v, const struct varve_stats *st)
{
	static const double FAULT = 6e-6; /* seconds, measured */
	struct vv_tiles *t = v->tiles;
	double faults = FAULT * (double)(st->bytes_new / vv_memory_page());
	bool slow = st->bytes_new > 2 * (uint64_t)t->copies.n_cells * t->geometry.group_len && st->seconds_flush > 2 * faults;

	t->votes = slow == t->fine ? 0 : t->votes + 1;
	if (t->votes < 2 || vv_conf_number(&v->ctx.conf, "granule") || v->tracking.tracker == VV_BY_WRITE_PROTECT || !v->ctx.async)
		return;
	t->fine = slow;
	t->votes = 0;
	t->resize = true;
}

void vv_layout_fini(struct varve *v)
{
	struct vv_tiles *t = v->tiles;

	if (v->entry.pid == getpid())
		release_all_waiters(v, true);
	vv_write_protect_free(t->protection.write_protect);
	vv_write_protect_free(t->protection.write_protect_fine);
	vv_scan_close(t->protection.scan);
	vv_calls_fini(&t->protection.calls);
	free_arrays(t);
	free_cells(t);
	t->geometry.n = 0;
}
