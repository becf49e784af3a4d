/* Finds dirty memory. Pages are dirty if the kernel or a write fault recorded a write. All pages
 * count as dirty where comparing is cheaper than watching. */
#include "engine/memory/dirty.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/splitmix64.h"
#include "engine/memory/tiles.h"
#include "engine/lost_memory.h"
#include "engine/write/index_cache.h"
#include "track/write_protect.h"
#include "track/memory.h"
#include "track/scan.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Above some share of dirty pages, comparing everything is cheaper than catching first writes. The
 * share depends on processor and kernel. So it is computed from the measured costs of both methods,
 * within these limits. Scattered pages take longer to hash, copy and protect than adjacent pages.
 * Faults take longer in uncached memory than in the calibration. On no machine was watching seen to
 * be cheaper above 0.34. */
static const double DENSE_MIN = 0.05, DENSE_MAX = 0.35;

/* The cost of a page beside its hashing, in units of a fault: it is copied or write-protected,
 * unprotected, and looked up. */
static const double BESIDES = 0.125;

/* A compared region is watched again only if the changed share is below this fraction of the
 * limit. */
static const double CALM = 0.75;

struct seen {
	struct vv_tiles *tiles;
	struct vv_region *region;
	uint64_t pages;
};

/* Marks the groups that the pages lo..hi of the region touch. */
static void mark_groups(struct vv_tiles *t, const struct vv_region *r, uintptr_t lo, uintptr_t hi)
{
	uintptr_t p = (uintptr_t)r->p;
	size_t first = lo > p ? (size_t)((lo - p) / t->geometry.group_len) : 0;
	size_t last = (size_t)((hi - 1 - p) / t->geometry.group_len);

	last = last < r->tracked->n_groups ? last : r->tracked->n_groups - 1;
	for (size_t g = first; g <= last; g++)
		t->geometry.dirty[r->tracked->first_word + g / 64] |= (uint64_t)1 << g % 64;
}

static void mark_pages(void *arg, uintptr_t lo, uintptr_t hi)
{
	struct seen *s = arg;

	s->pages += (hi - lo) / vv_memory_page();
	mark_groups(s->tiles, s->region, lo, hi);
}

static void mark_call(void *arg, uintptr_t lo, uintptr_t hi)
{
	struct seen *s = arg;

	mark_groups(s->tiles, s->region, lo, hi);
}

static void mark_all(struct vv_tiles *t, struct vv_region *r)
{
	uint64_t *word = &t->geometry.dirty[r->tracked->first_word];

	memset(word, 0xff, r->tracked->n_groups / 64 * sizeof(*word));
	if (r->tracked->n_groups % 64)
		word[r->tracked->n_groups / 64] = ((uint64_t)1 << r->tracked->n_groups % 64) - 1;
}

/* The pages at the ends of a region are shared with other memory and not watched. Their groups are
 * always dirty. */
static void mark_ends(struct vv_tiles *t, struct vv_region *r)
{
	for (size_t k = r->tracked->first_tile; k < r->tracked->first_tile + r->tracked->n_tiles; k = vv_tiles_next_unprotectable(r, k))
		vv_tiles_set_dirty(t, r, k, vv_tiles_dirty(t, r, k) | vv_tiles_unprotectable(t, r, k));
}

/* A page can be watched by only one userfaultfd at a time. */
static void watch(struct varve *v, struct vv_region *r)
{
	struct vv_parallel_for loop = vv_pool_loop(v->ctx.pool);

	if (r->tracked->write_protected && r->tracked->write_protect == v->tiles->protection.write_protect_fine)
		vv_tiles_unprotect(v->tiles, r);
	if (vv_scan_attach(v->tiles->protection.scan, &loop, r->tracked->lo, r->tracked->hi) == 0) {
		r->tracked->method = VV_BY_SCAN;
		return;
	}
	vv_log_info("region '%s' is compared, not tracked: %s", r->name, vv_err_last());
	vv_err_clear();
	r->tracked->backoff = UINT32_MAX / 2;
	r->tracked->retry_in = r->tracked->backoff;
}

