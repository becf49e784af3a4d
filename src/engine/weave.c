/* Pieces become runs: through the places of the data that they name. */
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/echo.h"

/* The part of `from` at `at`, so many bytes, comes to `to` in out. */
static int transfer(const struct vv_runs *from, uint64_t at, uint64_t len, uint64_t to, struct vv_runs *out)
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
	return rc || done == end ? rc : vv_err_set(VV_EINVAL, "grains are said to come from where there are none");
}

/* ---- pieces ------------------------------------------------------------------------------------------------------------------- */

static const struct vv_runs *place_of(const struct vv_set *s, uint32_t ordinal)
{
	static const struct vv_runs nowhere;
	size_t lo = 0, hi = s->n_places;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->place[mid].ordinal < ordinal)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < s->n_places && s->place[lo].ordinal == ordinal ? &s->place[lo].runs : &nowhere;
}

/* What lies `distance` before, as often as it takes: what was just written may be copied on. */
static int repeat(struct vv_runs *found, uint64_t at, uint64_t len, uint64_t distance)
{
	int rc = 0;

	for (uint64_t done = 0; rc == 0 && done < len;) {
		uint64_t step = len - done < distance ? len - done : distance;

		rc = transfer(found, at + done - distance, step, at + done, found);
		done += step;
	}
	return rc;
}

static int weave_piece(const struct vv_pass *p, const struct vv_set *s, size_t i, struct vv_runs *found)
{
	const struct vv_piece *x = &s->piece[i];
	uint64_t done, c = s->key.grain, at = x->at * c, len = x->len * c, number = vv_grain_number(x->from);
	int rc;

	switch (vv_grain_kind(x->from)) {
	case VV_PIECE_ZERO:
		return vv_run_add(found, (struct vv_run){ .at = at, .len = len });
	case VV_PIECE_NEW:
		return transfer(place_of(s, s->ordinal), number * c, len, at, found);
	case VV_PIECE_COPY:
		return transfer(place_of(s, vv_grain_ordinal(x->from)), number * c, len, at, found);
	case VV_PIECE_REPEAT:
	default:
		rc = vv_echo_weave(p, s, i, at, found, &done);
		return rc ? rc : repeat(found, at + done, len - done, number * c);
	}
}

static int add_place(struct vv_set *s, struct vv_runs *runs)
{
	if (vv_mem_room(&s->place, s->n_places, &s->places_cap, sizeof(*s->place)) < 0)
		return VV_ENOMEM;
	s->place[s->n_places++] = (struct vv_set_place){ s->ordinal, *runs };
	*runs = (struct vv_runs){ 0 };
	return 0;
}

static void drop_place(struct vv_set *s, uint32_t ordinal)
{
	while (s->n_places && s->place[s->n_places - 1].ordinal >= ordinal)
		vv_run_fini(&s->place[--s->n_places].runs);
}

/* Where the set's data of this epoch came to lie. */
static int find_data(struct vv_pass *p, struct vv_set *s)
{
	struct vv_runs in_stream = { 0 }, runs = { 0 };
	int rc = vv_stream_runs(p, s->data, s->data_end, &in_stream);

	if (rc == 0)
		rc = transfer(&in_stream, s->data, s->data_end - s->data, 0, &runs);
	if (rc == 0)
		rc = add_place(s, &runs);
	vv_run_fini(&in_stream);
	vv_run_fini(&runs);
	return rc;
}

static int weave(struct vv_pass *p, struct vv_set *s)
{
	int rc = find_data(p, s);

	s->found.n = 0;
	for (size_t i = 0; rc == 0 && i < s->n_pieces; i++)
		rc = weave_piece(p, s, i, &s->found);
	s->placed = rc == 0;
	return rc;
}

/* ---- a region's runs --------------------------------------------------------------------------------------------------------------- */

static int add_tail(struct vv_pass *p, const struct vv_region *r, struct vv_runs *out)
{
	const struct vv_fine *f = r->fine;
	uint64_t n = r->shape.len % f->key.grain;
	struct vv_runs in_stream = { 0 };
	int rc;

	if (f->tail_is == VV_TAIL_SAME)
		return 0;
	if (f->tail_is == VV_TAIL_ZERO)
		return vv_run_add(out, (struct vv_run){ .at = r->shape.len - n, .len = n });
	rc = vv_stream_runs(p, f->tail_at, f->tail_at + n, &in_stream);
	if (rc == 0)
		rc = transfer(&in_stream, f->tail_at, n, r->shape.len - n, out);
	vv_run_fini(&in_stream);
	return rc;
}

