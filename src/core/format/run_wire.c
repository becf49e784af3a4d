/* A run is stored relative to the runs before it, so a table can be read from its beginning only.
 * To read a table in parts, a first pass without checks, which is fast, finds the extent of each
 * part. Then each part knows the runs before it. */
#include "core/format/run_wire.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/format/sources.h"
#include <string.h>

enum {
	PART = 32 << 10,     /* bytes */
	MANY = 16 << 10,     /* runs of a region that justify parts, */
	FEW_SOURCES = 1024,  /* if there are at most so many sources */
	LONG_RUN = 16,       /* bytes: most runs are not longer */
	NUMBERS = 4,         /* of a run, at most */
	TRIES = 1024,
};

static int damaged(const char *what)
{
	return vv_err_set(VV_EDAMAGED, "section RUNS: %s", what);
}

/* ---- writing --------------------------------------------------------------------------------- */

static int put_runs(const struct vv_runs *runs, struct vv_sources *s, struct vv_buf *b)
{
	uint64_t end = 0;

	vv_wire_put_var(b, runs->n);
	for (size_t i = 0; i < runs->n; i++) {
		const struct vv_run *r = &runs->v[i];
		uint32_t k = 0;

		if (r->layer && vv_sources_number(s, r->layer, &k) < 0)
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

int vv_run_wire_put(const struct vv_head *h, struct vv_buf *sources, struct vv_buf *runs)
{
	struct vv_sources s = { 0 };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < h->n_regions; i++)
		rc = put_runs(&h->region[i].runs, &s, runs);
	vv_sources_put(&s, sources);
	vv_sources_fini(&s);
	return rc;
}

/* ---- a run's numbers ------------------------------------------------------------------------- */

struct run_wire_item {
	/* step: of the position, a signed number; 0 if there is no source */
	uint64_t gap, len, source, step;
};

/* Reads the number at p, which must be in its shortest form. Returns the position after it, or
 * NULL. */
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

static inline const uint8_t *get_item(const uint8_t *p, const uint8_t *end, uint64_t sources, struct run_wire_item *x)
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

/* ---- reading --------------------------------------------------------------------------------- */

struct run_wire_stretch { /* of a region's runs */
	const uint8_t *p, *end;
	struct vv_run *to;
	size_t n;
	uint64_t at;    /* the end of the run before it */
	uint64_t *ends; /* by source: the end of its last run */
	bool gaps;      /* some bytes are left out */
};

struct run_wire_reader {
	const struct vv_head *h;
	const struct vv_parallel_for *loop;
	struct vv_sources s;
	const uint8_t *p, *end;
	uint64_t limit; /* the region's length */
	uint64_t room, available; /* bytes of memory: of the runs of all regions so far, and of the machine */
};

/* Reads at most `most` runs of the stretch; a stretch with fewer runs ends with its last run.
 * Returns the fault, or NULL. It does not check whether the first run continues the run before
 * it. */
static const char *read_stretch(const struct run_wire_reader *r, struct run_wire_stretch *s, size_t most)
{
	uint64_t own = vv_run_layer(r->h->epoch, r->h->rank), source = UINT64_MAX, at = s->at;
	const uint8_t *p = s->p;
	size_t n = 0;
	bool gaps = false;

	for (; n < most && p < s->end; n++) {
		struct vv_run *to = &s->to[n];
		struct run_wire_item x;

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

/* Do runs i - 1 and i look like one run? */
static bool joined(const struct vv_runs *runs, size_t i)
{
	return i && vv_run_joins(&runs->v[i - 1], &runs->v[i]);
}

/* Reads the next runs, at most `most`. */
static int read_next(struct run_wire_reader *r, struct vv_runs *runs, size_t most, bool *gaps)
{
	struct run_wire_stretch s = { .p = r->p, .end = r->end, .to = runs->v + runs->n, .at = end_of(runs), .ends = r->s.end, .gaps = *gaps };
	const char *wrong = read_stretch(r, &s, most);

	if (!wrong && s.n == 0)
		wrong = "malformed run";
	if (!wrong && joined(runs, runs->n))
		wrong = "two runs that should be one";
	if (wrong)
		return damaged(wrong);
	runs->n += s.n;
	r->p = s.p;
	*gaps = s.gaps;
	return 0;
}

/* ---- in parts -------------------------------------------------------------------------------- */

struct run_wire_part {
	struct run_wire_stretch is;
	uint64_t length; /* from the end of the run before it to the end of its last run */
	size_t first;    /* number of its first run */
	bool whole;      /* it ends with its last run */
	bool read, good;
};

struct run_wire_parts { /* of one region; none: the region has been read */
	struct run_wire_part *part;
	size_t n, cap;
	uint64_t *ends; /* sources + 1 for each part */
	uint64_t limit;
};

struct vv_run_wire {
	struct vv_head *h;
	const uint8_t *sources, *runs;
	size_t n_sources, n_runs;
	struct vv_sources s;
	struct run_wire_parts *region;
	size_t n;
	bool bad; /* some part was bad */
};

struct run_wire_batch { /* parts that are searched in parallel */
	const struct run_wire_reader *r;
	struct run_wire_part *part;
	uint64_t *ends;
	size_t n;
};

/* Finds the beginning of a run at or after p. One of the first four numbers begins a run, and
 * parsing from each of them soon arrives at the same place. The result is a guess that is verified
 * later. */
static const uint8_t *find_start(const struct run_wire_reader *r, const uint8_t *p)
{
	const uint8_t *way[NUMBERS];
	uint64_t ignored;
	struct run_wire_item x;

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
	struct run_wire_batch *b = arg;

	b->part[i] = (struct run_wire_part){ .is.p = i ? find_start(b->r, b->r->p + i * PART) : b->r->p };
}

/* A part with an unknown beginning is joined to the one before. The last part only marks the end of
 * the one before it, unless the parts reach the end of the section. */
static void cut_parts(struct run_wire_batch *b, size_t n, bool to_end)
{
	b->n = 0;
	for (size_t i = 0; i < n; i++) {
		const uint8_t *p = b->part[i].is.p;

		if (!p || p >= b->r->end || (b->n && p <= b->part[b->n - 1].is.p))
			continue;
		if (b->n)
			b->part[b->n - 1].is.end = p;
		b->part[b->n++].is.p = p;
	}
	if (to_end)
		b->part[b->n - 1].is.end = b->r->end;
	else
		b->n--;
}

/* Counts the runs of a part and measures their extent. */
static void measure_part(void *arg, size_t i)
{
	struct run_wire_batch *b = arg;
	struct run_wire_part *x = &b->part[i];
	uint64_t *ends = b->ends + i * (b->r->s.n + 1);
	const uint8_t *p = x->is.p;
	struct run_wire_item it;

	memset(ends, 0, (b->r->s.n + 1) * sizeof(*ends));
	for (; p && p < x->is.end; x->is.n++) {
		p = get_item(p, x->is.end, b->r->s.n, &it);
		if (!p)
			return;
		x->length += it.gap + it.len;
		ends[it.source] += it.step + it.len;
	}
	x->whole = true;
}

/* Chains the parts that certainly belong to this region: each gets the state before it, and the
 * reader gets the state after them. Returns their number. */
static size_t chain_parts(const struct run_wire_batch *b, struct run_wire_reader *r, struct vv_runs *runs, size_t count, uint64_t *at)
{
	size_t sources = r->s.n + 1, k = 0;

	for (; k < b->n && b->part[k].whole && b->part[k].is.n <= count - runs->n; k++) {
		struct run_wire_part *x = &b->part[k];
		uint64_t *ends = b->ends + k * sources;

		for (size_t s = 1; s < sources; s++) { /* lengths become positions */
			uint64_t length = ends[s];

			ends[s] = r->s.end[s];
			r->s.end[s] += length;
		}
		x->first = runs->n;
		x->is.to = runs->v + runs->n;
		x->is.at = *at;
		*at += x->length;
		runs->n += x->is.n;
		r->p = x->is.end;
	}
	return k;
}

/* Makes room for n more parts. With many sources a part has been read, and needs no ends. */
static int grow_parts(struct run_wire_parts *q, size_t n, size_t sources)
{
	struct run_wire_part *part;
	uint64_t *ends;

	if (q->n + n <= q->cap)
		return 0;
	part = vv_mem_grow(q->part, q->n + n, sizeof(*part));
	q->part = part ? part : q->part;
	ends = part ? vv_mem_grow(q->ends, q->n + n, sources > FEW_SOURCES ? 0 : (sources + 1) * sizeof(*ends)) : NULL;
	q->ends = ends ? ends : q->ends;
	q->cap = ends ? q->n + n : q->cap;
	return ends ? 0 : VV_ENOMEM;
}

/* Finds the complete parts among the next runs; there may be none. */
static int find_parts(struct run_wire_reader *r, struct run_wire_parts *q, struct vv_runs *runs, size_t count, uint64_t *at)
{
	size_t left = (size_t)(r->end - r->p), n = (left + PART - 1) / PART, most = (count - runs->n) / (PART / LONG_RUN) + 2;
	struct run_wire_batch b = { .r = r };
	int rc;

	n = n < most ? n : most;
	if (r->s.n == 0 || r->s.n > FEW_SOURCES || n < 3)
		return 0;
	rc = grow_parts(q, n, r->s.n);
	if (rc)
		return rc;
	b.part = q->part + q->n;
	b.ends = q->ends + q->n * (r->s.n + 1);
	vv_parallel_for_each(r->loop, n, begin_part, &b);
	cut_parts(&b, n, n * PART >= left);
	vv_parallel_for_each(r->loop, b.n, measure_part, &b);
	q->n += chain_parts(&b, r, runs, count, at);
	return 0;
}

/* Reads the next runs, at most `most`, and records them as a part that has been read. */
static int read_ahead(struct run_wire_reader *r, struct run_wire_parts *q, struct vv_runs *runs, size_t most, uint64_t *at)
{
	struct run_wire_stretch s = { .p = r->p, .end = r->end, .to = runs->v + runs->n, .at = *at, .ends = r->s.end };
	const char *wrong = read_stretch(r, &s, most);
	int rc = grow_parts(q, 1, r->s.n);

	if (rc || wrong || s.n == 0)
		return rc ? rc : damaged(wrong ? wrong : "malformed run");
	q->part[q->n++] = (struct run_wire_part){ .is = { .at = *at, .n = s.n, .gaps = s.gaps }, .first = runs->n, .read = true, .good = true };
	runs->n += s.n;
	r->p = s.p;
	*at = s.at;
	return 0;
}

bool vv_run_wire_read(const struct vv_run_wire *w, size_t region, size_t i)
{
	const struct run_wire_parts *q = &w->region[region];
	const struct run_wire_reader r = { .h = w->h, .s = w->s, .limit = q->limit };
	struct run_wire_part *x = &q->part[i];
	struct run_wire_stretch s = x->is;

	if (x->read)
		return x->good;
	s.ends = q->ends + i * (w->s.n + 1);
	x->good = !read_stretch(&r, &s, x->is.n);
	x->is.gaps = s.gaps;
	x->read = true;
	return x->good;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int read_count(struct run_wire_reader *r, size_t *out)
{
	uint64_t count = 0;
	const uint8_t *p = number(r->p, r->end, &count);

	if (!p || count > (size_t)(r->end - p) / 3 || count > r->limit)
		return damaged("impossible number of runs");
	r->p = p;
	*out = (size_t)count;
	return 0;
}

static int check_cover(const struct vv_head_region *x, bool gaps)
{
	return !x->parent && (gaps || end_of(&x->runs) != x->shape.len) ? damaged("the runs do not cover their region") : 0;
}

static int read_region(struct run_wire_reader *r, struct vv_head_region *to, size_t count)
{
	bool gaps = false;
	int rc = count ? read_next(r, &to->runs, count, &gaps) : 0;

	if (rc == 0 && to->runs.n < count)
		rc = damaged("malformed run");
	return rc ? rc : check_cover(to, gaps);
}

/* Finds the parts of a long table, and reads only the runs that are in no part. */
static int begin_region(struct run_wire_reader *r, struct vv_head_region *to, size_t count, struct run_wire_parts *q)
{
	uint64_t at = 0;
	int rc = 0;

	q->limit = to->shape.len;
	while (rc == 0 && to->runs.n < count) {
		size_t before = q->n, left = count - to->runs.n;

		if (left >= MANY)
			rc = find_parts(r, q, &to->runs, count, &at);
		if (rc == 0 && q->n == before)
			rc = read_ahead(r, q, &to->runs, left > MANY ? MANY : left, &at);
	}
	return rc;
}

/* A compressed section of a few MiB may hold so many runs that they fill the memory. */
static int reserve(struct run_wire_reader *r, struct vv_runs *runs, size_t count)
{
	int rc;

	r->room += count > runs->cap ? count * sizeof(*runs->v) : 0;
	rc = vv_mem_check_available(r->room, &r->available);
	return rc ? vv_err_context(rc, "section RUNS") : vv_run_reserve(runs, count);
}

/* parts: by region; NULL: everything is read from front to back. */
static int read_all(struct run_wire_reader *r, struct vv_head *h, struct run_wire_parts *parts)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < h->n_regions; i++) {
		struct vv_head_region *to = &h->region[i];
		size_t count = 0;

		r->limit = to->shape.len;
		rc = read_count(r, &count);
		if (rc == 0)
			rc = reserve(r, &to->runs, count);
		if (rc == 0)
			rc = parts && count >= MANY ? begin_region(r, to, count, &parts[i]) : read_region(r, to, count);
	}
	return rc || r->p == r->end ? rc : damaged("bytes left over");
}

/* Reads from front to back, whatever was read before, so that a fault always has the same
 * message. */
static int read_plainly(struct vv_head *h, const void *sources, size_t n_sources, const void *runs, size_t n_runs)
{
	struct vv_wire w = vv_wire_over(runs, n_runs);
	struct run_wire_reader r = { .h = h, .p = w.p, .end = w.end };
	int rc = vv_sources_get(&r.s, sources, n_sources, h->epoch);

	for (size_t i = 0; i < h->n_regions; i++)
		h->region[i].runs.n = 0;
	if (rc == 0)
		rc = read_all(&r, h, NULL);
	vv_sources_fini(&r.s);
	return rc;
}

static void drop_parts(struct vv_run_wire *w)
{
	for (size_t i = 0; i < w->n; i++) {
		vv_mem_free(w->region[i].part);
		vv_mem_free(w->region[i].ends);
	}
	vv_mem_free(w->region);
	w->region = NULL;
	w->n = 0;
}

static int begin(struct vv_run_wire *w, const struct vv_parallel_for *loop)
{
	struct vv_wire wire = vv_wire_over(w->runs, w->n_runs);
	struct run_wire_reader r = { .h = w->h, .loop = loop, .p = wire.p, .end = wire.end };
	int rc = vv_sources_get(&w->s, w->sources, w->n_sources, w->h->epoch);

	r.s = w->s;
	w->region = rc ? NULL : vv_mem_new(w->h->n_regions, sizeof(*w->region));
	w->n = w->region ? w->h->n_regions : 0;
	if (rc == 0)
		rc = w->region ? read_all(&r, w->h, loop->each ? w->region : NULL) : VV_ENOMEM;
	return rc;
}

int vv_run_wire_begin(struct vv_head *h, const void *sources, size_t n_sources, const void *runs, size_t n_runs, const struct vv_parallel_for *loop, struct vv_run_wire **out)
{
	struct vv_run_wire *w = vv_mem_new(1, sizeof(*w));
	int rc;

	if (!w)
		return VV_ENOMEM;
	*w = (struct vv_run_wire){ .h = h, .sources = sources, .n_sources = n_sources, .runs = runs, .n_runs = n_runs };
	rc = begin(w, loop);
	if (rc && rc != VV_ENOMEM && loop->each) {
		drop_parts(w);
		rc = read_plainly(h, sources, n_sources, runs, n_runs);
	}
	if (rc)
		vv_run_wire_free(w);
	else
		*out = w;
	return rc;
}

void vv_run_wire_free(struct vv_run_wire *w)
{
	if (!w)
		return;
	drop_parts(w);
	vv_sources_fini(&w->s);
	vv_mem_free(w);
}

size_t vv_run_wire_sources(const struct vv_run_wire *w, const uint64_t **out)
{
	*out = w->s.n ? w->s.layer + 1 : NULL;
	return w->s.n;
}

size_t vv_run_wire_parts(const struct vv_run_wire *w, size_t region)
{
	return region < w->n ? w->region[region].n : 0;
}

void vv_run_wire_part(const struct vv_run_wire *w, size_t region, size_t i, struct vv_run_wire_part *out)
{
	const struct run_wire_part *x = &w->region[region].part[i];

	*out = (struct vv_run_wire_part){ x->is.at, x->first, x->is.n };
}

struct rest {
	const struct vv_run_wire *w;
	size_t region;
};

static void read_rest(void *arg, size_t i)
{
	const struct rest *rest = arg;

	vv_run_wire_read(rest->w, rest->region, i);
}

/* Are the parts of a region right, also at their borders? */
static bool is_good(const struct run_wire_parts *q, const struct vv_head_region *x)
{
	bool gaps = false;

	for (size_t i = 0; i < q->n; i++) {
		if (!q->part[i].good || joined(&x->runs, q->part[i].first))
			return false;
		gaps |= q->part[i].is.gaps;
	}
	return q->n == 0 || check_cover(x, gaps) == 0;
}

int vv_run_wire_end(struct vv_run_wire *w, const struct vv_parallel_for *loop)
{
	for (size_t i = 0; i < w->n; i++)
		vv_parallel_for_each(loop, w->region[i].n, read_rest, &(struct rest){ w, i });
	for (size_t i = 0; i < w->n; i++)
		w->bad |= !is_good(&w->region[i], &w->h->region[i]);
	drop_parts(w);
	return w->bad ? read_plainly(w->h, w->sources, w->n_sources, w->runs, w->n_runs) : 0;
}

int vv_run_wire_get(struct vv_head *h, const void *sources, size_t n_sources, const void *runs, size_t n_runs, const struct vv_parallel_for *loop)
{
	struct vv_run_wire *w = NULL;
	int rc = vv_run_wire_begin(h, sources, n_sources, runs, n_runs, loop, &w);

	if (rc == 0)
		rc = vv_run_wire_end(w, loop);
	vv_run_wire_free(w);
	return rc;
}
