/* The tables are painted one over another, the lowest first, in windows of the region. The visible
 * runs are then collected, so every run is touched once. Parts of the region are painted in
 * parallel and joined in order. */
#include "core/format/overlay.h"
#include "base/err.h"
#include "base/mem.h"
#include <string.h>

enum {
	WINDOW_UNITS = 8192,
	/* of a part, if that leaves parts for all threads: each part begins with a search in each
	 * table */
	WINDOWS = 4,
	PARTS = 2,           /* for each thread, at a time */
	STEP = 32 << 10,     /* runs */
	DENSE = 64,          /* painting pays where there is a run for so many units, */
	FEW = 4096,          /* or where there are no more */
};

struct overlay_part {
	const struct vv_run **seen; /* of a window, per unit */
	struct vv_runs runs;
	size_t to;   /* their place in the output */
	bool joined; /* the first continues the last run of the part before */
	bool gaps;
	int rc;
};

struct stack {
	const struct vv_runs *const *table;
	size_t n, total;
	const struct vv_parallel_for *loop;
	unsigned shift; /* of a unit: all borders are multiples of 1 << shift */
	uint64_t end;
	uint64_t part_units;
	uint64_t *borders; /* all of a step, or'ed */
	struct overlay_part *part;
	const struct vv_run **seen; /* of all parts */
	size_t *next; /* per part and table: the run that is painted next */
	size_t first; /* number of part[0] */
	struct vv_runs *out;
};

/* ---- two by two, where runs are few ---------------------------------------------------------- */

/* Merges in a tree: every run is touched log(tables) times, not once per table. */
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

/* ---- units ----------------------------------------------------------------------------------- */

static size_t steps_of(const struct vv_runs *t)
{
	return (t->n + STEP - 1) / STEP;
}

static void find_borders(void *arg, size_t i)
{
	struct stack *s = arg;
	const struct vv_runs *const *t = s->table;
	uint64_t borders = 0;
	size_t step = i, end;

	for (; step >= steps_of(*t); t++)
		step -= steps_of(*t);
	end = (*t)->n - step * STEP < STEP ? (*t)->n : (step + 1) * STEP;
	for (size_t k = step * STEP; k < end; k++) {
		const struct vv_run *r = &(*t)->v[k];

		borders |= r->at | (r->at + r->len == s->end ? 0 : r->at + r->len);
	}
	s->borders[i] = borders;
}

/* Finds the largest possible unit; without borders one unit covers everything. */
static int find_unit(struct stack *s)
{
	uint64_t borders = 0;
	size_t steps = 0;

	for (size_t i = 0; i < s->n; i++)
		steps += steps_of(s->table[i]);
	s->borders = vv_mem_new(steps, sizeof(*s->borders));
	if (!s->borders)
		return VV_ENOMEM;
	vv_parallel_for_each(s->loop, steps, find_borders, s);
	for (size_t i = 0; i < steps; i++)
		borders |= s->borders[i];
	vv_mem_free(s->borders);
	s->shift = borders ? (unsigned)__builtin_ctzll(borders) : 63;
	return 0;
}

/* ---- painting -------------------------------------------------------------------------------- */

static uint64_t units(const struct stack *s, uint64_t len)
{
	return (len >> s->shift) + (len & ((1ull << s->shift) - 1) ? 1 : 0);
}

/* Paints into the window at..end, from the table's run *next on. */
static void paint(const struct stack *s, const struct vv_run **seen, const struct vv_runs *table, size_t *next, uint64_t at, uint64_t end)
{
	for (; *next < table->n && table->v[*next].at < end; ++*next) {
		const struct vv_run *r = &table->v[*next];
		uint64_t from = r->at > at ? r->at : at, to = r->at + r->len < end ? r->at + r->len : end;
		size_t last = (size_t)units(s, to - at);

		for (size_t i = (size_t)((from - at) >> s->shift); i < last; i++)
			seen[i] = r;
		if (r->at + r->len > end)
			break; /* the next window has a part of it, too */
	}
}

static int take_down(const struct stack *s, struct overlay_part *p, uint64_t at, uint64_t end)
{
	size_t n = (size_t)units(s, end - at), k;
	struct vv_run *last;

	if (vv_run_reserve(&p->runs, p->runs.n + n) < 0)
		return VV_ENOMEM;
	last = p->runs.n ? &p->runs.v[p->runs.n - 1] : NULL;
	for (size_t i = 0; i < n; i = k) {
		const struct vv_run *r = p->seen[i];
		uint64_t to;

		for (k = i + 1; k < n && p->seen[k] == r; k++)
			;
		if (!r) {
			p->gaps = true;
			continue;
		}
		to = at + ((uint64_t)k << s->shift);

		struct vv_run seen = vv_run_clip(*r, at + ((uint64_t)i << s->shift), to < end && k < n ? to : end);

		if (last && vv_run_joins(last, &seen)) {
			last->len += seen.len;
			continue;
		}
		last = &p->runs.v[p->runs.n++];
		*last = seen;
	}
	return 0;
}