/* The changes, moved from the numbers of the set to the region's own offsets. */
static int changes(struct vv_pass *p, struct vv_region *r, struct vv_runs *out)
{
	struct vv_set *s = r->fine->set;
	const struct vv_span *span = &s->span[r->fine->k];
	uint64_t c = s->key.grain, at = span->first * c, end = at + span->n * c;
	struct vv_runs here = { 0 };
	int rc = s->placed ? 0 : weave(p, s);

	if (rc == 0)
		rc = vv_run_slice(&s->found, at, end, &here);
	for (size_t i = 0; rc == 0 && i < here.n; i++) {
		here.v[i].at -= at;
		rc = vv_run_add(out, here.v[i]);
	}
	vv_run_fini(&here);
	return rc ? rc : add_tail(p, r, out);
}

int vv_weave_runs(struct vv_pass *p, struct vv_region *r, bool all, struct vv_runs *out)
{
	struct vv_fine *f = r->fine;
	struct vv_runs delta = { 0 }, below = { 0 };
	int rc = changes(p, r, &delta);

	if (rc == 0)
		rc = vv_run_slice(&f->table, 0, r->shape.len, &below);
	f->next.n = 0;
	if (rc == 0)
		rc = vv_run_overlay(&delta, &below, &f->next);
	if (rc == 0 && !vv_run_covers(&f->next, r->shape.len))
		rc = vv_err_set(VV_EINVAL, "region '%s': the changes and the epoch before do not make up a whole", r->name);
	if (rc == 0)
		rc = vv_run_slice(all ? &f->next : &delta, 0, r->shape.len, out);
	vv_run_fini(&delta);
	vv_run_fini(&below);
	return rc;
}

/* ---- what becomes of it ----------------------------------------------------------------------------------------------------------- */

static void end_set(struct vv_set *s)
{
	s->passed = s->placed = false;
	s->n_pieces = 0;
	vv_run_fini(&s->found);
}

void vv_weave_accept(struct vv_pass *p)
{
	for (size_t i = 0; p->v->grains && i < p->v->grains->n; i++)
		end_set(p->v->grains->set[i]);
	for (size_t i = 0; i < p->n_regions; i++) {
		struct vv_fine *f = p->region[i]->fine;

		if (!f)
			continue;
		vv_run_fini(&f->table);
		f->table = f->next;
		f->next = (struct vv_runs){ 0 };
		f->len = p->region[i]->shape.len;
	}
}

void vv_weave_retract(struct vv_pass *p)
{
	for (size_t i = 0; p->v->grains && i < p->v->grains->n; i++) {
		struct vv_set *s = p->v->grains->set[i];

		if (s->passed && s->sieve)
			s->space->forget(s->sieve, s->ordinal);
		if (s->passed)
			drop_place(s, s->ordinal);
		end_set(s);
	}
	for (size_t i = 0; i < p->n_regions; i++)
		if (p->region[i]->fine)
			p->region[i]->fine->tail_known = false;
}

/* ---- going on from what is stored -------------------------------------------------------------------------------------------------- */

struct ranges {
	struct vv_range *v;
	size_t n, cap;
};

static int add_range(struct ranges *out, uint32_t at, uint32_t n)
{
	struct vv_range *last = out->n ? &out->v[out->n - 1] : NULL;

	if (last && last->at + last->len == at) {
		last->len += n;
		return 0;
	}
	if (vv_mem_room(&out->v, out->n, &out->cap, sizeof(*out->v)) < 0)
		return VV_ENOMEM;
	out->v[out->n++] = (struct vv_range){ at, n };
	return 0;
}

/* The whole grains of a run that is not zero: usable, under their own numbers. */
static int use_run(const struct vv_set *s, const struct vv_span *span, const struct vv_run *run, struct ranges *out,
		   struct vv_runs *place)
{
	uint64_t c = s->key.grain, lo = (run->at + c - 1) / c, hi = (run->at + run->len) / c;

	hi = hi < span->n ? hi : span->n;
	if (!run->layer || lo >= hi)
		return 0;
	if (out)
		return add_range(out, span->first + (uint32_t)lo, (uint32_t)(hi - lo));
	return vv_run_add(place, (struct vv_run){ (span->first + lo) * c, (hi - lo) * c, run->layer, run->pos + (lo * c - run->at) });
}

/* What is usable, or else where it lies. */
static int use_set(const struct vv_set *s, const struct vv_span *span, struct ranges *out, struct vv_runs *place)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->n; i++) {
		const struct vv_runs *table = s->region[i] ? &s->region[i]->fine->table : NULL;

		if (table && place)
			rc = vv_run_reserve(place, place->n + table->n);
		for (size_t k = 0; table && rc == 0 && k < table->n; k++)
			rc = use_run(s, &span[i], &table->v[k], out, place);
	}
	return rc;
}

