/* The part of a checkpoint that runs before varve_checkpoint returns. It finds dirty memory, copies
 * it into the buffer in the expected order of writes, and write-protects the rest. Copying a page
 * costs a sixth of catching its first write. So memory is write-protected only if its copy does not
 * fit. */
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
#include "track/interpose_table.h"
#include "track/write_protect.h"
#include "track/memory.h"
#include "track/scan.h"
#include "vv_config.h"
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* Bytes: clean tiles in a gap of at most this length are protected along with their dirty
	 * neighbours. That is cheaper than two calls. */
	HOLE = 256 << 10,
	/* Groups: tiles of at most this size are unprotected one by one, and there are many of
	 * them. */
	FEW_GROUPS = 8,
};

/* ---- copies ---------------------------------------------------------------------------------- */

enum { COPY_STEP = 64 }; /* tiles */

struct capture_copying {
	struct vv_tiles *tiles;
	size_t n; /* of the queue */
	_Atomic(struct vv_region *) gone; /* a region whose memory could not be read */
};

struct copying_step {
	struct capture_copying *all;
	size_t step;
	struct vv_region *region; /* the current one */
};

static void copy_tiles(void *arg)
{
	struct copying_step *s = arg;
	struct vv_tiles *t = s->all->tiles;

	for (size_t k = s->step * COPY_STEP; k < s->all->n && k < (s->step + 1) * COPY_STEP; k++) {
		s->region = vv_tiles_region(t, t->plan.queue[k]);
		vv_tiles_copy(t, s->region, t->plan.queue[k], vv_tiles_copied(t, s->region, t->plan.queue[k]));
	}
}

static void copy_step(void *arg, size_t step)
{
	struct copying_step s = { arg, step, NULL };

	if (vv_write_protect_try_read(copy_tiles, &s) < 0)
		atomic_store(&s.all->gone, s.region);
}

/* Copies groups that cannot be write-protected. They come first. */
static void copy_bare(void *arg)
{
	struct copying_step *s = arg;
	struct vv_tiles *t = s->all->tiles;

	for (size_t i = 0; i < t->geometry.n_regions; i++) {
		struct vv_region *r = s->region = t->geometry.region[i];

		for (size_t k = r->tracked->first_tile; k < r->tracked->first_tile + r->tracked->n_tiles; k = vv_tiles_next_unprotectable(r, k)) {
			uint64_t bare = vv_tiles_todo(t, r, k) & vv_tiles_unprotectable(t, r, k);

			if (bare && vv_tiles_take_cells(t, r, k, bare))
				vv_tiles_copy(t, r, k, bare);
		}
	}
}

static int check_each_mapped(const struct varve *v, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (!v->region[i]->fine && !vv_memory_mapped(v->region[i]->p, v->region[i]->shape.len))
			return vv_lost_memory_error(v->region[i]);
	return 0;
}

/* Does the region begin in the page after hi, or before? */
static bool continues(const struct vv_region *r, uintptr_t lo, uintptr_t hi)
{
	uintptr_t p = (uintptr_t)r->p;

	return !r->fine && p >= lo && p < hi + vv_memory_page();
}

/* Thousands of small regions often lie one after the other. Such a row takes one system call. */
static int check_mapped(const struct varve *v)
{
	uintptr_t lo = 0, hi = 0;
	size_t first = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i <= v->n_regions; i++) {
		const struct vv_region *r = i < v->n_regions ? v->region[i] : NULL;
		uintptr_t end = r && !r->fine ? (uintptr_t)r->p + r->shape.len : 0;

		if (r && lo < hi && continues(r, lo, hi)) {
			hi = end > hi ? end : hi;
			continue;
		}
		if (lo < hi && !vv_memory_mapped((void *)lo, hi - lo))
			rc = check_each_mapped(v, first, i);
		first = i;
		lo = end ? (uintptr_t)r->p : 0;
		hi = end;
	}
	return rc;
}

/* Bytes by which the last groups of the regions extend beyond their regions. Counts copied groups
 * if `copied`, else dirty groups. */
static uint64_t beyond(const struct vv_tiles *t, bool copied)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < t->geometry.n_regions; i++) {
		const struct vv_region *r = t->geometry.region[i];
		size_t g = r->tracked->n_groups - 1;

		if (r->tracked->n_tiles && (copied ? r->tracked->cell[g] != 0 : t->geometry.dirty[r->tracked->first_word + g / 64] >> g % 64 & 1))
			sum += t->geometry.group_len - vv_tiles_group_len(t, r, g);
	}
	return sum;
}

