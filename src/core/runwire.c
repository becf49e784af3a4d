/* A run is stored as what differs from the runs before it, so a table can be read from its beginning only. To read one in parts, it is first gone
 * through without being checked, which is quick, to find how far each part goes; then every part knows what comes before it. */
#include "core/runwire.h"
#include "base/err.h"
#include "base/mem.h"
#include <string.h>

enum {
	MAX_SOURCES = 1 << 24,
	PART = 32 << 10,     /* bytes */
	PARTS = 512,         /* at a time */
	MANY = 16 << 10,     /* runs of a region that are worth it, */
	FEW_SOURCES = 1024,  /* if there are no more than these */
	LONG_RUN = 16,       /* bytes: they are seldom longer */
	NUMBERS = 4,         /* of a run, at most */
	TRIES = 1024,
};

static int damaged(const char *section, const char *what)
{
	return vv_err_set(VV_EDAMAGED, "section %s: %s", section, what);
}

/* ---- sources ---------------------------------------------------------------------------------------------------------------------- */

/* Sources in order of first use, with a small open hash from layer to number. */
struct sources {
	uint64_t *layer; /* by number, from 1 */
	uint64_t *end;   /* end position of the last run of this source */
	uint32_t *slot;
	size_t n, cap, mask;
};

static void sources_fini(struct sources *s)
{
	vv_mem_free(s->layer);
	vv_mem_free(s->end);
	vv_mem_free(s->slot);
}

static uint32_t *sources_slot(const struct sources *s, uint64_t layer)
{
	size_t i = (size_t)((layer * 0x9e3779b97f4a7c15ull) >> 32) & s->mask;

	while (s->slot[i] && s->layer[s->slot[i]] != layer)
		i = (i + 1) & s->mask;
	return &s->slot[i];
}

static int sources_grow(struct sources *s)
{
	size_t cap = s->cap ? s->cap * 2 : 16;
	uint64_t *layer = vv_mem_grow(s->layer, cap, sizeof(*layer));
	uint64_t *end = layer ? vv_mem_grow(s->end, cap, sizeof(*end)) : NULL;
	uint32_t *slot = end ? vv_mem_new(cap * 2, sizeof(*slot)) : NULL;

	s->layer = layer ? layer : s->layer;
	s->end = end ? end : s->end;
	if (!slot)
		return VV_ENOMEM;
	vv_mem_free(s->slot);
	s->slot = slot;
	s->cap = cap;
	s->mask = cap * 2 - 1;
	for (size_t i = 1; i <= s->n; i++)
		*sources_slot(s, s->layer[i]) = (uint32_t)i;
	return 0;
}

static int sources_number(struct sources *s, uint64_t layer, uint32_t *out)
{
	uint32_t *slot;

	if (s->n + 1 >= s->cap && sources_grow(s) < 0)
		return VV_ENOMEM;
	slot = sources_slot(s, layer);
	if (!*slot) {
		*slot = (uint32_t)++s->n;
		s->layer[s->n] = layer;
		s->end[s->n] = 0;
	}
	*out = *slot;
	return 0;
}

static int put_runs(const struct vv_runs *runs, struct sources *s, struct vv_buf *b)
{
	uint64_t end = 0;

	vv_wire_put_var(b, runs->n);
	for (size_t i = 0; i < runs->n; i++) {
		const struct vv_run *r = &runs->v[i];
		uint32_t k = 0;

		if (r->layer && sources_number(s, r->layer, &k) < 0)
			return VV_ENOMEM;
		vv_wire_put_var(b, r->at - end);
		vv_wire_put_var(b, r->len);
		vv_wire_put_var(b, k);
		if (k) {
			vv_wire_put_signed(b, (int64_t)(r->pos - s->end[k]));
			s->end[k] = r->pos + r->len;
		}
		end = r->at + r->len;
	}
	return 0;
}

int vv_runwire_put(const struct vv_head *h, struct vv_buf *sources, struct vv_buf *runs)
{
	struct sources s = { 0 };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < h->n_regions; i++)
		rc = put_runs(&h->region[i].runs, &s, runs);
	vv_wire_put_var(sources, s.n);
	for (size_t i = 1; i <= s.n; i++) {
		vv_wire_put_var(sources, vv_run_epoch(s.layer[i]));
		vv_wire_put_var(sources, vv_run_rank(s.layer[i]));
	}
	sources_fini(&s);
	return rc;
}

