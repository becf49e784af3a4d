/* What is dirty: pages that the kernel or a fence has seen written, or everything, where comparing is cheaper than watching. */
#include "engine/memory/dirty.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "engine/memory/tiles.h"
#include "engine/lost_memory.h"
#include "track/fence.h"
#include "track/memory.h"
#include "track/scan.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Above some share of dirty pages it is cheaper to compare everything than to catch first writes. Which one, processors and kernels do not
 * agree on: so it follows from what both cost here, but it is never beyond these. (Pages here and there take longer to hash, copy and fence than as many in a row, and faults in memory that is not
 * in the caches longer than where they are tried: no machine has been seen where watching was cheaper above 0.34.) */
static const double DENSE_MIN = 0.05, DENSE_MAX = 0.35;

/* What looking at a page takes beside hashing it, in terms of a fault: it is copied or fenced, opened again, looked up. */
static const double BESIDES = 0.125;

/* A region that is compared is watched again only if this much less of it changes than would be too much. */
static const double CALM = 0.75;

/* More stretches of written pages than one in so many pages: watching them anew one by one costs more than all at once. */
enum { SCATTERED = 50 };

struct seen {
	struct vv_tiles *tiles;
	struct vv_region *region;
	uint64_t pages, stretches;
};

/* The groups that the pages lo..hi of the region touch. */
static void mark_groups(struct vv_tiles *t, const struct vv_region *r, uintptr_t lo, uintptr_t hi)
{
	uintptr_t p = (uintptr_t)r->p;
	size_t first = lo > p ? (size_t)((lo - p) / t->group_len) : 0;
	size_t last = (size_t)((hi - 1 - p) / t->group_len);

	last = last < r->n_groups ? last : r->n_groups - 1;
	for (size_t g = first; g <= last; g++)
		t->dirty[r->first_word + g / 64] |= (uint64_t)1 << g % 64;
}

static void mark_pages(void *arg, uintptr_t lo, uintptr_t hi)
{
	struct seen *s = arg;

	s->pages += (hi - lo) / vv_memory_page();
	s->stretches++;
	mark_groups(s->tiles, s->region, lo, hi);
}

/* Pages that a system call is writing into, which the fence has spared. */
static void mark_spared(void *arg, uintptr_t lo, uintptr_t hi)
{
	struct seen *s = arg;

	lo = lo > s->region->lo ? lo : s->region->lo;
	hi = hi < s->region->hi ? hi : s->region->hi;
	if (lo < hi)
		mark_groups(s->tiles, s->region, lo, hi);
}

static void mark_call(void *arg, uintptr_t lo, uintptr_t hi)
{
	struct seen *s = arg;

	mark_groups(s->tiles, s->region, lo, hi);
}

static void mark_all(struct vv_tiles *t, struct vv_region *r)
{
	uint64_t *word = &t->dirty[r->first_word];

	memset(word, 0xff, r->n_groups / 64 * sizeof(*word));
	if (r->n_groups % 64)
		word[r->n_groups / 64] = ((uint64_t)1 << r->n_groups % 64) - 1;
}

/* The ends of a region lie on pages that are not its own and not watched. */
static void mark_ends(struct vv_tiles *t, struct vv_region *r)
{
	for (size_t k = r->first_tile; k < r->first_tile + r->n_tiles; k = vv_tiles_next_bare(r, k))
		vv_tiles_set_dirty(t, r, k, vv_tiles_dirty(t, r, k) | vv_tiles_bare(t, r, k));
}