/* Copies unprotectable groups, then tiles in the order of the queue until no cell is free. A copied
 * tile stays unprotected unless writes to it must be seen. */
static int copy_ahead(struct varve *v, bool eager, uint64_t *bytes)
{
	struct vv_tiles *t = v->tiles;
	size_t before = t->copies.n_free;
	struct capture_copying c = { .tiles = t };
	struct copying_step bare = { &c, 0, NULL };

	if (vv_write_protect_try_read(copy_bare, &bare) < 0)
		return vv_lost_memory_error(bare.region);
	for (; eager && c.n < t->plan.n_queue && t->plan.order.state[t->plan.queue[c.n]] == VV_WRITE_ORDER_SCHEDULED; c.n++) {
		size_t tile = t->plan.queue[c.n];
		struct vv_region *r = vv_tiles_region(t, tile);

		if (!vv_tiles_take_cells(t, r, tile, vv_tiles_dirty(t, r, tile) & ~vv_tiles_copied(t, r, tile)))
			break;
	}
	vv_pool_each(v->ctx.pool, (c.n + COPY_STEP - 1) / COPY_STEP, copy_step, &c);
	t->plan.n_copied = c.n;
	*bytes = (before - t->copies.n_free) * (uint64_t)t->geometry.group_len - beyond(t, true);
	return c.gone ? vv_lost_memory_error(c.gone) : 0;
}

/* ---- write protection ------------------------------------------------------------------------ */

/* mprotect works on top of a scan's marks. Without such marks, userfaultfd protects single pages
 * without splitting mappings. Unprotecting one page then costs 2 microseconds instead of 4.4, and a
 * fault 3.4 instead of 5.9 (measured). */
static struct vv_write_protect *protection_for(struct varve *v, const struct vv_region *r)
{
	struct vv_tiles *t = v->tiles;

	if (v->tracking.tracker == VV_BY_WRITE_PROTECT || r->tracked->method != VV_BY_DIGEST || t->geometry.tile_groups > FEW_GROUPS || t->protection.no_write_protect_fine)
		return t->protection.write_protect;
	if (!t->protection.write_protect_fine && vv_write_protect_new(VV_WRITE_PROTECT_SIGBUS, vv_write_fault_handle, v, &t->protection.write_protect_fine) < 0) {
		vv_err_clear();
		t->protection.no_write_protect_fine = true;
	}
	return t->protection.write_protect_fine ? t->protection.write_protect_fine : t->protection.write_protect;
}

static void put_behind(struct vv_tiles *t, struct vv_region *r, struct vv_write_protect *write_protect)
{
	if (r->tracked->write_protected && r->tracked->write_protect == write_protect)
		return;
	vv_tiles_unprotect(t, r);
	r->tracked->write_protected = vv_write_protect_add(write_protect, r->tracked->lo, r->tracked->hi) == 0;
	r->tracked->write_protect = write_protect;
}

/* The region's memory cannot be write-protected. The last error gives the reason. */
static void leave_open(struct varve *v, struct vv_region *r)
{
	vv_log_info("region '%s' is copied or stored before varve_checkpoint returns: %s", r->name, vv_err_last());
	vv_err_clear();
	if (r->tracked->method == VV_BY_SCAN)
		vv_scan_detach(v->tiles->protection.scan, r->tracked->lo, r->tracked->hi);
	r->tracked->method = VV_BY_DIGEST;
	r->tracked->lo = r->tracked->hi = 0;
}

static bool add_region(struct varve *v, struct vv_region *r)
{
	put_behind(v->tiles, r, protection_for(v, r));
	if (!r->tracked->write_protected)
		put_behind(v->tiles, r, v->tiles->protection.write_protect);
	if (r->tracked->write_protected && v->tracking.tracker == VV_BY_WRITE_PROTECT)
		r->tracked->method = VV_BY_WRITE_PROTECT;
	if (!r->tracked->write_protected)
		leave_open(v, r);
	return r->tracked->write_protected;
}