static int get_sources(const struct vv_head *h, const void *p, size_t n, struct sources *s)
{
	struct vv_wire w = vv_wire_over(p, n);
	size_t count = (size_t)vv_wire_var_max(&w, MAX_SOURCES);

	if (w.bad || count > vv_wire_left(&w) / 2)
		return damaged("SOURCES", "impossible number of sources");
	for (size_t i = 1; i <= count; i++) {
		uint64_t epoch = vv_wire_var_max(&w, h->epoch);
		uint32_t rank = (uint32_t)vv_wire_var_max(&w, VV_MAX_RANKS - 1), k = 0;

		if (w.bad || epoch == 0)
			return damaged("SOURCES", "malformed source");
		if (sources_number(s, vv_run_layer(epoch, rank), &k) < 0)
			return VV_ENOMEM;
		if (k != i)
			return damaged("SOURCES", "a source is listed twice");
	}
	return vv_wire_left(&w) ? damaged("SOURCES", "bytes left over") : 0;
}

/* ---- a run's numbers -------------------------------------------------------------------------------------------------------------- */

struct item {
	uint64_t gap, len, source, step; /* step: of the position, a signed number; 0 if there is no source */
};

/* The number at p, in its shortest form; what comes behind it, or NULL. */
static inline const uint8_t *number(const uint8_t *p, const uint8_t *end, uint64_t *out)
{
	uint64_t v = 0;

	if (p < end && *p < 0x80) {
		*out = *p;
		return p + 1;
	}
	if (end - p > 1 && p[1] < 0x80) {
		*out = (uint64_t)(p[0] & 0x7f) | (uint64_t)p[1] << 7;
		return p[1] ? p + 2 : NULL;
	}
	for (unsigned shift = 0; p < end && shift < 64; shift += 7) {
		uint8_t byte = *p++;

		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		*out = v;
		return (shift == 63 && byte > 1) || (shift && !byte) ? NULL : p;
	}
	return NULL;
}

static inline const uint8_t *get_item(const uint8_t *p, const uint8_t *end, uint64_t sources, struct item *x)
{
	uint64_t step = 0;

	p = number(p, end, &x->gap);
	p = p ? number(p, end, &x->len) : NULL;
	p = p ? number(p, end, &x->source) : NULL;
	if (!p || x->gap > VV_MAX_REGION_BYTES || x->len > VV_MAX_REGION_BYTES || !x->len || x->source > sources)
		return NULL;
	if (x->source)
		p = number(p, end, &step);
	x->step = step >> 1 ^ (step & 1 ? UINT64_MAX : 0);
	return p;
}

/* ---- reading ---------------------------------------------------------------------------------------------------------------------- */

struct stretch { /* of a region's runs */
	const uint8_t *p, *end;
	struct vv_run *to;
	size_t n;
	uint64_t at;    /* where the run before it ends */
	uint64_t *ends; /* by source: the end of its last run */
	bool gaps;      /* some bytes are left out */
};

struct reader {
	const struct vv_head *h;
	const struct vv_loop *loop;
	struct sources s;
	const uint8_t *p, *end;
	uint64_t limit; /* the region's length */
};

/* So many runs, or as many as there are in the stretch, which then ends where the last one does; what is wrong with them, or NULL. Whether the first one
 * should be one with the run before it is not looked at. */
static const char *read_stretch(const struct reader *r, struct stretch *s, size_t most)
{
	uint64_t own = vv_run_layer(r->h->epoch, r->h->rank), source = UINT64_MAX, at = s->at;
	const uint8_t *p = s->p;
	size_t n = 0;
	bool gaps = false;

	for (; n < most && p < s->end; n++) {
		struct vv_run *to = &s->to[n];
		struct item x;

		p = get_item(p, s->end, r->s.n, &x);
		if (!p)
			return "malformed run";
		gaps |= x.gap > 0;
		if (source == x.source && !x.gap && !x.step)
			return "two runs that should be one";
		source = x.source;
		*to = (struct vv_run){ .at = at + x.gap, .len = x.len };
		if (source) {
			to->layer = r->s.layer[source];
			to->pos = s->ends[source] + x.step;
			s->ends[source] = to->pos + x.len;
		}
		at = to->at + to->len;
		if (at > r->limit || to->pos > VV_MAX_PAYLOAD)
			return "malformed run";
		if (to->layer == own && to->pos + to->len > r->h->payload)
			return "a run beyond the payload";
	}
	s->p = p;
	s->n = n;
	s->at = at;
	s->gaps |= gaps;
	return NULL;
}

