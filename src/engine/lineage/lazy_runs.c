#include "engine/lineage/lazy_runs.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include <sched.h>
#include <stdatomic.h>

enum state { UNREAD, BUSY, GOOD, BAD }; /* of a part */

struct vv_lazy_runs {
	struct vv_head *h;
	struct vv_run_wire *wire;
	atomic_uchar **state; /* per region and part; NULL: the region has no parts */
	size_t n;
};

static int make_states(struct vv_lazy_runs *r)
{
	r->state = vv_mem_new(r->h->n_regions, sizeof(*r->state));
	r->n = r->state ? r->h->n_regions : 0;
	for (size_t i = 0; i < r->n; i++) {
		size_t parts = vv_run_wire_parts(r->wire, i);

		r->state[i] = parts ? vv_mem_new(parts, sizeof(**r->state)) : NULL;
		if (parts && !r->state[i])
			return VV_ENOMEM;
	}
	return r->state ? 0 : VV_ENOMEM;
}

static void drop_states(struct vv_lazy_runs *r)
{
	for (size_t i = 0; i < r->n; i++)
		vv_mem_free(r->state[i]);
	vv_mem_free(r->state);
	r->state = NULL;
	r->n = 0;
}

int vv_lazy_runs_new(struct vv_head *h, const void *sources, size_t n_sources, const void *runs, size_t n_runs, struct vv_pool *pool, struct vv_lazy_runs **out)
{
	struct vv_lazy_runs *r = vv_mem_new(1, sizeof(*r));
	struct vv_parallel_for loop = vv_pool_loop(pool);
	int rc;

	if (!r)
		return VV_ENOMEM;
	r->h = h;
	rc = vv_run_wire_begin(h, sources, n_sources, runs, n_runs, &loop, &r->wire);
	if (rc == 0)
		rc = make_states(r);
	if (rc)
		vv_lazy_runs_free(r);
	else
		*out = r;
	return rc;
}

void vv_lazy_runs_free(struct vv_lazy_runs *r)
{
	if (!r)
		return;
	drop_states(r);
	vv_run_wire_free(r->wire);
	vv_mem_free(r);
}

size_t vv_lazy_runs_sources(const struct vv_lazy_runs *r, const uint64_t **out)
{
	return vv_run_wire_sources(r->wire, out);
}

/* A part takes a fraction of a millisecond, so a thread that finds it BUSY polls. */
static bool read_part(struct vv_lazy_runs *r, size_t region, size_t i)
{
	atomic_uchar *state = &r->state[region][i];
	unsigned char was = UNREAD;

	if (atomic_compare_exchange_strong(state, &was, BUSY)) {
		was = vv_run_wire_read(r->wire, region, i) ? GOOD : BAD;
		atomic_store(state, was);
	}
	while (was == BUSY) {
		sched_yield();
		was = atomic_load(state);
	}
	return was == GOOD;
}

/* The last part that begins at or before `at`. */
static size_t find_part(const struct vv_lazy_runs *r, size_t region, size_t parts, uint64_t at)
{
	struct vv_run_wire_part part;
	size_t i;

	VV_SEARCH(i, 1, parts, (vv_run_wire_part(r->wire, region, i, &part), part.at <= at));
	return i - 1;
}

bool vv_lazy_runs_find(struct vv_lazy_runs *r, size_t region, uint64_t at, uint64_t end, struct vv_runs *out)
{
	const struct vv_runs *runs = &r->h->region[region].runs;
	size_t parts = vv_run_wire_parts(r->wire, region);
	struct vv_runs seen = *runs;

	if (parts)
		seen.n = 0;
	for (size_t i = parts ? find_part(r, region, parts, at) : 0; i < parts; i++) {
		struct vv_run_wire_part part;

		vv_run_wire_part(r->wire, region, i, &part);
		if (part.at >= end)
			break;
		if (!read_part(r, region, i))
			return false;
		if (seen.n == 0)
			seen.v = runs->v + part.first;
		seen.n += part.n;
	}
	*out = seen;
	return true;
}

int vv_lazy_runs_finish(struct vv_lazy_runs *r, struct vv_pool *pool)
{
	struct vv_parallel_for loop = vv_pool_loop(pool);

	drop_states(r);
	return vv_run_wire_end(r->wire, &loop);
}