static void unprotect_at(void *arg, uintptr_t lo, uintptr_t hi)
{
	struct vv_tiles *t = arg;

	for (size_t i = 0; i < t->geometry.n_by_address; i++)
		if (t->geometry.by_address[i]->tracked->lo < hi && t->geometry.by_address[i]->tracked->hi > lo)
			vv_tiles_unprotect(t, t->geometry.by_address[i]);
}

/* Once per process, unless the option `interpose` is no. */
static void warn_without_interposition(const struct varve *v)
{
	static atomic_flag warned = ATOMIC_FLAG_INIT;

	if (!VV_HAVE_INTERPOSE || vv_interpose_table_is_used() || !vv_conf_bool(&v->ctx.conf, "interpose") || atomic_flag_test_and_set(&warned))
		return;
	vv_log_warn("libvarve_interpose.so is not loaded before the C library: while an epoch is being stored, a system call that writes into a region may fail, and an "
		    "epoch fails if its memory is freed; link with `pkg-config --libs varve`, or set interpose = no");
}

/* Creates the write protection and adds the regions. A region that cannot be write-protected is
 * left out. */
static int add_regions(struct varve *v)
{
	struct vv_tiles *t = v->tiles;
	bool sigbus = strcmp(vv_conf_text(&v->ctx.conf, "tracker"), "sigbus") == 0;
	int rc = t->protection.write_protect ? 0 : vv_write_protect_new(sigbus ? VV_WRITE_PROTECT_SIGBUS : VV_WRITE_PROTECT_MPROTECT, vv_write_fault_handle, v, &t->protection.write_protect);
	size_t kept = 0;

	warn_without_interposition(v);
	if (rc == 0)
		rc = vv_write_protect_find_protected(t->protection.write_protect, 0, UINTPTR_MAX, unprotect_at, t);
	if (rc)
		return rc;
	for (size_t i = 0; i < t->geometry.n_by_address; i++)
		if (add_region(v, t->geometry.by_address[i]))
			t->geometry.by_address[kept++] = t->geometry.by_address[i];
	t->geometry.n_by_address = kept;
	return 0;
}

/* Is the tile to be stored, and must its first write be seen? */
static bool is_due(const struct vv_tiles *t, size_t tile)
{
	return t->plan.order.state[tile] == VV_WRITE_ORDER_SCHEDULED && t->plan.order.access[tile] == VV_ACCESS_NONE;
}

static bool should_protect(const struct vv_tiles *t, const struct vv_region *r, size_t tile)
{
	if (!(t->geometry.tile[tile].flags & VV_TILE_OPEN))
		return false;
	return r->tracked->method == VV_BY_WRITE_PROTECT || is_due(t, tile);
}

static int protect_run(struct vv_tiles *t, struct vv_region *r, size_t first, size_t last)
{
	uintptr_t lo, hi, ignored;
	int rc;

	vv_tiles_pages(t, r, first, &lo, &ignored);
	vv_tiles_pages(t, r, last, &ignored, &hi);
	if (lo >= hi)
		return 0;
	rc = vv_write_protect_enable(r->tracked->write_protect, lo, hi);
	for (size_t k = first; rc == 0 && k <= last; k++)
		t->geometry.tile[k].flags &= (uint8_t)~VV_TILE_OPEN;
	return rc;
}

/* Protects runs of tiles, including small gaps. */
static int protect_region(struct vv_tiles *t, struct vv_region *r)
{
	size_t end = r->tracked->first_tile + r->tracked->n_tiles, k = r->tracked->first_tile, hole = HOLE / (t->geometry.tile_groups * t->geometry.group_len) + 1;
	int rc = 0;

	while (rc == 0 && k < end) {
		size_t first, last;

		while (k < end && !should_protect(t, r, k))
			k++;
		if (k == end)
			break;
		first = last = k;
		for (; k < end && k - last <= hole; k++)
			if (should_protect(t, r, k))
				last = k;
		rc = protect_run(t, r, first, last);
	}
	return rc;
}

/* Does any dirty group lack a copy? */
static bool overflows(const struct vv_tiles *t)
{
	for (size_t k = t->plan.n_queue; k-- > 0;) {
		size_t tile = t->plan.queue[k];
		struct vv_region *r = vv_tiles_region(t, tile);

		if (vv_tiles_todo(t, r, tile) & ~vv_tiles_copied(t, r, tile))
			return true;
	}
	return false;
}