static uint64_t end_of(const struct vv_runs *runs)
{
	return runs->n ? runs->v[runs->n - 1].at + runs->v[runs->n - 1].len : 0;
}

/* Do runs i - 1 and i seem to be one? */
static bool joined(const struct vv_runs *runs, size_t i)
{
	return i && vv_run_joins(&runs->v[i - 1], &runs->v[i]);
}

/* The next runs, at most so many. */
static int read_next(struct reader *r, struct vv_runs *runs, size_t most, bool *gaps)
{
	struct stretch s = { .p = r->p, .end = r->end, .to = runs->v + runs->n, .at = end_of(runs), .ends = r->s.end, .gaps = *gaps };
	const char *wrong = read_stretch(r, &s, most);

	if (!wrong && s.n == 0)
		wrong = "malformed run";
	if (!wrong && joined(runs, runs->n))
		wrong = "two runs that should be one";
	if (wrong)
		return damaged("RUNS", wrong);
	runs->n += s.n;
	r->p = s.p;
	*gaps = s.gaps;
	return 0;
}

/* ---- in parts --------------------------------------------------------------------------------------------------------------------- */

struct part {
	struct stretch is;
	uint64_t length; /* from the end of the run before it to that of its last one */
	bool whole;      /* it ends where its last run does */
	bool good;
};

struct parts {
	const struct reader *r;
	struct part part[PARTS];
	size_t n;
	uint64_t *ends;   /* sources + 1 for each part */
	uint64_t *before; /* the same of all that comes before them */
};

/* Where a run begins, at or after p: one of the first four numbers is the first of a run, and whichever that is, one comes to the same place. Nobody relies on
 * it. */
static const uint8_t *find_start(const struct reader *r, const uint8_t *p)
{
	const uint8_t *way[NUMBERS];
	uint64_t ignored;
	struct item x;

	while (p < r->end && p[-1] & 0x80)
		p++;
	for (int i = 0; i < NUMBERS; i++) {
		way[i] = p;
		p = p ? number(p, r->end, &ignored) : NULL;
	}
	for (int tries = 0; tries < TRIES; tries++) {
		const uint8_t **least = NULL, *most = NULL;

		for (int i = 0; i < NUMBERS; i++) {
			if (way[i] && (!least || way[i] < *least))
				least = &way[i];
			if (way[i] && (!most || way[i] > most))
				most = way[i];
		}
		if (!least || *least == most)
			return most;
		*least = get_item(*least, r->end, r->s.n, &x);
	}
	return NULL;
}

static void begin_part(void *arg, size_t i)
{
	struct parts *q = arg;

	q->part[i] = (struct part){ .is.p = i ? find_start(q->r, q->r->p + i * PART) : q->r->p };
}

/* Those whose beginning is not known are parts of the one before. The last one is there to say where the one before it ends, if it does not end with
 * the section. */
static void cut_parts(struct parts *q, size_t n, bool to_end)
{
	q->n = 0;
	for (size_t i = 0; i < n; i++) {
		const uint8_t *p = q->part[i].is.p;

		if (!p || p >= q->r->end || (q->n && p <= q->part[q->n - 1].is.p))
			continue;
		if (q->n)
			q->part[q->n - 1].is.end = p;
		q->part[q->n++].is.p = p;
	}
	if (to_end)
		q->part[q->n - 1].is.end = q->r->end;
	else
		q->n--;
}

/* How many runs it has, and how far they go. */
static void measure_part(void *arg, size_t i)
{
	struct parts *q = arg;
	struct part *x = &q->part[i];
	uint64_t *ends = q->ends + i * (q->r->s.n + 1);
	const uint8_t *p = x->is.p;
	struct item it;

	x->is.ends = ends;
	for (; p && p < x->is.end; x->is.n++) {
		p = get_item(p, x->is.end, q->r->s.n, &it);
		if (!p)
			return;
		x->length += it.gap + it.len;
		ends[it.source] += it.step + it.len;
	}
	x->whole = true;
}

static void read_part(void *arg, size_t i)
{
	struct parts *q = arg;
	struct part *x = &q->part[i];

	x->good = !read_stretch(q->r, &x->is, x->is.n);
}

