/* Converts pieces to runs, by the locations of the data that they refer to. */
#include "engine/grains/grain_runs.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/search.h"
#include "engine/grains/repeats.h"
#include <string.h>

static int err_no_grains(void)
{
	return vv_err_set(VV_EINVAL, "grains are said to come from where there are none");
}

int vv_grain_runs_transfer(const struct vv_runs *from, uint64_t at, uint64_t len, uint64_t to, struct vv_runs *out)
{
	uint64_t end = at + len, done = at;
	int rc = 0;

	for (size_t i = vv_run_find(from, at); rc == 0 && i < from->n && from->v[i].at < end; i++) {
		struct vv_run run = from->v[i];
		uint64_t skip = run.at < at ? at - run.at : 0;

		run.pos += run.layer ? skip : 0;
		run.at += skip;
		run.len -= skip;
		run.len = run.at + run.len < end ? run.len : end - run.at;
		if (run.at != done)
			break;
		done += run.len;
		run.at = to + (run.at - at);
		rc = vv_run_add(out, run);
	}
	return rc || done == end ? rc : err_no_grains();
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* The first location that has bytes of the epoch's data from `at` on, or the one after all such
 * locations. */
static size_t find_place(const struct vv_set *s, uint32_t ordinal, uint64_t at)
{
	const struct vv_set_location *p = s->location;
	size_t i;

	VV_SEARCH(i, 0, s->n_locations, p[i].ordinal < ordinal || (p[i].ordinal == ordinal && p[i].end <= at));
	return i;
}

/* Adds the runs of the bytes at..at+len of that epoch's data to out, at offset `to`. */
static int transfer_data(const struct vv_set *s, uint32_t ordinal, uint64_t at, uint64_t len, uint64_t to, struct vv_runs *out)
{
	int rc = 0;

	for (size_t i = find_place(s, ordinal, at); rc == 0 && len && i < s->n_locations; i++) {
		const struct vv_set_location *p = &s->location[i];
		uint64_t some = p->end - at < len ? p->end - at : len;

		if (p->ordinal != ordinal || p->at > at)
			break;
		rc = vv_grain_runs_transfer(&p->shared_runs->runs, at - p->at, some, to, out);
		at += some;
		to += some;
		len -= some;
	}
	return rc || !len ? rc : err_no_grains();
}

/* Repeats the runs that lie `distance` bytes before. Runs that were just added may be repeated
 * again. */
static int repeat(struct vv_runs *found, uint64_t at, uint64_t len, uint64_t distance)
{
	int rc = 0;

	for (uint64_t done = 0; rc == 0 && done < len;) {
		uint64_t step = len - done < distance ? len - done : distance;

		rc = vv_grain_runs_transfer(found, at + done - distance, step, at + done, found);
		done += step;
	}
	return rc;
}

static int build_piece(const struct vv_layer_writer *p, const struct vv_set *s, size_t i, struct vv_runs *found)
{
	const struct vv_piece *x = &s->now.piece[i];
	uint64_t done, c = s->key.grain, at = x->at * c, len = x->len * c, number = vv_grain_number(x->from);
	int rc;

	switch (vv_grain_kind(x->from)) {
	case VV_PIECE_ZERO:
		return vv_run_add(found, (struct vv_run){ .at = at, .len = len });
	case VV_PIECE_NEW:
		return transfer_data(s, s->ordinal, number * c, len, at, found);
	case VV_PIECE_COPY:
		return transfer_data(s, vv_grain_ordinal(x->from), number * c, len, at, found);
	case VV_PIECE_REPEAT:
	default:
		rc = vv_repeats_emit(p, s, i, at, found, &done);
		return rc ? rc : repeat(found, at + done, len - done, number * c);
	}
}

int vv_grain_runs_place(struct vv_set *s, uint64_t at, uint64_t end, struct vv_shared_runs *shared_runs)
{
	if (vv_mem_room(&s->location, s->n_locations, &s->locations_cap, sizeof(*s->location)) < 0)
		return VV_ENOMEM;
	s->location[s->n_locations++] = (struct vv_set_location){ s->ordinal, at, end, vv_shared_runs_ref(shared_runs) };
	return 0;
}

void vv_grain_runs_forget_locations(struct vv_set *s, uint32_t ordinal)
{
	while (s->n_locations && s->location[s->n_locations - 1].ordinal >= ordinal)
		vv_shared_runs_unref(s->location[--s->n_locations].shared_runs);
}

/* Finds the location of the set's data of this epoch. */
static int find_data(struct vv_layer_writer *p, struct vv_set *s)
{
	uint64_t len = s->now.data_end - s->now.data;
	struct vv_shared_runs *shared_runs = vv_shared_runs_new();
	struct vv_runs in_stream = { 0 };
	int rc = shared_runs ? vv_new_data_runs(p, s->now.data, s->now.data_end, &in_stream) : VV_ENOMEM;

	if (rc == 0)
		rc = vv_grain_runs_transfer(&in_stream, s->now.data, len, 0, &shared_runs->runs);
	if (rc == 0)
		rc = vv_grain_runs_place(s, 0, len, shared_runs);
	vv_run_fini(&in_stream);
	vv_shared_runs_unref(shared_runs);
	return rc;
}

static int build_runs(struct vv_layer_writer *p, struct vv_set *s)
{
	int rc = find_data(p, s);

	s->now.found.n = 0;
	for (size_t i = 0; rc == 0 && i < s->now.n_pieces; i++)
		rc = build_piece(p, s, i, &s->now.found);
	s->now.placed = rc == 0;
	return rc;
}

/* ---- a region's runs ------------------------------------------------------------------------- */

static int add_tail(struct vv_layer_writer *p, const struct vv_region *r, struct vv_runs *out)
{
	const struct vv_fine *f = r->fine;
	uint64_t n = r->shape.len % f->key.grain;
	struct vv_runs in_stream = { 0 };
	int rc;

	if (f->tail_is == VV_TAIL_SAME)
		return 0;
	if (f->tail_is == VV_TAIL_ZERO)
		return vv_run_add(out, (struct vv_run){ .at = r->shape.len - n, .len = n });
	rc = vv_new_data_runs(p, f->tail_at, f->tail_at + n, &in_stream);
	if (rc == 0)
		rc = vv_grain_runs_transfer(&in_stream, f->tail_at, n, r->shape.len - n, out);
	vv_run_fini(&in_stream);
	return rc;
}

/* The changes, moved from the numbers of the set to the region's own offsets. */
static int changes(struct vv_layer_writer *p, struct vv_region *r, struct vv_runs *out)
{
	struct vv_set *s = r->fine->set;
	const struct vv_span *span = &s->span[r->fine->k];
	uint64_t c = s->key.grain, at = span->first * c, end = at + span->n * c;
	struct vv_runs here = { 0 };
	int rc = vv_run_slice(&s->now.found, at, end, &here);

	for (size_t i = 0; rc == 0 && i < here.n; i++) {
		here.v[i].at -= at;
		rc = vv_run_add(out, here.v[i]);
	}
	vv_run_fini(&here);
	return rc ? rc : add_tail(p, r, out);
}

static uint64_t end_of(const struct vv_runs *r)
{
	return r->n ? r->v[r->n - 1].at + r->v[r->n - 1].len : 0;
}

/* next: the changes, and the parts of the previous epoch's table that they do not cover. */
static int lay_over(const struct vv_fine *f, uint64_t len, const struct vv_runs *delta, struct vv_runs *next)
{
	static const struct vv_runs none;
	const struct vv_runs *table = f->table ? &f->table->runs : &none;
	struct vv_runs shorter = { 0 };
	int rc;

	if (end_of(table) <= len)
		return vv_run_overlay(delta, table, next);
	rc = vv_run_slice(table, 0, len, &shorter);
	if (rc == 0)
		rc = vv_run_overlay(delta, &shorter, next);
	vv_run_fini(&shorter);
	return rc;
}

static int region_runs(struct vv_layer_writer *p, struct vv_region *r, bool all, struct vv_runs *out)
{
	struct vv_fine *f = r->fine;
	struct vv_runs delta = { 0 };
	int rc;

	vv_shared_runs_unref(f->next);
	f->next = vv_shared_runs_new();
	rc = f->next ? changes(p, r, &delta) : VV_ENOMEM;
	if (rc == 0)
		rc = lay_over(f, r->shape.len, &delta, &f->next->runs);
	if (rc == 0 && !vv_run_covers(&f->next->runs, r->shape.len))
		rc = vv_err_set(VV_EINVAL, "region '%s': the changes and the epoch before do not make up a whole", r->name);
	if (rc == 0)
		rc = vv_run_slice(all ? &f->next->runs : &delta, 0, r->shape.len, out);
	vv_run_fini(&delta);
	return rc;
}

struct adding {
	struct vv_layer_writer *p;
	pthread_mutex_t lock;
	struct vv_err_state error; /* the first one */
};

static void add_region(void *arg, size_t i)
{
	struct adding *a = arg;
	struct vv_region *r = a->p->region[i];
	struct vv_head_region *out = &a->p->head.region[i];
	int rc = r->fine ? region_runs(a->p, r, a->p->keyframe || !out->parent, &out->runs) : 0;

	if (!rc)
		return;
	pthread_mutex_lock(&a->lock);
	if (!a->error.code)
		vv_err_save(rc, &a->error);
	pthread_mutex_unlock(&a->lock);
}

int vv_grain_runs_add(struct vv_layer_writer *p)
{
	struct adding a = { .p = p, .lock = PTHREAD_MUTEX_INITIALIZER };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < p->n_regions; i++)
		if (p->region[i]->fine && !p->region[i]->fine->set->now.placed)
			rc = build_runs(p, p->region[i]->fine->set);
	if (rc)
		return rc;
	vv_pool_each(p->v->ctx.pool, p->n_regions, add_region, &a);
	return a.error.code ? vv_err_restore(&a.error) : 0;
}