static void unwatch(struct varve *v, struct vv_region *r)
{
	vv_scan_detach(v->tiles->protection.scan, r->tracked->lo, r->tracked->hi);
	r->tracked->method = VV_BY_DIGEST;
	r->tracked->backoff = r->tracked->backoff ? 2 * r->tracked->backoff : 4;
	r->tracked->retry_in = r->tracked->backoff;
}

/* Disturbances make the measured cost higher, never lower. So a lower cost is adopted at once, a
 * higher one by and by. The cost includes the time to protect the pages of the last epoch. Per
 * page, protection takes much longer for single pages than for all pages of a region. */
static void note_cost(struct vv_region *r, uint64_t pages, double seconds)
{
	double write_protected = r->tracked->pages_found > 0 ? r->tracked->seconds_protected / r->tracked->pages_found : 0;
	double cost = pages ? seconds / (double)pages + write_protected : r->tracked->collect_cost;

	r->tracked->collect_cost = cost < r->tracked->collect_cost ? cost : r->tracked->collect_cost + (cost - r->tracked->collect_cost) / 4;
}

/* The share of written pages above which comparing is cheaper. If a share p is written, a watched
 * region costs p * (caught + looked_at) for each page. A compared region costs looked_at for each
 * page. Faults take the program's own time. Hashing runs on other cores, where there are any, and
 * then counts half. */
static double dense(const struct varve *v, const struct vv_region *r)
{
	const struct vv_tiles *t = v->tiles;
	double fault = vv_scan_fault_cost(t->protection.scan), caught = fault + r->tracked->collect_cost;
	double hashed = t->meters.hashed_pages > 0 ? t->meters.hashed_s / t->meters.hashed_pages : caught / 4;
	double looked_at = hashed / (vv_pool_width(v->ctx.pool) > 1 ? 2 : 1) + BESIDES * fault;
	double share = looked_at / (caught + looked_at);

	return share < DENSE_MIN ? DENSE_MIN : share > DENSE_MAX ? DENSE_MAX : share;
}

/* Marks the written pages of a watched region and returns their number. If a large share is written
 * every time, watching costs more than it saves. */
static uint64_t collect(struct varve *v, struct vv_region *r)
{
	struct seen s = { .tiles = v->tiles, .region = r };
	double all = (double)((r->tracked->hi - r->tracked->lo) / vv_memory_page()), start = vv_clock_own_s();
	int rc = vv_scan_collect(v->tiles->protection.scan, r->tracked->lo, r->tracked->hi, mark_pages, &s);

	if (rc) {
		vv_log_info("region '%s': %s; all of it is compared", r->name, vv_err_last());
		vv_err_clear();
		vv_scan_detach(v->tiles->protection.scan, r->tracked->lo, r->tracked->hi);
		r->tracked->method = VV_BY_DIGEST;
		watch(v, r);
		mark_all(v->tiles, r);
		return 0;
	}
	mark_ends(v->tiles, r);
	vv_calls_each(&v->tiles->protection.calls, r->tracked->lo, r->tracked->hi, mark_call, &s);
	note_cost(r, s.pages, vv_clock_own_s() - start);
	r->tracked->pages_found = (double)s.pages;
	r->tracked->seconds_protected = 0;
	if (v->tracking.automatic && (double)s.pages > dense(v, r) * all)
		unwatch(v, r);
	return s.pages;
}

static void any_page(void *arg, uintptr_t lo, uintptr_t hi)
{
	struct seen *s = arg;
	struct vv_tiles *t = s->tiles;
	uintptr_t p = (uintptr_t)s->region->p;
	size_t first = lo > p ? (size_t)((lo - p) / t->geometry.group_len / t->geometry.tile_groups) : 0;
	size_t last = (size_t)((hi - 1 - p) / t->geometry.group_len / t->geometry.tile_groups);

	for (size_t k = first; k <= last && k < s->region->tracked->n_tiles; k++)
		if (!(t->geometry.tile[s->region->tracked->first_tile + k].flags & VV_TILE_OPEN))
			s->pages++;
}

