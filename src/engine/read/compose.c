#include "engine/read/compose.h"
#include "base/err.h"
#include "base/mem.h"
#include <stdlib.h>
#include <string.h>

enum { SLICE = 1 << 20 }; /* pieces, about */

/* ---- dimensions ------------------------------------------------------------------------------ */

static bool same_interval(const struct vv_box *a, const struct vv_box *b, unsigned d)
{
	return a->start[d] == b->start[d] && a->end[d] == b->end[d];
}

static bool scale(struct vv_box *b, unsigned d, int64_t by)
{
	return !__builtin_mul_overflow(b->start[d], by, &b->start[d]) && !__builtin_mul_overflow(b->end[d], by, &b->end[d]);
}

static bool scale_all(struct vv_composition *c, unsigned d, int64_t by)
{
	bool ok = scale(&c->memory, d, by);

	for (size_t i = 0; ok && i < c->n; i++)
		ok = scale(&c->source[i].memory, d, by) && scale(&c->source[i].provided, d, by);
	return ok;
}

/* Could dimension d be scaled without overflow? */
static bool fits(const struct vv_composition *c, unsigned d, int64_t by)
{
	struct vv_box b = c->memory;
	bool ok = scale(&b, d, by);

	for (size_t i = 0; ok && i < c->n; i++) {
		b = c->source[i].memory;
		ok = scale(&b, d, by);
	}
	return ok;
}

static void drop_last(struct vv_composition *c)
{
	c->memory.ndim--;
	for (size_t i = 0; i < c->n; i++) {
		c->source[i].memory.ndim--;
		c->source[i].provided.ndim--;
	}
}

/* If all have the last dimension complete, it becomes a part of the one before it. So rows are
 * long. */
static bool join_last(struct vv_composition *c)
{
	unsigned d = c->memory.ndim - 1;
	int64_t len = c->memory.end[d] - c->memory.start[d];
	bool same = d > 0 && len > 0;

	for (size_t i = 0; same && i < c->n; i++)
		same = same_interval(&c->memory, &c->source[i].memory, d) && same_interval(&c->memory, &c->source[i].provided, d);
	if (!same || !fits(c, d - 1, len))
		return false;
	drop_last(c);
	return scale_all(c, d - 1, len);
}

/* An upper limit of the pieces in which a range of dimensions from d on is composed. */
static uint64_t count_pieces(const struct vv_composition *c, unsigned d)
{
	uint64_t n = c->n;

	for (; d + 1 < c->memory.ndim; d++)
		if (__builtin_mul_overflow(n, (uint64_t)(c->memory.end[d] - c->memory.start[d]), &n))
			return UINT64_MAX;
	return n;
}

static void choose_slices(struct vv_composition *c)
{
	unsigned last = c->memory.ndim - 1, d = 0;
	uint64_t pieces;

	c->slice = 0;
	if (count_pieces(c, 0) <= SLICE || last == 0)
		return;
	while (d + 1 < last && count_pieces(c, d + 1) > SLICE)
		d++;
	pieces = count_pieces(c, d + 1);
	c->step = d;
	c->slice = pieces < SLICE ? (int64_t)(SLICE / (pieces ? pieces : 1)) : 1;
}

int vv_compose_begin(struct vv_composition *c)
{
	if (!scale_all(c, c->memory.ndim - 1, (int64_t)c->element))
		return vv_err_set(VV_EINVAL, "an array has more than 2^63 bytes");
	while (join_last(c))
		continue;
	memcpy(c->next, c->memory.start, sizeof(c->next));
	c->done = vv_distribution_is_empty(&c->memory);
	choose_slices(c);
	return 0;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

struct walk {
	struct vv_composition *c;
	struct vv_composed *out;
	const struct vv_box *box;
	uint8_t *to;
	const char *name;
	uint32_t *active; /* the sources, for each dimension */
	int64_t at[VV_MAX_DIMS];
};

static uint64_t offset_of(const struct vv_box *memory, const int64_t *at)
{
	uint64_t off = 0;

	for (unsigned d = 0; d < memory->ndim; d++)
		off = off * (uint64_t)(memory->end[d] - memory->start[d]) + (uint64_t)(at[d] - memory->start[d]);
	return off;
}

static int want_more(struct walk *w, uint64_t at, uint64_t len)
{
	struct vv_composed *o = w->out;
	struct vv_want *last = o->n ? &o->want[o->n - 1] : NULL;

	if (!w->to) /* the caller wants the runs alone */
		return 0;
	if (last && last->at + last->len == o->base + at) {
		last->len += len;
		return 0;
	}
	if (vv_mem_room(&o->want, o->n, &o->cap, sizeof(*o->want)) < 0)
		return VV_ENOMEM;
	o->want[o->n++] = (struct vv_want){ NULL, o->base + at, len, w->to + at, w->name };
	return 0;
}

static bool holds(const struct vv_runs *r, size_t k, uint64_t at)
{
	return k < r->n && r->v[k].at <= at && at < r->v[k].at + r->v[k].len;
}

/* The elements at w->at and after it in their row, len bytes, come from one source. */
static int add_piece(struct walk *w, struct vv_compose_source *s, uint64_t len)
{
	uint64_t from = offset_of(&s->memory, w->at), to = offset_of(&w->c->memory, w->at), end = from + len;
	size_t k = holds(s->runs, s->near, from) ? s->near : vv_run_find(s->runs, from);
	int rc = want_more(w, to, len);

	for (; rc == 0 && k < s->runs->n && s->runs->v[k].at < end; k++) {
		struct vv_run run = vv_run_clip(s->runs->v[k], from, end);

		s->near = k;
		run.at = w->out->base + to + (run.at - from);
		rc = vv_run_add(&w->out->runs, run);
	}
	return rc;
}

/* Sorts the sources of a row. They are few, or in order already. */
static void sort_row(const struct walk *w, uint32_t *v, size_t n, unsigned d)
{
	for (size_t i = 1; i < n; i++) {
		uint32_t x = v[i];
		size_t k = i;

		for (; k && w->c->source[v[k - 1]].provided.start[d] > w->c->source[x].provided.start[d]; k--)
			v[k] = v[k - 1];
		v[k] = x;
	}
}

static int compose_row(struct walk *w, uint32_t *active, size_t n)
{
	unsigned d = w->box->ndim - 1;
	int rc = 0;

	sort_row(w, active, n, d);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		struct vv_compose_source *s = &w->c->source[active[i]];
		int64_t from = s->provided.start[d] > w->box->start[d] ? s->provided.start[d] : w->box->start[d];
		int64_t to = s->provided.end[d] < w->box->end[d] ? s->provided.end[d] : w->box->end[d];

		w->at[d] = from;
		if (from < to)
			rc = add_piece(w, s, (uint64_t)(to - from));
	}
	return rc;
}