static void paint_part(void *arg, size_t i)
{
	struct stack *s = arg;
	struct overlay_part *p = &s->part[i];
	uint64_t at = (s->first + i) * s->part_units << s->shift, part_end = s->end, end;
	size_t *next = s->next + i * s->n;

	p->rc = 0;
	p->runs.n = 0;
	if (units(s, s->end - at) > s->part_units)
		part_end = at + (s->part_units << s->shift);
	for (size_t t = 0; t < s->n; t++)
		next[t] = vv_run_find(s->table[t], at);
	for (; p->rc == 0 && at < part_end; at = end) {
		end = units(s, part_end - at) > WINDOW_UNITS ? at + ((uint64_t)WINDOW_UNITS << s->shift) : part_end;
		memset(p->seen, 0, (size_t)units(s, end - at) * sizeof(*p->seen));
		for (size_t t = s->n; t-- > 0;)
			paint(s, p->seen, s->table[t], &next[t], at, end);
		p->rc = take_down(s, p, at, end);
	}
}

/* ---- one behind the other -------------------------------------------------------------------- */

static int place_parts(struct stack *s, size_t n)
{
	const struct vv_run *last = s->out->n ? &s->out->v[s->out->n - 1] : NULL;
	size_t end = s->out->n;

	for (size_t i = 0; i < n; i++) {
		struct overlay_part *p = &s->part[i];

		if (p->rc)
			return vv_err_set(VV_ENOMEM, "out of memory (%zu runs in %zu tables)", s->total, s->n);
		p->joined = p->runs.n && last && vv_run_joins(last, p->runs.v);
		p->to = end;
		end += p->runs.n - p->joined;
		last = p->runs.n ? &p->runs.v[p->runs.n - 1] : last;
	}
	return vv_run_reserve(s->out, end);
}

static void copy_part(void *arg, size_t i)
{
	struct stack *s = arg;
	const struct overlay_part *p = &s->part[i];

	if (p->runs.n > p->joined)
		memcpy(s->out->v + p->to, p->runs.v + p->joined, (p->runs.n - p->joined) * sizeof(*p->runs.v));
}

static int lay(struct stack *s, size_t n, bool *gaps)
{
	int rc;

	vv_parallel_for_each(s->loop, n, paint_part, s);
	rc = place_parts(s, n);
	if (rc)
		return rc;
	vv_parallel_for_each(s->loop, n, copy_part, s);
	for (size_t i = 0; i < n; i++) {
		const struct overlay_part *p = &s->part[i];

		if (p->joined)
			s->out->v[p->to - 1].len += p->runs.v[0].len;
		s->out->n = p->to + p->runs.n - p->joined;
		*gaps |= p->gaps;
	}
	return 0;
}

static int paint_all(struct stack *s, bool *gaps)
{
	uint64_t n_units = units(s, s->end), windows = (n_units + WINDOW_UNITS - 1) / WINDOW_UNITS;
	size_t width = s->loop->each ? PARTS * s->loop->width : 1, window = n_units < WINDOW_UNITS ? (size_t)n_units : WINDOW_UNITS, all;
	int rc;

	s->part_units = (windows < width ? 1 : windows / width < WINDOWS ? windows / width : WINDOWS) * WINDOW_UNITS;
	all = (size_t)((n_units + s->part_units - 1) / s->part_units);
	width = width < all ? width : all;
	s->part = vv_mem_new(width, sizeof(*s->part));
	s->next = vv_mem_new(width, s->n * sizeof(*s->next));
	s->seen = vv_mem_new(width, window * sizeof(*s->seen));
	/* about the number of runs in the result */
	rc = s->part && s->next && s->seen ? vv_run_reserve(s->out, s->total) : VV_ENOMEM;
	for (size_t i = 0; rc == 0 && i < width; i++)
		s->part[i].seen = s->seen + i * window;
	for (; rc == 0 && s->first < all; s->first += width)
		rc = lay(s, all - s->first < width ? all - s->first : width, gaps);
	for (size_t i = 0; s->part && i < width; i++)
		vv_run_fini(&s->part[i].runs);
	vv_mem_free(s->part);
	vv_mem_free(s->next);
	vv_mem_free(s->seen);
	return rc;
}

int vv_overlay_runs(const struct vv_runs *const *table, size_t n, const struct vv_parallel_for *loop, struct vv_runs *out, bool *gaps)
{
	struct stack s = { .table = table, .n = n, .loop = loop, .out = out };
	bool sparse;
	int rc;

	*gaps = false;
	for (size_t i = 0; i < n; i++) {
		const struct vv_run *last = table[i]->n ? &table[i]->v[table[i]->n - 1] : NULL;

		s.end = last && last->at + last->len > s.end ? last->at + last->len : s.end;
		s.total += table[i]->n;
	}
	rc = n > 2 ? find_unit(&s) : 0;
	if (rc)
		return rc;
	sparse = units(&s, s.end) > DENSE * s.total + FEW;
	if (n > 2 && s.end && !sparse)
		return paint_all(&s, gaps);
	rc = merge(table, n, out);
	*gaps = rc == 0 && !vv_run_covers(out, s.end);
	return rc;
}