/* Finds the next run of protected tiles, as pages. Returns false if there is none from *tile on. */
static bool next_protected(const struct vv_tiles *t, const struct vv_region *r, size_t *tile, struct vv_memory_range *out)
{
	size_t end = r->tracked->first_tile + r->tracked->n_tiles, first;
	uintptr_t ignored;

	while (*tile < end && t->geometry.tile[*tile].flags & VV_TILE_OPEN)
		++*tile;
	if (*tile == end)
		return false;
	first = *tile;
	while (*tile < end && !(t->geometry.tile[*tile].flags & VV_TILE_OPEN))
		++*tile;
	vv_tiles_pages(t, r, first, &out->lo, &ignored);
	vv_tiles_pages(t, r, *tile - 1, &ignored, &out->hi);
	return true;
}

/* Another thread may write a page after the search for dirty pages and before its protection. Such
 * a page belongs to the next epoch and is ignored here. */
static bool is_watched(struct vv_tiles *t, struct vv_region *r, uintptr_t lo, uintptr_t hi)
{
	struct seen s = { .tiles = t, .region = r };

	return vv_scan_peek_dropped(t->protection.scan, lo, hi, any_page, &s) == 0 && s.pages == 0;
}

static bool are_intact(struct vv_tiles *t, struct vv_region *r, struct vv_memory_range *range, size_t n)
{
	if (r->tracked->method != VV_BY_SCAN)
		return vv_write_protect_are_intact(r->tracked->write_protect, range, n);
	while (n > 0 && is_watched(t, r, range[n - 1].lo, range[n - 1].hi))
		n--;
	return n == 0;
}

static bool looks_intact(struct varve *v, struct vv_region *r)
{
	enum { MANY = 512 };
	struct vv_tiles *t = v->tiles;
	struct vv_memory_range range[MANY];
	size_t tile = r->tracked->first_tile, n = 0;
	bool more = true, ok = true;

	if (r->tracked->method == VV_BY_SCAN && is_watched(t, r, r->tracked->lo, r->tracked->hi))
		/* One look is enough. Otherwise unprotected tiles may be gone, since they are
		 * stored or copied. */
		return true;
	while (ok && more) {
		more = next_protected(t, r, &tile, &range[n]);
		n += more && range[n].lo < range[n].hi;
		if (n == MANY || !more) {
			ok = are_intact(t, r, range, n);
			n = 0;
		}
	}
	return ok;
}

/* Another thread of the program may close a descriptor that is opened for the look. So a failed
 * look is repeated once. */
bool vv_dirty_is_intact(struct varve *v, struct vv_region *r)
{
	return looks_intact(v, r) || looks_intact(v, r);
}

bool vv_dirty_lost_descriptor(struct varve *v, const struct vv_region *r)
{
	int rc = r->tracked->method == VV_BY_SCAN ? vv_scan_check(v->tiles->protection.scan) : vv_write_protect_check(r->tracked->write_protect);

	if (rc)
		vv_err_context(rc, "region '%s' cannot be told to have stayed as it was while its checkpoint was being stored", r->name);
	return rc != 0;
}

/* Marks tiles that were unprotected by a write. Returns their number of pages. */
static uint64_t collect_opened(struct varve *v, struct vv_region *r)
{
	struct vv_tiles *t = v->tiles;
	uint64_t pages = 0;

	/* If the memory was remapped, writes to pages that lost their protection were not seen. */
	if (!vv_dirty_is_intact(v, r)) {
		vv_tiles_unprotect(t, r);
		r->tracked->write_protected = vv_write_protect_add(r->tracked->write_protect, r->tracked->lo, r->tracked->hi) == 0;
		r->tracked->method = r->tracked->write_protected ? VV_BY_WRITE_PROTECT : VV_BY_DIGEST;
		vv_err_clear();
	}
	for (size_t k = r->tracked->first_tile; k < r->tracked->first_tile + r->tracked->n_tiles; k++) {
		if (!(t->geometry.tile[k].flags & VV_TILE_OPEN))
			continue;
		vv_tiles_set_dirty(t, r, k, vv_tiles_groups(t, r, k));
		pages += (uint64_t)__builtin_popcountll(vv_tiles_groups(t, r, k)) * t->geometry.group_len / vv_memory_page();
	}
	mark_ends(t, r);
	return pages;
}

/* Should a compared region be watched? Yes, if little of it changed and watching has not failed too
 * often. */