/* Memory is watched by one userfaultfd at a time. */
static void watch(struct varve *v, struct vv_region *r)
{
	struct vv_parallel_for loop = vv_pool_loop(v->pool);

	if (r->fenced && r->fence == v->tiles.fence_fine)
		vv_tiles_unfence(&v->tiles, r);
	if (vv_scan_attach(v->tiles.scan, &loop, r->lo, r->hi) == 0) {
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

static void count_stretch(void *arg, uintptr_t lo, uintptr_t hi)
{
	(void)lo, (void)hi;
	++*(uint64_t *)arg;
}

/* Behind a fence nothing is written, so that looking and watching anew need not be one step, which costs some kernels a flush of
 * address translations for nearly every page, and on which several threads are no faster than one. What overflows the buffer is fenced anyway. */
static int collect_shut(struct varve *v, struct vv_region *r, struct seen *s)
{
	struct vv_tiles *t = &v->tiles;
	struct vv_parallel_for loop = vv_pool_loop(v->pool);
	uint64_t protected = 0;
	int rc = vv_fence_find_protected(r->fence, r->lo, r->hi, count_stretch, &protected);

	if (rc == 0 && protected)
		rc = vv_err_set(VV_ENOTSUP, "the program has taken the rights of a part of its memory away");
	if (rc == 0)
		rc = vv_tiles_shut(t, r);
	if (rc) {
		vv_tiles_unfence(t, r);
		return rc;
	}
	rc = vv_scan_look(t->scan, r->lo, r->hi, mark_pages, s);
	vv_fence_entered(mark_spared, s);
	return rc ? rc : vv_scan_rearm(t->scan, &loop, r->lo, r->hi);
}

/* What disturbs it makes it dearer, never cheaper: less is believed at once, more by and by. With it goes what the fence took around the pages of the last time: around single ones it is much
 * more than around all of them. */
static void note_cost(struct vv_region *r, uint64_t pages, double helped)
{
	double fenced = r->pages_found > 0 ? r->seconds_fenced / r->pages_found : 0;
	double cost = pages ? (r->seconds_found + helped) / (double)pages + fenced : r->collect_cost;

	r->collect_cost = cost < r->collect_cost ? cost : r->collect_cost + (cost - r->collect_cost) / 4;
}

/* With a share p of its pages written a watched region costs p * (caught + looked_at) for each page it has, one that is compared
 * looked_at. Faults are the program's own time; hashing is not, where there are other cores for it: there it counts half. */
static double dense(const struct varve *v, const struct vv_region *r)
{
	const struct vv_tiles *t = &v->tiles;
	double fault = vv_scan_fault_cost(t->scan), caught = fault + r->collect_cost;
	double hashed = t->hashed_pages > 0 ? t->hashed_s / t->hashed_pages : caught / 4;
	double looked_at = hashed / (vv_pool_width(v->pool) > 1 ? 2 : 1) + BESIDES * fault;
	double share = looked_at / (caught + looked_at);

	return share < DENSE_MIN ? DENSE_MIN : share > DENSE_MAX ? DENSE_MAX : share;
}

/* Is that a way for the next time? */
static bool is_scattered(const struct varve *v, const struct vv_region *r, const struct seen *s)
{
	return v->async && r->how == VV_BY_SCAN && s->stretches > (r->hi - r->lo) / vv_memory_page() / SCATTERED && v->tiles.overflowed;
}

/* Written pages of a watched region. If much of it is written every time, watching costs more than it saves. */
static uint64_t collect(struct varve *v, struct vv_region *r)
{
	struct seen s = { .tiles = &v->tiles, .region = r };
	double all = (double)((r->hi - r->lo) / vv_memory_page()), start = vv_clock_own_s();
	int rc;

	r->shut_first = r->scattered && r->fenced && vv_cheaper_way_choose(&r->ways) == 1;
	r->scattered = false;
	rc = r->shut_first ? collect_shut(v, r, &s) : vv_scan_collect(v->tiles.scan, r->lo, r->hi, mark_pages, &s);
	if (rc) {
		vv_log_info("region '%s': %s; all of it is compared", r->name, vv_err_last());
		vv_err_clear();
		vv_scan_detach(v->tiles.scan, r->lo, r->hi);
		r->how = VV_BY_DIGEST;
		watch(v, r);
		mark_all(&v->tiles, r);
		return 0;
	}
	mark_ends(&v->tiles, r);
	vv_calls_each(&v->tiles.calls, r->lo, r->hi, mark_call, &s);
	r->seconds_found = vv_clock_own_s() - start;
	note_cost(r, s.pages, r->shut_first ? vv_scan_helped(v->tiles.scan) : 0);
	r->pages_found = (double)s.pages;
	r->seconds_fenced = 0;
	if (v->watch_auto && (double)s.pages > dense(v, r) * all)
		unwatch(v, r);
	r->scattered = is_scattered(v, r, &s);
	return s.pages;
}

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

/* The next run of tiles that are still shut, as pages; false if there is none from *tile on. */
static bool next_shut(const struct vv_tiles *t, const struct vv_region *r, size_t *tile, struct vv_memory_range *out)
{
	size_t end = r->first_tile + r->n_tiles, first;
	uintptr_t ignored;

	while (*tile < end && t->tile[*tile].flags & VV_TILE_OPEN)
		++*tile;
	if (*tile == end)
		return false;
	first = *tile;
	while (*tile < end && !(t->tile[*tile].flags & VV_TILE_OPEN))
		++*tile;
	vv_tiles_pages(t, r, first, &out->lo, &ignored);
	vv_tiles_pages(t, r, *tile - 1, &ignored, &out->hi);
	return true;
}

/* A page that another thread wrote between the search for dirty ones and the shutting of the fence is the next epoch's: it is not what is looked for
 * here. */
static bool is_watched(struct vv_tiles *t, struct vv_region *r, uintptr_t lo, uintptr_t hi)
{
	struct seen s = { .tiles = t, .region = r };

	return vv_scan_look_dropped(t->scan, lo, hi, any_page, &s) == 0 && s.pages == 0;
}

static bool are_intact(struct vv_tiles *t, struct vv_region *r, struct vv_memory_range *range, size_t n)
{
	if (r->how != VV_BY_SCAN)
		return vv_fence_are_intact(r->fence, range, n);
	while (n > 0 && is_watched(t, r, range[n - 1].lo, range[n - 1].hi))
		n--;
	return n == 0;
}

static bool looks_intact(struct varve *v, struct vv_region *r)
{
	enum { MANY = 512 };
	struct vv_tiles *t = &v->tiles;
	struct vv_memory_range range[MANY];
	size_t tile = r->first_tile, n = 0;
	bool more = true, ok = true;

	if (r->how == VV_BY_SCAN && is_watched(t, r, r->lo, r->hi))
		return true; /* at one look; otherwise what is open may be gone, for it is stored or copied */
	while (ok && more) {
		more = next_shut(t, r, &tile, &range[n]);
		n += more && range[n].lo < range[n].hi;
		if (n == MANY || !more) {
			ok = are_intact(t, r, range, n);
			n = 0;
		}
	}
	return ok;
}

/* A descriptor that is opened for the look may be closed by another thread of the program: then there is another look. */
bool vv_dirty_is_intact(struct varve *v, struct vv_region *r)
{
	return looks_intact(v, r) || looks_intact(v, r);
}

bool vv_dirty_is_blind(struct varve *v, const struct vv_region *r)
{
	int rc = r->how == VV_BY_SCAN ? vv_scan_check(v->tiles.scan) : vv_fence_check(r->fence);

	if (rc)
		vv_err_context(rc, "region '%s' cannot be told to have stayed as it was while its checkpoint was being stored", r->name);
	return rc != 0;
}

/* Tiles that were opened by a write. */
static uint64_t collect_opened(struct varve *v, struct vv_region *r)
{
	struct vv_tiles *t = &v->tiles;
	uint64_t pages = 0;

	if (!vv_dirty_is_intact(v, r)) { /* mapped anew: what is not fenced any more was not seen */
		vv_tiles_unfence(t, r);
		r->fenced = vv_fence_add(r->fence, r->lo, r->hi) == 0;
		r->how = r->fenced ? VV_BY_FENCE : VV_BY_DIGEST;
		vv_err_clear();
	}
	for (size_t k = r->first_tile; k < r->first_tile + r->n_tiles; k++) {
		if (!(t->tile[k].flags & VV_TILE_OPEN))
			continue;
		vv_tiles_set_dirty(t, r, k, vv_tiles_groups(t, r, k));
		pages += (uint64_t)__builtin_popcountll(vv_tiles_groups(t, r, k)) * t->group_len / vv_memory_page();
	}
	mark_ends(t, r);
	return pages;
}

/* Should a region that is compared whole be watched? If little of it changed, and not too often in vain. */
static void reconsider(struct varve *v, struct vv_region *r)
{
	bool calm, hope;

	if (v->tracker != VV_BY_SCAN || r->lo == r->hi || !v->tiles.scan)
		return;
	calm = (double)r->changed <= CALM * dense(v, r) * (double)r->shape.len;
	hope = v->watch_late ? calm && !r->fresh : calm || r->backoff == 0;
	if (r->patience)
		r->patience--;
	else if (!v->watch_auto || hope)
		watch(v, r);
}

void vv_dirty_find(struct varve *v, uint64_t *pages)
{
	struct vv_tiles *t = &v->tiles;

	for (size_t i = 0; i < t->n_regions; i++) {
		struct vv_region *r = t->region[i];

		bool whole = r->fresh || r->how == VV_BY_DIGEST;

		r->shut_first = false;
		if (r->n_tiles == 0)
			continue;
		if (r->how == VV_BY_SCAN)
			*pages += collect(v, r);
		else if (r->how == VV_BY_FENCE)
			*pages += collect_opened(v, r);
		else
			reconsider(v, r);
		if (whole) {
			mark_all(t, r);
			r->pages_found = 0;
		}
		r->fresh = false;
		r->changed = 0;
	}
	vv_calls_note(&t->calls);
}

/* ---- audit ------------------------------------------------------------------------------------------------------------ */

static uint64_t draw(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* Asked of the kernel: a fault here would ask at the fence, which is ours to hold. Where it does not tell, memory is taken to be. */
static bool is_readable(const struct vv_tiles *t, const struct vv_region *r, size_t g)
{
	uintptr_t page = vv_memory_page(), at = (uintptr_t)r->p + (uint64_t)g * t->group_len, end = at + vv_tiles_group_len(t, r, g);

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
	const struct vv_tiles *t = &v->tiles;

	if (!is_readable(t, r, g))
		return vv_lost_memory_error(r);
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
int vv_dirty_audit(struct varve *v)
{
	struct vv_tiles *t = &v->tiles;
	uint64_t state = vv_clock_ns();
	int rc = 0;

	for (unsigned n = 0; rc == 0 && t->n && n < v->audit; n++) {
		size_t tile = (size_t)(draw(&state) % t->n);
		struct vv_region *r = vv_tiles_region(t, tile);
		uint64_t clean = vv_tiles_groups(t, r, tile) & ~vv_tiles_dirty(t, r, tile);
		unsigned skip = clean ? (unsigned)(draw(&state) % (unsigned)__builtin_popcountll(clean)) : 0;

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
