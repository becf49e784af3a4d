#include "engine/grains/written_pages.h"
#include "base/err.h"
#include "base/mem.h"
#include "track/memory.h"
#include "track/scan.h"
#include <string.h>

enum {
	PAGE = 4096,      /* of vv_span.maybe */
	LEAST = 1 << 20,  /* smaller regions are hashed faster than queried */
	CROWD = 4096,     /* more regions than this are not compared with each other */
};

/* Above this share of written pages, hashing everything is cheaper than catching first writes. */
static const double DENSE = 0.13;

void vv_written_pages_end(struct vv_fine *f)
{
	if (f->scan)
		vv_scan_detach(f->scan, f->lo, f->hi);
	f->scan = NULL;
	vv_calls_fini(&f->calls);
	vv_mem_free(f->maybe);
	f->maybe = NULL;
}

/* Two regions that share pages cannot be watched, since the first search would remove the marks of
 * the other. */
static bool is_alone(const struct varve *v, const struct vv_region *r)
{
	uintptr_t lo = (uintptr_t)r->p, hi = lo + r->shape.len;

	for (size_t i = 0; i < v->n_regions; i++) {
		const struct vv_region *x = v->region[i];

		if (x != r && x->shape.len && (uintptr_t)x->p < hi && (uintptr_t)x->p + x->shape.len > lo)
			return false;
	}
	return true;
}

static bool can_be_watched(const struct varve *v, const struct vv_region *r, uintptr_t *lo, uintptr_t *hi)
{
	return v->tracking.tracker == VV_BY_SCAN && v->tracking.scan && !r->untracked && r->shape.len >= LEAST && v->n_regions <= CROWD &&
	       is_alone(v, r) && vv_memory_pages(r->p, (size_t)r->shape.len, lo, hi);
}

/* The bytes of a mask with a bit per page. */
static size_t marks_len(const struct vv_region *r)
{
	return (size_t)(r->shape.len / PAGE / 64 + 1) * sizeof(*r->fine->maybe);
}

static void begin(struct varve *v, struct vv_region *r, uintptr_t lo, uintptr_t hi)
{
	struct vv_parallel_for loop = vv_pool_loop(v->ctx.pool);
	struct vv_fine *f = r->fine;

	vv_written_pages_end(f);
	f->maybe = vv_mem_new(1, marks_len(r));
	if (!f->maybe || !vv_memory_watchable(lo, hi) || vv_scan_attach(v->tracking.scan, &loop, lo, hi) < 0) {
		vv_err_clear();
		vv_mem_free(f->maybe);
		f->maybe = NULL;
		f->retry_in = UINT32_MAX / 2;
		return;
	}
	f->scan = v->tracking.scan;
	f->lo = lo;
	f->hi = hi;
	f->watched = r->shape.len;
	vv_calls_note(&f->calls);
}

struct looking {
	const struct vv_region *region;
	uint64_t pages;
};

static void mark(const struct vv_region *r, uint64_t from, uint64_t to)
{
	for (uint64_t i = from / PAGE; i < (to + PAGE - 1) / PAGE; i++)
		r->fine->maybe[i / 64] |= 1ull << i % 64;
}

static void seen(void *arg, uintptr_t lo, uintptr_t hi)
{
	struct looking *l = arg;
	uintptr_t p = (uintptr_t)l->region->p;

	l->pages += (hi - lo) / PAGE;
	mark(l->region, lo - p, hi - p);
}

bool vv_written_pages_start(struct varve *v, struct vv_region *r)
{
	struct vv_fine *f = r->fine;
	uintptr_t lo = 0, hi = 0;

	vv_written_pages_end(f);
	if (!can_be_watched(v, r, &lo, &hi))
		return false;
	if (f->retry_in)
		f->retry_in--;
	else
		begin(v, r, lo, hi);
	return f->scan;
}

int vv_written_pages_peek(struct vv_region *r, uint64_t at, uint64_t end)
{
	const struct vv_fine *f = r->fine;
	struct looking l = { r, 0 };
	uintptr_t page = vv_memory_page(), lo = ((uintptr_t)r->p + at) / page * page, hi = ((uintptr_t)r->p + end + page - 1) / page * page;

	return vv_scan_peek(f->scan, lo < f->lo ? f->lo : lo, hi > f->hi ? f->hi : hi, seen, &l);
}

/* The ends of a region share pages with other memory, so they count as written. */
static int look(struct vv_region *r, uint64_t *pages)
{
	struct vv_fine *f = r->fine;
	struct looking l = { r, 0 };
	uintptr_t p = (uintptr_t)r->p;
	int rc;

	memset(f->maybe, 0, marks_len(r));
	mark(r, 0, f->lo - p);
	mark(r, f->hi - p, r->shape.len);
	rc = vv_scan_collect(f->scan, f->lo, f->hi, seen, &l);
	*pages = l.pages;
	vv_calls_each(&f->calls, f->lo, f->hi, seen, &l);
	vv_calls_note(&f->calls);
	return rc;
}

const uint64_t *vv_written_pages_collect(struct varve *v, struct vv_region *r)
{
	struct vv_fine *f = r->fine;
	uintptr_t lo = 0, hi = 0;
	uint64_t pages = 0;

	if (!can_be_watched(v, r, &lo, &hi) || (f->scan && (lo != f->lo || hi != f->hi || r->shape.len != f->watched)))
		vv_written_pages_end(f);
	if (!f->scan) {
		if (f->retry_in)
			f->retry_in--;
		else if (lo < hi)
			begin(v, r, lo, hi);
		return NULL;
	}
	if (look(r, &pages) < 0) { /* some of its memory was replaced */
		vv_err_clear();
		vv_written_pages_end(f);
		return NULL;
	}
	if (v->tracking.automatic && (double)pages * PAGE > DENSE * (double)r->shape.len) {
		f->backoff = f->backoff ? 2 * f->backoff : 4;
		f->retry_in = f->backoff;
		vv_scan_detach(f->scan, f->lo, f->hi);
		f->scan = NULL; /* the result is still valid this time */
		return f->maybe;
	}
	return f->maybe;
}