/* ---- end of an epoch ------------------------------------------------------------------------- */

static void end_set(struct vv_set *s)
{
	s->now.passed = s->now.placed = false;
	s->now.n_pieces = 0;
	vv_run_fini(&s->now.found);
}

void vv_grain_runs_accept(struct vv_layer_writer *p)
{
	for (size_t i = 0; p->v->grains && i < p->v->grains->n; i++)
		end_set(p->v->grains->set[i]);
	for (size_t i = 0; i < p->n_regions; i++) {
		struct vv_fine *f = p->region[i]->fine;

		if (!f)
			continue;
		vv_shared_runs_unref(f->table);
		f->table = f->next;
		f->next = NULL;
		f->len = p->region[i]->shape.len;
	}
}

void vv_grain_runs_abandon(struct vv_layer_writer *p)
{
	for (size_t i = 0; p->v->grains && i < p->v->grains->n; i++) {
		struct vv_set *s = p->v->grains->set[i];

		if (s->now.passed && s->sieve)
			s->space->forget(s->sieve, s->ordinal);
		if (s->now.passed)
			vv_grain_runs_forget_locations(s, s->ordinal);
		end_set(s);
	}
	for (size_t i = 0; i < p->n_regions; i++)
		if (p->region[i]->fine)
			p->region[i]->fine->tail_known = false;
}