static void find_must(struct vv_tiles *t)
{
	for (size_t i = 0; i < t->geometry.n_regions; i++) {
		struct vv_region *r = t->geometry.region[i];

		for (size_t k = r->tracked->first_tile; k < r->tracked->first_tile + r->tracked->n_tiles; k = vv_tiles_next_unprotectable(r, k))
			if (vv_tiles_todo(t, r, k) & vv_tiles_unprotectable(t, r, k) & ~vv_tiles_copied(t, r, k)) {
				t->geometry.tile[k].flags |= VV_TILE_CALLER_WAITS;
				t->waiters.caller_waits_for++;
			}
	}
}

static struct vv_memory_range range_of(const struct vv_tiles *t, const struct vv_region *r, size_t tile)
{
	uint64_t len = (uint64_t)t->geometry.tile_groups * t->geometry.group_len, at = (tile - r->tracked->first_tile) * len, end = at + len;

	return (struct vv_memory_range){ (uintptr_t)r->p + at, (uintptr_t)r->p + (end < r->shape.len ? end : r->shape.len), false };
}

static const struct vv_region *region_at(const struct vv_tiles *t, uintptr_t lo, uintptr_t hi)
{
	for (size_t i = 0; i < t->geometry.n_regions; i++)
		if ((uintptr_t)t->geometry.region[i]->p < hi && (uintptr_t)t->geometry.region[i]->p + t->geometry.region[i]->shape.len > lo)
			return t->geometry.region[i];
	return NULL;
}

/* Unprotectable memory may also be unreadable. The caller waits for such memory, so the call
 * reports the error. */
static int check_must(const struct vv_tiles *t)
{
	struct vv_memory_range *must = vv_mem_new(t->waiters.caller_waits_for, sizeof(*must));
	uintptr_t lo, hi;
	size_t n = 0;
	bool lost;

	if (!must)
		return VV_ENOMEM;
	for (size_t k = 0; k < t->plan.n_queue && n < t->waiters.caller_waits_for; k++)
		if (t->geometry.tile[t->plan.queue[k]].flags & VV_TILE_CALLER_WAITS)
			must[n++] = range_of(t, vv_tiles_region(t, t->plan.queue[k]), t->plan.queue[k]);
	lost = vv_lost_memory_find(must, n, &lo, &hi);
	vv_mem_free(must);
	return lost ? vv_lost_memory_error(region_at(t, lo, hi)) : 0;
}

/* A region that was remapped in part has lost part of its write protection. All of the region is
 * protected again. */
static int protect_again(struct vv_tiles *t, struct vv_region *r)
{
	int rc;

	vv_tiles_unprotect(t, r);
	rc = vv_write_protect_add(r->tracked->write_protect, r->tracked->lo, r->tracked->hi);
	r->tracked->write_protected = rc == 0;
	return rc == 0 ? protect_region(t, r) : rc;
}

/* Protects all regions that need it. A region stays unprotected if the kernel refuses: a large page
 * belongs to it only in part, or no mappings are left. */
static void protect_all(struct varve *v)
{
	struct vv_tiles *t = v->tiles;
	size_t kept = 0;

	for (size_t i = 0; i < t->geometry.n_by_address; i++) {
		struct vv_region *r = t->geometry.by_address[i];
		bool timed = r->tracked->method == VV_BY_SCAN;
		double start = timed ? vv_clock_own_s() : 0;

		if (r->tracked->write_protected && protect_region(t, r) < 0 && protect_again(t, r) < 0) {
			vv_tiles_unprotect(t, r);
			leave_open(v, r);
			continue;
		}
		t->geometry.by_address[kept++] = r;
		r->tracked->seconds_protected += timed ? vv_clock_own_s() - start : 0;
	}
	t->geometry.n_by_address = kept;
}

/* ---- the call -------------------------------------------------------------------------------- */

/* Works on one word of bits at a time. The bits of a tile never span two words. */
static void mark_dirty(struct vv_tiles *t, const struct vv_region *r)
{
	uint64_t one = t->geometry.tile_groups == 64 ? UINT64_MAX : ((uint64_t)1 << t->geometry.tile_groups) - 1;

	for (size_t w = 0; w * 64 < r->tracked->n_groups; w++)
		for (uint64_t bits = t->geometry.dirty[r->tracked->first_word + w]; bits;) {
			size_t k = (size_t)__builtin_ctzll(bits) / t->geometry.tile_groups;

			vv_write_order_mark(&t->plan.order, (uint32_t)(r->tracked->first_tile + w * (64 / t->geometry.tile_groups) + k));
			bits &= ~(one << k * t->geometry.tile_groups);
		}
}

