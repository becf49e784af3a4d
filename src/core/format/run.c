#include "core/format/run.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include <string.h>

void vv_run_fini(struct vv_runs *r)
{
	vv_mem_free(r->v);
	*r = (struct vv_runs){ 0 };
}

int vv_run_reserve(struct vv_runs *r, size_t n)
{
	struct vv_run *v;

	if (n <= r->cap)
		return 0;
	/* a caller that adds in small steps reserves often */
	n = n > 2 * r->cap ? n : 2 * r->cap;
	v = vv_mem_grow(r->v, n, sizeof(*v));
	if (!v)
		return VV_ENOMEM;
	if (!r->n)
		vv_mem_widen(v, n * sizeof(*v));
	r->v = v;
	r->cap = n;
	return 0;
}

int vv_run_add(struct vv_runs *r, struct vv_run run)
{
	if (run.len == 0)
		return 0;
	if (r->n && vv_run_joins(&r->v[r->n - 1], &run)) {
		r->v[r->n - 1].len += run.len;
		return 0;
	}
	if (r->n == r->cap && vv_mem_room(&r->v, r->n, &r->cap, sizeof(*r->v)) < 0)
		return VV_ENOMEM;
	r->v[r->n++] = run;
	return 0;
}

size_t vv_run_find(const struct vv_runs *r, uint64_t at)
{
	size_t i;

	VV_SEARCH(i, 0, r->n, r->v[i].at + r->v[i].len <= at);
	return i;
}

int vv_run_covers(const struct vv_runs *r, uint64_t len)
{
	uint64_t end = 0;

	for (size_t i = 0; i < r->n; i++) {
		if (r->v[i].at != end)
			return 0;
		end += r->v[i].len;
	}
	return end == len;
}

/* All runs but the first and the last are copied unchanged: they are joined already. */
int vv_run_slice(const struct vv_runs *from, uint64_t at, uint64_t end, struct vv_runs *out)
{
	size_t i = vv_run_find(from, at), n = vv_run_find(from, end);
	int rc;

	n += n < from->n && from->v[n].at < end;
	if (at >= end || i >= n)
		return 0;
	rc = vv_run_reserve(out, out->n + (n - i));
	if (rc == 0)
		rc = vv_run_add(out, vv_run_clip(from->v[i], at, end));
	if (rc || n - i < 2)
		return rc;
	memcpy(out->v + out->n, from->v + i + 1, (n - i - 2) * sizeof(*out->v));
	out->n += n - i - 2;
	return vv_run_add(out, vv_run_clip(from->v[n - 1], at, end));
}

int vv_run_overlay(const struct vv_runs *above, const struct vv_runs *below, struct vv_runs *out)
{
	size_t k = 0; /* the first run of `below` that may still be visible */
	uint64_t at = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i <= above->n; i++) {
		uint64_t end = i < above->n ? above->v[i].at : UINT64_MAX;

		for (; rc == 0 && k < below->n && below->v[k].at < end; k++) {
			if (below->v[k].at + below->v[k].len > at)
				rc = vv_run_add(out, vv_run_clip(below->v[k], at, end));
			if (below->v[k].at + below->v[k].len > end)
				break; /* it may be visible again after this run of `above` */
		}
		if (rc == 0 && i < above->n) {
			rc = vv_run_add(out, above->v[i]);
			at = end + above->v[i].len;
		}
	}
	return rc;
}