/* From x on, up to which index do the same sources apply? */
static int64_t border(const struct walk *w, const uint32_t *active, size_t n, unsigned d, int64_t x)
{
	int64_t y = w->box->end[d];

	for (size_t i = 0; i < n; i++) {
		const struct vv_box *b = &w->c->source[active[i]].provided;

		if (b->start[d] > x && b->start[d] < y)
			y = b->start[d];
		if (b->end[d] > x && b->end[d] < y)
			y = b->end[d];
	}
	return y;
}

static int compose(struct walk *w, unsigned d, uint32_t *active, size_t n)
{
	uint32_t *below = active + w->c->n;
	int rc = 0;

	if (d + 1 == w->box->ndim)
		return compose_row(w, active, n);
	for (int64_t x = w->box->start[d], y; rc == 0 && x < w->box->end[d]; x = y) {
		size_t k = 0;

		y = border(w, active, n, d, x);
		for (size_t i = 0; i < n; i++) {
			const struct vv_box *b = &w->c->source[active[i]].provided;

			if (b->start[d] <= x && x < b->end[d])
				below[k++] = active[i];
		}
		for (w->at[d] = x; rc == 0 && k && w->at[d] < y; w->at[d]++)
			rc = compose(w, d + 1, below, k);
	}
	return rc;
}

/* ---- slices ---------------------------------------------------------------------------------- */

/* The next slice, and whether it is the last one. */
static void cut_slice(struct vv_composition *c, struct vv_box *out)
{
	unsigned d = c->step;

	*out = c->memory;
	c->done = c->slice == 0;
	if (c->done)
		return;
	for (unsigned i = 0; i < d; i++) {
		out->start[i] = c->next[i];
		out->end[i] = c->next[i] + 1;
	}
	out->start[d] = c->next[d];
	if (out->end[d] - out->start[d] > c->slice)
		out->end[d] = out->start[d] + c->slice;
	c->next[d] = out->end[d];
	while (c->next[d] == c->memory.end[d] && d > 0) {
		c->next[d] = c->memory.start[d];
		c->next[--d]++;
	}
	c->done = c->next[0] == c->memory.end[0];
}

int vv_compose_slice(struct vv_composition *c, uint8_t *to, const char *name, struct vv_composed *out)
{
	struct vv_box box;
	struct walk w = { .c = c, .out = out, .box = &box, .to = to, .name = name };
	int rc;

	cut_slice(c, &box);
	w.active = vv_mem_new(c->n * box.ndim, sizeof(*w.active));
	if (!w.active)
		return VV_ENOMEM;
	for (size_t i = 0; i < c->n; i++)
		w.active[i] = (uint32_t)i;
	rc = compose(&w, 0, w.active, c->n);
	/* Runs and wants of the next destination must not continue these. */
	out->base = out->runs.n ? out->runs.v[out->runs.n - 1].at + out->runs.v[out->runs.n - 1].len + 1 : out->base;
	vv_mem_free(w.active);
	return rc;
}

struct vv_want *vv_compose_wants(struct vv_composed *c)
{
	for (size_t i = 0; i < c->n; i++)
		c->want[i].runs = &c->runs;
	return c->want;
}

void vv_compose_clear(struct vv_composed *c)
{
	c->runs.n = 0;
	c->n = 0;
	c->base = 0;
}

void vv_compose_fini(struct vv_composed *c)
{
	vv_run_fini(&c->runs);
	vv_mem_free(c->want);
	*c = (struct vv_composed){ 0 };
}