static uint64_t list_dirty(struct vv_tiles *t, size_t *chunks)
{
	uint64_t groups = 0;
	uint32_t tile;

	for (size_t i = 0; i < t->geometry.n_regions; i++)
		mark_dirty(t, t->geometry.region[i]);
	vv_write_order_begin(&t->plan.order);
	t->plan.n_queue = t->plan.front = t->plan.reach = t->plan.n_skip = 0;
	while ((tile = vv_write_order_eager(&t->plan.order)) != VV_WRITE_ORDER_NONE) {
		t->plan.queue_position[tile] = (uint32_t)t->plan.n_queue;
		t->plan.queue[t->plan.n_queue++] = tile;
	}
	t->plan.n_queue_last = t->plan.n_queue;
	memcpy(t->geometry.todo, t->geometry.dirty, t->geometry.n_words * sizeof(*t->geometry.todo));
	for (size_t i = 0; i < t->geometry.n_words; i++)
		groups += (uint64_t)__builtin_popcountll(t->geometry.dirty[i]);
	*chunks = groups * t->geometry.group_chunks;
	return groups * t->geometry.group_len - beyond(t, false);
}

/* Counts the first writes since the last epoch was stored: all that were seen, minus those during
 * its flush. */
static void count_after(struct vv_tiles *t, uint64_t pages, struct varve_stats *st)
{
	uint64_t met = t->meters.seen[VV_ACCESS_WAIT].pages + t->meters.seen[VV_ACCESS_COW].pages + t->meters.seen[VV_ACCESS_AVOIDED].pages;

	st->after.pages = pages > met ? pages - met : 0;
	st->after.bytes = st->after.pages * vv_memory_page();
	memset(t->meters.seen, 0, sizeof(t->meters.seen));
	t->meters.fault_after_ns = t->meters.fault_ns - t->meters.fault_reported_ns;
	t->meters.fault_ns = t->meters.fault_reported_ns = t->meters.wait_ns = t->meters.blocked_ns = 0;
}

/* A system call is writing to these pages and cannot be stopped. They stay unprotected, and are
 * copied beyond the buffer if necessary. The epoch may contain any part of the call's bytes, but
 * these must not change between hashing and storing. */
static void copy_entered(void *arg, uintptr_t lo, uintptr_t hi)
{
	struct varve *v = arg;
	struct vv_tiles *t = v->tiles;
	uint64_t len = (uint64_t)t->geometry.tile_groups * t->geometry.group_len;

	for (size_t i = 0; i < t->geometry.n_regions; i++) {
		struct vv_region *r = t->geometry.region[i];
		uintptr_t p = (uintptr_t)r->p;
		size_t first, last;

		if (r->tracked->n_tiles == 0 || hi <= p || lo >= p + r->shape.len)
			continue;
		first = r->tracked->first_tile + (size_t)(lo > p ? (lo - p) / len : 0);
		last = r->tracked->first_tile + (size_t)((hi - 1 - p) / len);
		last = last < r->tracked->first_tile + r->tracked->n_tiles ? last : r->tracked->first_tile + r->tracked->n_tiles - 1;
		for (size_t k = first; k <= last; k++) {
			uint64_t need = vv_tiles_todo(t, r, k) & ~vv_tiles_copied(t, r, k);

			if (need && !vv_tiles_take_cells(t, r, k, need) && !vv_tiles_take_extra_cells(t, r, k, need))
				continue; /* no address space for it */
			vv_tiles_copy(t, r, k, need);
			vv_write_order_copied(&t->plan.order, (uint32_t)k);
		}
		if (r->tracked->write_protected)
			vv_write_fault_unprotect(t, r, first, last);
	}
}

/* The order in which copies are stored does not matter to the program. So copies are stored in the
 * order of memory, and a restart reads the layer sequentially. queue_position keeps the expected
 * position of each tile. */
static void queue_copied(struct vv_tiles *t)
{
	size_t n = 0;

	for (size_t k = vv_write_order_scheduled(&t->plan.order, 0); n < t->plan.n_copied && k < t->geometry.n; k = vv_write_order_scheduled(&t->plan.order, k + 1))
		if (t->plan.queue_position[k] < t->plan.n_copied) {
			t->plan.queue[n++] = (uint32_t)k;
			vv_write_order_copied(&t->plan.order, (uint32_t)k);
		}
}