/* The parts that are of this region, for sure, know what comes before them. */
static void chain_parts(struct parts *q, const struct vv_runs *runs, size_t count)
{
	size_t sources = q->r->s.n + 1, k = 0, n = runs->n;
	uint64_t at = end_of(runs);

	for (; k < q->n && q->part[k].whole && q->part[k].is.n <= count - n; k++) {
		struct part *x = &q->part[k];

		for (size_t s = 1; s < sources; s++) { /* lengths become positions */
			uint64_t length = x->is.ends[s];

			x->is.ends[s] = q->before[s];
			q->before[s] += length;
		}
		x->is.to = runs->v + n;
		x->is.at = at;
		at += x->length;
		n += x->is.n;
	}
	q->n = k;
}

/* Those that are right, up to the first that is not: what is wrong with it is found when it is read again. */
static void take_parts(struct parts *q, struct reader *r, struct vv_runs *runs, bool *gaps)
{
	for (size_t i = 0; i < q->n; i++) {
		struct part *x = &q->part[i];

		if (!x->good || joined(runs, runs->n))
			return;
		runs->n += x->is.n;
		r->p = x->is.p;
		memcpy(r->s.end + 1, x->is.ends + 1, r->s.n * sizeof(*r->s.end));
		*gaps |= x->is.gaps;
	}
}

/* As many of the next runs as whole parts hold, which may be none. */
static int read_parts(struct reader *r, struct vv_runs *runs, size_t count, bool *gaps)
{
	size_t left = (size_t)(r->end - r->p), n = (left + PART - 1) / PART, most = (count - runs->n) / (PART / LONG_RUN) + 2;
	struct parts *q;

	if (r->s.n == 0 || r->s.n > FEW_SOURCES)
		return 0;
	n = n < most ? n : most;
	n = n < PARTS ? n : PARTS;
	if (n < 3)
		return 0;
	q = vv_mem_new(1, sizeof(*q));
	if (!q)
		return VV_ENOMEM;
	q->before = vv_mem_new(n + 1, (r->s.n + 1) * sizeof(*q->ends));
	if (!q->before) {
		vv_mem_free(q);
		return VV_ENOMEM;
	}
	q->r = r;
	q->ends = q->before + r->s.n + 1;
	memcpy(q->before + 1, r->s.end + 1, r->s.n * sizeof(*q->before));
	vv_loop_each(r->loop, n, begin_part, q);
	cut_parts(q, n, n * PART >= left);
	vv_loop_each(r->loop, q->n, measure_part, q);
	chain_parts(q, runs, count);
	vv_loop_each(r->loop, q->n, read_part, q);
	take_parts(q, r, runs, gaps);
	vv_mem_free(q->before);
	vv_mem_free(q);
	return 0;
}

/* ---- all of it -------------------------------------------------------------------------------------------------------------------- */

static int read_count(struct reader *r, size_t *out)
{
	uint64_t count = 0;
	const uint8_t *p = number(r->p, r->end, &count);

	if (!p || count > (size_t)(r->end - p) / 3)
		return damaged("RUNS", "impossible number of runs");
	r->p = p;
	*out = (size_t)count;
	return 0;
}

static int read_region(struct reader *r, struct vv_head_region *to)
{
	struct vv_runs *runs = &to->runs;
	bool gaps = false;
	size_t count = 0;
	int rc = read_count(r, &count);

	r->limit = to->shape.len;
	if (rc == 0)
		rc = vv_run_reserve(runs, count);
	while (rc == 0 && runs->n < count) {
		bool parts = r->loop->each && count - runs->n >= MANY;

		if (parts)
			rc = read_parts(r, runs, count, &gaps);
		if (rc == 0 && runs->n < count)
			rc = read_next(r, runs, parts && count - runs->n > MANY ? MANY : count - runs->n, &gaps);
	}
	if (rc == 0 && !to->parent && (gaps || end_of(runs) != to->shape.len))
		rc = damaged("RUNS", "the runs do not cover their region");
	return rc;
}

int vv_runwire_get(struct vv_head *h, const void *sources, size_t n_sources, const void *runs, size_t n_runs, const struct vv_loop *loop)
{
	struct vv_wire w = vv_wire_over(runs, n_runs);
	struct reader r = { .h = h, .loop = loop, .p = w.p, .end = w.end };
	int rc = get_sources(h, sources, n_sources, &r.s);

	for (size_t i = 0; rc == 0 && i < h->n_regions; i++)
		rc = read_region(&r, &h->region[i]);
	if (rc == 0 && r.p < r.end)
		rc = damaged("RUNS", "bytes left over");
	sources_fini(&r.s);
	return rc;
}