struct placing {
	struct vv_task task; /* first */
	const struct vv_set *set;
	struct vv_span *span; /* as they are before the sieve numbers them anew, to the same numbers */
	struct vv_runs place;
	int rc;
	struct vv_err_state error;
};

static void find_place(struct vv_task *task)
{
	struct placing *p = (struct placing *)task;

	p->rc = use_set(p->set, p->span, NULL, &p->place);
	if (p->rc)
		vv_err_save(p->rc, &p->error);
}

/* All that the set knew goes; what its regions' tables name is known, as one more epoch's data. Where that lies is found while
 * it is being hashed. */
static int base_on_tables(struct varve *v, struct vv_set *s, bool memory)
{
	struct placing p = { .task.run = find_place, .set = s };
	struct ranges usable = { 0 };
	int rc = vv_session_pool(v);

	if (rc)
		return rc;
	p.span = vv_mem_new(s->n, sizeof(*p.span));
	if (!p.span)
		return VV_ENOMEM;
	for (size_t i = 0; i < s->n; i++)
		p.span[i] = s->span[i];
	rc = use_set(s, s->span, &usable, NULL);
	vv_pool_submit(v->pool, &p.task);
	s->ordinal++;
	if (rc == 0 && memory)
		rc = s->space->adopt(s->sieve, s->span, s->n, s->ordinal, usable.v, usable.n);
	else if (rc == 0)
		rc = s->space->readopt(s->sieve, s->ordinal, usable.v, usable.n);
	vv_pool_wait(v->pool, &p.task);
	if (rc == 0 && p.rc)
		rc = vv_err_restore(&p.error);
	drop_place(s, 0);
	if (rc == 0)
		rc = add_place(s, &p.place);
	vv_run_fini(&p.place);
	vv_mem_free(p.span);
	vv_mem_free(usable.v);
	return rc;
}

/* A region that was not read whole from where its table says does not take part: all of it is new. */
static int take_table(struct varve *v, struct vv_region *r)
{
	size_t k = vv_table_find(&v->table, r->name);
	struct vv_fine *f = r->fine;

	f->tail_known = false;
	f->table.n = 0;
	f->len = 0;
	if (k == v->table.n || !r->restored)
		return 0;
	f->len = r->shape.len;
	return vv_run_slice(&v->table.region[k].runs, 0, r->shape.len, &f->table);
}

static int adopt_tail(struct varve *v, struct vv_region *r)
{
	struct vv_fine *f = r->fine;
	uint8_t bytes[VV_GRAIN_MAX];
	size_t n;
	int rc = vv_grains_read_tail(r, bytes, &n);

	if (rc == 0 && n) {
		v->digest(bytes, n, &f->tail);
		f->tail_known = true;
	}
	return rc;
}

/* What the regions hold is known to the sieve. */
static int adopt_memory(struct varve *v, struct vv_set *s)
{
	int rc = vv_grains_shade(s);

	if (rc)
		return rc;
	vv_grains_look(v, s);
	for (size_t i = 0; i < s->n; i++)
		s->span[i].maybe = NULL; /* it was written just now */
	return base_on_tables(v, s, true);
}

static int adopt_set(struct varve *v, struct vv_set *s)
{
	size_t kept = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->n; i++) {
		struct vv_region *r = s->region[i];

		rc = take_table(v, r);
		if (rc || !r->fine->len) {
			r->fine->set = NULL;
			continue;
		}
		rc = adopt_tail(v, r);
		s->span[kept] = s->span[i];
		s->region[kept] = r;
		r->fine->k = kept++;
	}
	s->n = kept;
	if (rc == 0)
		rc = vv_grain_number_spans(s->span, s->n, s->key.grain, &s->end);
	if (rc == 0)
		rc = vv_grains_open_sieve(v, s, true);
	if (rc == 0)
		rc = adopt_memory(v, s);
	if (rc == VV_ENOMEM && s->space != vv_space_host()) {
		rc = vv_grains_fall_back(v, s);
		if (rc == 0)
			rc = adopt_memory(v, s);
	}
	return rc;
}

int vv_weave_adopt(struct varve *v)
{
	int rc = v->grains ? vv_grains_gather(v) : 0;

	for (size_t i = 0; v->grains && rc == 0 && i < v->grains->n; i++)
		rc = adopt_set(v, v->grains->set[i]);
	return rc;
}

void vv_weave_readopt(struct varve *v)
{
	for (size_t i = 0; v->grains && i < v->grains->n; i++) {
		struct vv_set *s = v->grains->set[i];

		if (s->sieve && base_on_tables(v, s, false) < 0) {
			vv_log_warn("the next checkpoint stores everything anew: %s", vv_err_last());
			vv_grains_forget(v);
			return;
		}
	}
}