/* Groups without a copy must not change before they are stored. */
static int protect_rest(struct varve *v)
{
	struct vv_tiles *t = v->tiles;
	int rc;

	t->protection.is_protecting = overflows(t);
	if (!t->protection.is_protecting)
		return 0;
	rc = add_regions(v);
	if (rc)
		return rc;
	for (size_t k = 0; k < t->plan.n_copied && v->tracking.tracker != VV_BY_WRITE_PROTECT && !t->plan.learning; k++)
		vv_write_order_presume(&t->plan.order, t->plan.queue[k]);
	return 0;
}

int vv_capture_take(struct vv_layer_writer *p, size_t *chunks)
{
	struct varve *v = p->v;
	struct vv_tiles *t = v->tiles;
	struct varve_stats *st = &p->st;
	uint64_t pages = 0;
	int rc = check_mapped(v);

	if (rc == 0)
		rc = vv_layout_run(v);
	if (rc == 0 && v->tracking.tracker == VV_BY_WRITE_PROTECT)
		rc = add_regions(v);
	if (rc)
		return rc;
	pthread_mutex_lock(&t->lock);
	t->protection.serial++;
	vv_dirty_find(v, &pages);
	rc = vv_dirty_audit(v);
	if (rc) {
		pthread_mutex_unlock(&t->lock);
		return rc;
	}
	count_after(t, pages, st);
	vv_open_ahead_check_order(t);
	st->bytes_dirty += list_dirty(t, chunks);
	vv_layout_limit_copies(v, *chunks);
	if (v->tracking.tracker == VV_BY_WRITE_PROTECT)
		/* Before anything is copied, so that later writes are seen. */
		protect_all(v);
	if (v->ctx.async)
		rc = vv_early_hash_run(p);
	if (rc == 0 && v->ctx.async)
		rc = copy_ahead(v, vv_conf_bool(&v->ctx.conf, "eager"), &st->bytes_copied);
	if (rc == 0 && v->ctx.async)
		rc = protect_rest(v);
	if (rc == 0 && v->ctx.async)
		queue_copied(t);
	if (rc == 0 && t->protection.is_protecting)
		protect_all(v);
	if (rc == 0)
		vv_write_protect_each_syscall(copy_entered, v);
	if (rc == 0 && t->protection.is_protecting)
		find_must(t);
	if (rc == 0 && t->waiters.caller_waits_for)
		rc = check_must(t);
	pthread_mutex_unlock(&t->lock);
	if (rc)
		vv_tiles_end(v, false);
	return rc;
}

void vv_capture_wait(struct varve *v)
{
	struct vv_tiles *t = v->tiles;

	pthread_mutex_lock(&t->lock);
	while (t->waiters.caller_waits_for)
		pthread_cond_wait(&t->caller_cond, &t->lock);
	pthread_mutex_unlock(&t->lock);
}

int vv_capture_check(const struct vv_layer_writer *p)
{
	struct varve *v = p->v;
	struct vv_tiles *t = v->tiles;
	int rc = 0;

	pthread_mutex_lock(&t->lock);
	if (t->waiters.must_fail)
		rc = vv_err_set(VV_EINVAL, "a signal handler wrote to a region, and could not wait until that was stored: it had interrupted what storing needs, too, such as the allocator; let "
					   "handlers write no region, or more threads have arenas of their own (MALLOC_ARENA_MAX)");
	for (size_t i = 0; rc == 0 && t->protection.is_protecting && i < t->geometry.n_by_address; i++)
		if (t->geometry.by_address[i]->tracked->write_protected && !vv_dirty_is_intact(v, t->geometry.by_address[i]))
			rc = vv_dirty_lost_descriptor(v, t->geometry.by_address[i]) ? VV_EIO :
			     vv_err_set(VV_EINVAL,
					"epoch %" PRIu64 " is lost: the memory of region '%s' was freed, unmapped or moved before it was stored; call varve_wait, "
					"varve_unprotect or varve_close before that",
					p->epoch, t->geometry.by_address[i]->name);
	pthread_mutex_unlock(&t->lock);
	return rc;
}
