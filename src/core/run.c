#include "core/run.h"
#include "base/err.h"
#include "base/mem.h"
#include <string.h>

void vv_run_fini(struct vv_runs *r)
{
	vv_mem_free(r->v);
	*r = (struct vv_runs){ 0 };
}

int vv_run_joins(const struct vv_run *a, const struct vv_run *b)
{
	return a->at + a->len == b->at && a->layer == b->layer && (a->layer == 0 || a->pos + a->len == b->pos);
}

int vv_run_reserve(struct vv_runs *r, size_t n)
{
	struct vv_run *v;

	if (n <= r->cap)
		return 0;
	n = n > 2 * r->cap ? n : 2 * r->cap; /* whoever adds bit by bit asks often */
	v = vv_mem_grow(r->v, n, sizeof(*v));
	if (!v)
		return VV_ENOMEM;
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
	size_t lo = 0, hi = r->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (r->v[mid].at + r->v[mid].len <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
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

static struct vv_run clip(struct vv_run run, uint64_t at, uint64_t end)
{
	if (run.at < at) {
		run.pos += run.layer ? at - run.at : 0;
		run.len -= at - run.at;
		run.at = at;
	}
	if (run.at + run.len > end)
		run.len = end - run.at;
	return run;
}

/* All but the first and the last are taken as they are: they are joined already. */
int vv_run_slice(const struct vv_runs *from, uint64_t at, uint64_t end, struct vv_runs *out)
{
	size_t i = vv_run_find(from, at), n = vv_run_find(from, end);
	int rc;

	n += n < from->n && from->v[n].at < end;
	if (at >= end || i >= n)
		return 0;
	rc = vv_run_reserve(out, out->n + (n - i));
	if (rc == 0)
		rc = vv_run_add(out, clip(from->v[i], at, end));
	if (rc || n - i < 2)
		return rc;
	memcpy(out->v + out->n, from->v + i + 1, (n - i - 2) * sizeof(*out->v));
	out->n += n - i - 2;
	return vv_run_add(out, clip(from->v[n - 1], at, end));
}

int vv_run_overlay(const struct vv_runs *above, const struct vv_runs *below, struct vv_runs *out)
{
	size_t k = 0; /* the first run of below that may still matter */
	uint64_t at = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i <= above->n; i++) {
		uint64_t end = i < above->n ? above->v[i].at : UINT64_MAX;

		for (; rc == 0 && k < below->n && below->v[k].at < end; k++) {
			if (below->v[k].at + below->v[k].len > at)
				rc = vv_run_add(out, clip(below->v[k], at, end));
			if (below->v[k].at + below->v[k].len > end)
				break; /* it may show again behind this run of above */
		}
		if (rc == 0 && i < above->n) {
			rc = vv_run_add(out, above->v[i]);
			at = end + above->v[i].len;
		}
	}
	return rc;
}

/* Two by two, in a tree: every run is touched log(tables) times, not once per table. */
static int merge(const struct vv_runs *const *table, size_t n, struct vv_runs *out)
{
	struct vv_runs a = { 0 }, b = { 0 };
	int rc;

	if (n < 2)
		return n ? vv_run_slice(table[0], 0, UINT64_MAX, out) : 0;
	if (n == 2)
		return vv_run_overlay(table[0], table[1], out);
	rc = merge(table, n / 2, &a);
	if (rc == 0)
		rc = merge(table + n / 2, n - n / 2, &b);
	if (rc == 0)
		rc = vv_run_overlay(&a, &b, out);
	vv_run_fini(&a);
	vv_run_fini(&b);
	return rc;
}

enum { WINDOW_UNITS = 8192, PART_UNITS = 4 * WINDOW_UNITS };

struct canvas { /* a window of the region, a run per unit of it: the one that is seen there */
	uint64_t unit, at, end;
	const struct vv_run *seen[WINDOW_UNITS];
};

static void paint(struct canvas *c, const struct vv_runs *table, size_t *next)
{
	for (; *next < table->n && table->v[*next].at < c->end; ++*next) {
		const struct vv_run *r = &table->v[*next];
		uint64_t from = r->at > c->at ? r->at : c->at, to = r->at + r->len < c->end ? r->at + r->len : c->end;

		for (uint64_t i = (from - c->at) / c->unit; i < (to - c->at + c->unit - 1) / c->unit; i++)
			c->seen[i] = r;
		if (r->at + r->len > c->end)
			break; /* the next window has some of it, too */
	}
}

static int take_down(const struct canvas *c, struct vv_runs *out)
{
	size_t n = (size_t)((c->end - c->at + c->unit - 1) / c->unit);
	int rc = 0;

	for (size_t i = 0, first = 0; rc == 0 && i < n; first = i) {
		const struct vv_run *r = c->seen[first];

		while (i < n && c->seen[i] == r)
			i++;
		if (r)
			rc = vv_run_add(out, clip(*r, c->at + first * c->unit, c->at + i * c->unit));
	}
	return rc;
}

/* One over another, window by window: every run is touched once. */
static int paint_all(const struct vv_run_stack *s, uint64_t at, uint64_t end, struct vv_runs *out)
{
	struct canvas *c = vv_mem_new(1, sizeof(*c));
	size_t *next = vv_mem_new(s->n, sizeof(*next));
	int rc = c && next ? 0 : VV_ENOMEM;

	for (size_t i = 0; rc == 0 && i < s->n; i++)
		next[i] = vv_run_find(s->table[i], at);
	for (; rc == 0 && at < end; at = c->end) {
		uint64_t room = s->unit * WINDOW_UNITS;

		*c = (struct canvas){ .unit = s->unit, .at = at, .end = end - at < room ? end : at + room };
		for (size_t i = s->n; i-- > 0;)
			paint(c, s->table[i], &next[i]);
		rc = take_down(c, out);
	}
	vv_mem_free(c);
	vv_mem_free(next);
	return rc;
}

/* Painting pays where there are runs enough for the units that they all are made of. */
void vv_run_stack_begin(struct vv_run_stack *s, const struct vv_runs *const *table, size_t n)
{
	enum { DENSE = 8, FEW = 4096 };
	uint64_t borders = 0;
	size_t total = 0;

	*s = (struct vv_run_stack){ .table = table, .n = n, .parts = 1 };
	for (size_t i = 0; i < n; i++) {
		const struct vv_run *last = table[i]->n ? &table[i]->v[table[i]->n - 1] : NULL;

		s->end = last && last->at + last->len > s->end ? last->at + last->len : s->end;
		total += table[i]->n;
	}
	for (size_t i = 0; n > 2 && i < n; i++)
		for (size_t k = 0; k < table[i]->n; k++) {
			const struct vv_run *r = &table[i]->v[k];

			borders |= r->at | (r->at + r->len == s->end ? 0 : r->at + r->len);
		}
	s->unit = borders ? borders & -borders : s->end;
	if (n > 2 && s->end && s->end / s->unit <= DENSE * total + FEW)
		s->parts = (size_t)((s->end / s->unit) / PART_UNITS) + 1;
	else
		s->unit = 0;
}

int vv_run_stack_part(const struct vv_run_stack *s, size_t i, struct vv_runs *out)
{
	uint64_t len = s->unit * PART_UNITS, at = i * len;

	if (!s->unit)
		return merge(s->table, s->n, out);
	return paint_all(s, at, i + 1 < s->parts ? at + len : s->end, out);
}

int vv_run_stack(const struct vv_runs *const *table, size_t n, struct vv_runs *out)
{
	struct vv_run_stack s;
	int rc = 0;

	vv_run_stack_begin(&s, table, n);
	for (size_t i = 0; rc == 0 && i < s.parts; i++)
		rc = vv_run_stack_part(&s, i, out);
	return rc;
}