static void reconsider(struct varve *v, struct vv_region *r)
{
	bool calm, hope;

	if (v->tracking.tracker != VV_BY_SCAN || r->tracked->lo == r->tracked->hi || !v->tiles->protection.scan)
		return;
	calm = (double)r->tracked->changed <= CALM * dense(v, r) * (double)r->shape.len;
	hope = v->tracking.late ? calm && !r->fresh : calm || r->tracked->backoff == 0;
	if (r->tracked->retry_in)
		r->tracked->retry_in--;
	else if (!v->tracking.automatic || hope)
		watch(v, r);
}

void vv_dirty_find(struct varve *v, uint64_t *pages)
{
	struct vv_tiles *t = v->tiles;

	for (size_t i = 0; i < t->geometry.n_regions; i++) {
		struct vv_region *r = t->geometry.region[i];

		bool whole = r->fresh || r->tracked->method == VV_BY_DIGEST;

		if (r->tracked->n_tiles == 0)
			continue;
		if (r->tracked->method == VV_BY_SCAN)
			*pages += collect(v, r);
		else if (r->tracked->method == VV_BY_WRITE_PROTECT)
			*pages += collect_opened(v, r);
		else
			reconsider(v, r);
		if (whole) {
			mark_all(t, r);
			r->tracked->pages_found = 0;
		}
		r->fresh = false;
		r->tracked->changed = 0;
	}
	vv_calls_note(&t->protection.calls);
}

/* ---- audit ----------------------------------------------------------------------------------- */

/* Asks the kernel. A fault here would run our write fault handler, which needs the lock that this
 * thread holds. If the kernel gives no answer, the memory counts as readable. */
static bool is_readable(const struct vv_tiles *t, const struct vv_region *r, size_t g)
{
	uintptr_t page = vv_memory_page(), at = (uintptr_t)r->p + (uint64_t)g * t->geometry.group_len, end = at + vv_tiles_group_len(t, r, g);

	for (; at < end; at = (at / page + 1) * page) {
		char byte;
		struct iovec to = { &byte, 1 }, from = { (void *)at, 1 };

		if (syscall(SYS_process_vm_readv, getpid(), &to, 1, &from, 1, 0) < 0 && errno == EFAULT)
			return false;
	}
	return true;
}

static int audit_group(struct varve *v, struct vv_region *r, size_t g)
{
	const struct vv_tiles *t = v->tiles;

	if (!is_readable(t, r, g))
		return vv_lost_memory_error(r);
	for (size_t i = vv_tiles_chunk(t, g); i < vv_tiles_chunk_end(t, r, g); i++) {
		const struct vv_digest *old = vv_index_cache_was(v->index_cache, r, i);
		struct vv_digest now;

		v->ctx.digest(r->p + (uint64_t)i * r->shape.chunk, vv_region_chunk_len(r, i), &now);
		if (!old || vv_digest_equal(old, &now))
			continue;
		r->fresh = true;
		r->untracked = true;
		return vv_err_set(VV_EMISMATCH,
				  "audit: region '%s' changed at offset %" PRIu64 " without being seen by tracker %s; is it written by a "
				  "device or another process? It is compared whole from now on (see varve_untrack)",
				  r->name, (uint64_t)i * r->shape.chunk, vv_conf_text(&v->ctx.conf, "tracker"));
	}
	return 0;
}

/* Compares random groups that the tracker reports as clean. A changed group is an error, and the
 * region is no longer tracked. */
int vv_dirty_audit(struct varve *v)
{
	struct vv_tiles *t = v->tiles;
	uint64_t state = vv_clock_ns();
	int rc = 0;

	for (unsigned n = 0; rc == 0 && t->geometry.n && n < v->tracking.audit; n++) {
		size_t tile = (size_t)(vv_splitmix64_next(&state) % t->geometry.n);
		struct vv_region *r = vv_tiles_region(t, tile);
		uint64_t clean = vv_tiles_groups(t, r, tile) & ~vv_tiles_dirty(t, r, tile);
		unsigned skip = clean ? (unsigned)(vv_splitmix64_next(&state) % (unsigned)__builtin_popcountll(clean)) : 0;

		if (!clean)
			continue;
		while (skip--)
			clean &= clean - 1;
		rc = audit_group(v, r, vv_tiles_group(t, r, tile) + (size_t)__builtin_ctzll(clean));
		if (rc == VV_EMISMATCH)
			t->stale = true;
	}
	return rc;
}
