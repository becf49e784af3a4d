#include "space/host_sieve.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/dedup/known_grains.h"
#include "core/dedup/grain_tree.h"
#include "space/gather.h"
#include "space/learn.h"
#include "space/last_digests.h"
#include "space/hash_pass.h"

struct sieve {
	struct vv_sieve base; /* first */
	struct vv_pool *pool;
	struct vv_digest zero;
	struct vv_last_digests past;
	struct vv_known_grains known;
	struct vv_known_grains nodes; /* of the method tree */
};

/* Memory for a slice during a pass. It is one allocation, touched only in proportion to the number
 * of changed grains. */
struct host_sieve_work {
	size_t bytes;
	/* by tile, of this slice and the next one; the slice's number selects */
	uint32_t *changed[2], *zeros[2];
	struct vv_find *find;
	uint32_t *fresh; /* numbers of those that are NEW */
	uint32_t *last;  /* LAST for each COPY: the latest find from a place, plus 1 */
	uint8_t *height;
	struct vv_grain_tree_node *node; /* in the same place as `piece` */
	struct vv_piece *piece;
};

enum { LAST = 2 };

struct pass {
	struct sieve *s;
	const struct vv_sink *sink;
	uint32_t ordinal;
	struct vv_hash_pass sweep;
	struct vv_gather gather;
	struct host_sieve_work w;
	uint64_t n_data; /* grains so far */
	/* of this slice */
	uint32_t begin, end;
	size_t n, m; /* finds, and those that are not zero */
	size_t take; /* finds up to the last that takes part in the map */
	size_t n_fresh, n_copies;
};

static struct sieve *sieve_of(struct vv_sieve *s)
{
	return (struct sieve *)s;
}

static bool looks_up(const struct sieve *s)
{
	return s->base.opt.method >= VV_METHOD_LIST;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int work_init(struct host_sieve_work *w, uint32_t end)
{
	size_t n = end < VV_GRAIN_SLICE ? end : VV_GRAIN_SLICE, tiles = n / VV_GRAIN_TILE;

	w->bytes = n * (sizeof(*w->node) + sizeof(*w->find) + (LAST + 1) * sizeof(uint32_t) + 1) + 4 * tiles * sizeof(uint32_t);
	w->node = vv_mem_map(w->bytes);
	if (!w->node)
		return VV_ENOMEM;
	w->piece = (struct vv_piece *)w->node;
	w->find = (struct vv_find *)(w->node + n);
	w->last = (uint32_t *)(w->find + n);
	w->fresh = w->last + LAST * n;
	for (size_t i = 0; i < 2; i++) {
		w->changed[i] = w->fresh + n + 2 * i * tiles;
		w->zeros[i] = w->changed[i] + tiles;
	}
	w->height = (uint8_t *)(w->zeros[1] + tiles);
	return 0;
}

static void work_fini(struct host_sieve_work *w)
{
	vv_mem_unmap(w->node, w->bytes);
	w->node = NULL;
}

/* The set becomes these spans; the size of the maps follows from their number of grains. */
static int fit(struct sieve *s, struct vv_span *span, size_t n)
{
	const struct vv_sieve_options *opt = &s->base.opt;
	uint32_t end;
	size_t limit;
	int rc = vv_grain_number_spans(span, n, opt->chunk, &end);

	if (rc == 0)
		rc = vv_last_digests_fit(&s->past, span, n, end);
	if (rc || !looks_up(s))
		return rc;
	limit = vv_grain_limit(opt->memory, end, opt->states);
	if (opt->method == VV_METHOD_TREE) {
		limit /= 2;
		rc = vv_known_grains_limit(&s->nodes, limit);
	}
	return rc ? rc : vv_known_grains_limit(&s->known, limit);
}

static int check_ordinal(uint32_t ordinal)
{
	if (ordinal < VV_GRAIN_ORDINALS)
		return 0;
	return vv_err_set(VV_EINVAL, "a session has at most %u epochs with dedup of grains; begin another one", VV_GRAIN_ORDINALS);
}

static int pass_init(struct pass *p, struct sieve *s, struct vv_span *span, size_t n, uint32_t ordinal)
{
	const struct vv_sieve_options *opt = &s->base.opt;
	int rc;

	*p = (struct pass){ .s = s, .ordinal = ordinal };
	rc = check_ordinal(ordinal);
	if (rc == 0)
		rc = fit(s, span, n);
	if (rc == 0)
		rc = work_init(&p->w, s->past.end);
	p->sweep = (struct vv_hash_pass){ .opt = opt, .pool = s->pool, .span = span, .n_spans = n, .past = &s->past, .zero = s->zero };
	p->gather = (struct vv_gather){ span, n, opt->chunk, s->pool, opt, opt->method == VV_METHOD_FULL ? NULL : &s->past };
	return rc;
}

static uint32_t end_of(const struct sieve *s, uint32_t begin)
{
	return s->past.end - begin < VV_GRAIN_SLICE ? s->past.end : begin + VV_GRAIN_SLICE;
}

/* Begins the slice at `begin`, if there is one. */
static bool pass_next(struct pass *p, uint32_t begin)
{
	p->begin = begin;
	p->end = end_of(p->s, begin);
	p->n = p->m = p->take = p->n_fresh = p->n_copies = 0;
	return begin < p->s->past.end;
}

static void sweep(struct pass *p, uint32_t begin)
{
	size_t which = begin / VV_GRAIN_SLICE % 2;

	if (begin < p->s->past.end)
		vv_hash_pass_begin(&p->sweep, begin, end_of(p->s, begin), p->w.changed[which], p->w.zeros[which]);
}

/* ---- finds of a grain ------------------------------------------------------------------------ */

/* Collects the changed grains. Those that are not zero are NEW for now. */
static void collect(struct pass *p)
{
	const struct host_sieve_work *w = &p->w;
	size_t which = p->begin / VV_GRAIN_SLICE % 2;

	for (uint32_t at = p->begin; at < p->end; at += VV_GRAIN_TILE) {
		uint32_t tile = (at - p->begin) / VV_GRAIN_TILE, zeros = w->zeros[which][tile];

		for (uint32_t left = w->changed[which][tile]; left; left &= left - 1) {
			uint32_t i = (uint32_t)__builtin_ctz(left);
			enum vv_piece_kind kind = zeros >> i & 1 && looks_up(p->s) ? VV_PIECE_ZERO : VV_PIECE_NEW;

			w->find[p->n++] = (struct vv_find){ .at = at + i, .from = vv_grain_from(kind, 0, 0) };
			p->m += kind == VV_PIECE_NEW;
		}
	}
	p->take = p->n;
}

static bool is_zero(const struct vv_find *f)
{
	return vv_grain_kind(f->from) == VV_PIECE_ZERO;
}

static const struct vv_digest *digest_of(const struct pass *p, const struct vv_find *f)
{
	return &p->s->past.digest[f->at];
}

/* Prepares the maps for this slice. */
static int begin_known(struct pass *p, size_t *take)
{
	int rc = vv_known_grains_begin(&p->s->known, p->m, take);

	if (rc == 0 && p->s->base.opt.method == VV_METHOD_TREE)
		rc = vv_known_grains_begin(&p->s->nodes, p->m, take);
	return rc;
}

enum { AHEAD = 16 }; /* enough for memory to answer */

static void prefetch(const struct pass *p, size_t i)
{
	const struct vv_find *f = &p->w.find[i];

	if (i + 2 * AHEAD < p->n)
		__builtin_prefetch(digest_of(p, &f[2 * AHEAD]));
	if (i + AHEAD < p->n && !is_zero(&f[AHEAD]))
		vv_known_grains_prefetch(&p->s->known, digest_of(p, &f[AHEAD]));
}

static void be_fresh(struct pass *p, struct vv_find *f)
{
	f->from = vv_grain_from(VV_PIECE_NEW, 0, p->n_data++);
	p->w.fresh[p->n_fresh++] = f->at;
}

static int resolve(struct pass *p)
{
	size_t take = 0;
	int rc = looks_up(p->s) ? begin_known(p, &take) : 0;

	if (rc)
		return rc;
	for (size_t i = 0; i < p->n; i++) {
		struct vv_find *f = &p->w.find[i];
		uint64_t place = vv_grain_from(0, p->ordinal, p->n_data);

		if (is_zero(f))
			continue;
		if (take == 0) {
			p->take = i < p->take ? i : p->take;
			be_fresh(p, f);
			continue;
		}
		take--;
		prefetch(p, i);
		if (!vv_known_grains_enter(&p->s->known, digest_of(p, f), &place)) {
			be_fresh(p, f);
			continue;
		}
		f->from = vv_grain_from(VV_PIECE_COPY, vv_grain_ordinal(place), vv_grain_number(place));
		p->s->base.counts.known_here += vv_grain_ordinal(place) == p->ordinal;
		p->n_copies++;
	}
	return 0;
}

static size_t last_home(const struct vv_find *f, size_t slots)
{
	return (size_t)((unsigned __int128)(f->from * 0x9e3779b97f4a7c15u) * slots >> 64);
}

/* The slot in `last` for the content at this find's place. */
static uint32_t *last_of(const struct host_sieve_work *w, const struct vv_find *f, size_t slots)
{
	size_t at = last_home(f, slots);

	while (w->last[at] && w->find[w->last[at] - 1].from != f->from)
		at = at + 1 < slots ? at + 1 : 0;
	return &w->last[at];
}

/* Sets the distance from each COPY back to the last grain with the same content. That was a COPY
 * from the same place, or the NEW grain there. */
static void look_back(struct pass *p)
{
	size_t slots = LAST * p->n_copies;
	uint64_t first = vv_grain_from(VV_PIECE_COPY, p->ordinal, p->n_data - p->n_fresh);
	struct vv_find *f = p->w.find;

	memset(p->w.last, 0, slots * sizeof(*p->w.last));
	for (size_t i = 0; i < p->n; i++) {
		uint32_t *last;

		if (i + AHEAD < p->n)
			__builtin_prefetch(&p->w.last[last_home(&f[i + AHEAD], slots)]);
		if (vv_grain_kind(f[i].from) != VV_PIECE_COPY)
			continue;
		last = last_of(&p->w, &f[i], slots);
		if (*last)
			f[i].back = f[i].at - f[*last - 1].at;
		else if (f[i].from >= first)
			f[i].back = f[i].at - p->w.fresh[f[i].from - first];
		*last = (uint32_t)i + 1;
	}
}

/* ---- a pass ---------------------------------------------------------------------------------- */

static size_t cut(struct pass *p)
{
	const struct host_sieve_work *w = &p->w;
	struct vv_grain_tree_work tree = { w->node, w->height };

	switch (p->s->base.opt.method) {
	case VV_METHOD_RUN:
		return vv_grain_pieces_run(w->find, p->n, w->piece);
	case VV_METHOD_TREE:
		return vv_grain_tree_pieces(w->find, p->n, p->take, p->s->past.digest + p->begin, p->ordinal, &p->s->nodes, &tree, w->piece);
	default:
		return vv_grain_pieces_list(w->find, p->n, w->piece);
	}
}

static void count(struct pass *p)
{
	struct vv_sieve_counts *c = &p->s->base.counts;

	c->changed += p->n;
	c->zero += p->n - p->m;
	c->fresh += p->n_fresh;
	c->known += p->n_copies;
}

/* Other threads wrote some fresh grains after they were hashed: the old content is not where the
 * map says. Grains to be copied from there, which may still hold the old content, become fresh
 * themselves. */
static int mend(struct pass *p, const struct vv_gather_changes *c)
{
	static const uint32_t changed = UINT32_MAX;
	size_t n = p->n_fresh;
	uint64_t first = vv_grain_from(VV_PIECE_COPY, p->ordinal, p->n_data - n);
	struct vv_gather_changes late = { 0 };
	int rc;

	for (size_t i = 0; i < c->n; i++) {
		vv_known_grains_drop(&p->s->known, &c->v[i].was, vv_grain_from(0, p->ordinal, p->n_data - n + c->v[i].i));
		p->w.fresh[c->v[i].i] = changed;
	}
	for (size_t i = 0; i < p->n; i++) {
		struct vv_find *f = &p->w.find[i];

		if (vv_grain_kind(f->from) != VV_PIECE_COPY || f->from < first || p->w.fresh[f->from - first] != changed)
			continue;
		be_fresh(p, f);
		p->n_copies--;
		p->s->base.counts.known_here--;
	}
	/* no piece refers to these, whatever their content */
	rc = vv_gather_data(&p->gather, p->w.fresh + n, p->n_fresh - n, p->sink, &late);
	vv_mem_free(late.v);
	return rc;
}

/* Gathers the data of the fresh grains. */
static int gather(struct pass *p)
{
	struct vv_gather_changes c = { 0 };
	int rc = vv_gather_data(&p->gather, p->w.fresh, p->n_fresh, p->sink, &c);

	if (rc == 0 && c.n)
		rc = mend(p, &c);
	vv_mem_free(c.v);
	return rc;
}

/* Works on a hashed slice. Meanwhile the other threads of the pool hash the next one. */
static int do_slice(struct pass *p)
{
	const struct vv_sieve_options *opt = &p->s->base.opt;
	int rc, gathered;
	size_t n;

	collect(p);
	if (p->n == 0)
		return 0;
	rc = resolve(p);
	if (rc)
		return rc;
	gathered = gather(p);
	count(p);
	if (p->n_copies && (opt->method == VV_METHOD_RUN || opt->compare))
		look_back(p);
	if (opt->compare && gathered == 0)
		rc = vv_gather_compare(&p->gather, p->w.find, p->n);
	if (rc)
		return rc;
	/* even if the epoch is discarded: the set of remembered nodes must not depend on its
	 * progress */
	n = cut(p);
	return gathered ? gathered : p->sink->pieces(p->sink->arg, p->w.piece, n);
}

int vv_host_sieve_pass(struct vv_sieve *base, struct vv_span *span, size_t n, uint32_t ordinal, const struct vv_sink *sink)
{
	struct sieve *s = sieve_of(base);
	uint64_t forgotten = s->known.forgotten;
	struct pass p;
	int rc = pass_init(&p, s, span, n, ordinal), late;

	p.sink = sink;
	base->counts = (struct vv_sieve_counts){ 0 };
	if (rc == 0)
		sweep(&p, 0);
	for (uint32_t begin = 0; rc == 0 && pass_next(&p, begin); begin += VV_GRAIN_SLICE) {
		rc = vv_hash_pass_end(&p.sweep);
		if (rc)
			break;
		sweep(&p, begin + VV_GRAIN_SLICE);
		rc = do_slice(&p);
	}
	late = vv_hash_pass_end(&p.sweep);
	rc = rc ? rc : late;
	base->counts.forgotten = s->known.forgotten - forgotten;
	work_fini(&p.w);
	if (rc)
		vv_host_sieve_forget(base, ordinal);
	return rc;
}

bool vv_host_sieve_holds(const struct vv_sieve *base, uint32_t number, uint32_t n, const uint8_t *bytes)
{
	const struct sieve *s = (const struct sieve *)base;
	struct vv_digest now[VV_GRAIN_TILE];

	for (uint32_t at = 0, step; at < n; at += step) {
		step = n - at < VV_GRAIN_TILE ? n - at : VV_GRAIN_TILE;
		vv_digest_grains(base->opt.digest_kind, bytes + (size_t)at * base->opt.chunk, base->opt.chunk, step, now);
		if (memcmp(now, s->past.digest + number + at, step * sizeof(*now)) != 0)
			return false;
	}
	return true;
}

/* ---- the state that a session continues from ------------------------------------------------- */

/* Collects the grains of this slice that are present, usable and not zero: up to the map's
 * capacity, and counts all. The method tree looks at all of them. */
static void collect_usable(struct pass *p, const struct vv_number_range *usable, size_t n)
{
	const struct vv_last_digests *past = &p->s->past;
	size_t most = p->s->base.opt.method == VV_METHOD_TREE ? SIZE_MAX : p->s->known.limit;

	for (size_t k = 0; k < n; k++) {
		uint64_t at = usable[k].at > p->begin ? usable[k].at : p->begin;
		uint64_t end = (uint64_t)usable[k].at + usable[k].len;

		for (; at < end && at < p->end; at++)
			if (past->there[at / VV_GRAIN_TILE] >> at % VV_GRAIN_TILE & 1 && !vv_digest_equal(&past->digest[at], &p->s->zero)) {
				if (p->m++ < most)
					p->w.find[p->n++] = (struct vv_find){ .at = (uint32_t)at, .from = vv_grain_from(VV_PIECE_NEW, 0, at) };
			}
	}
}

static int know_slice(struct pass *p, const struct vv_number_range *usable, size_t n)
{
	struct vv_grain_tree_work tree = { p->w.node, p->w.height };
	size_t take;
	int rc;

	collect_usable(p, usable, n);
	rc = begin_known(p, &take);
	if (rc)
		return rc;
	for (size_t i = 0; i < take; i++) {
		struct vv_find *f = &p->w.find[i];
		uint64_t place = vv_grain_from(0, p->ordinal, f->at);

		prefetch(p, i);
		if (vv_known_grains_enter(&p->s->known, digest_of(p, f), &place))
			f->from = vv_grain_from(VV_PIECE_COPY, 0, 0);
	}
	if (p->s->base.opt.method == VV_METHOD_TREE)
		vv_grain_tree_enter(p->w.find, p->n, take, p->s->past.digest + p->begin, p->ordinal, &p->s->nodes, &tree);
	return 0;
}

static int know(struct pass *p, const struct vv_number_range *usable, size_t n)
{
	int rc = 0;

	vv_known_grains_clear(&p->s->known);
	vv_known_grains_clear(&p->s->nodes);
	for (uint32_t begin = 0; rc == 0 && looks_up(p->s) && pass_next(p, begin); begin += VV_GRAIN_SLICE)
		rc = know_slice(p, usable, n);
	return rc;
}

int vv_host_sieve_begin(struct vv_sieve *base, struct vv_span *span, size_t n)
{
	struct sieve *s = sieve_of(base);
	int rc = fit(s, span, n);

	vv_last_digests_forget(&s->past);
	vv_known_grains_clear(&s->known);
	vv_known_grains_clear(&s->nodes);
	return rc;
}

int vv_host_sieve_learn(struct vv_sieve *base, const struct vv_grain_bytes *lesson, size_t n)
{
	struct sieve *s = sieve_of(base);

	if (base->opt.method == VV_METHOD_FULL) /* compares nothing */
		return 0;
	return vv_learn_all(&base->opt, s->pool, &s->past, lesson, n);
}

int vv_host_sieve_adopt(struct vv_sieve *base, uint32_t ordinal, const struct vv_number_range *usable, size_t n_usable)
{
	struct sieve *s = sieve_of(base);
	struct pass p = { .s = s, .ordinal = ordinal };
	int rc = check_ordinal(ordinal);

	if (rc == 0)
		rc = work_init(&p.w, s->past.end);
	if (rc == 0)
		rc = know(&p, usable, n_usable);
	work_fini(&p.w);
	return rc;
}

void vv_host_sieve_forget(struct vv_sieve *base, uint32_t ordinal)
{
	struct sieve *s = sieve_of(base);

	vv_last_digests_forget(&s->past);
	vv_known_grains_kill(&s->known, ordinal);
	vv_known_grains_kill(&s->nodes, ordinal);
}

/* ---- life ------------------------------------------------------------------------------------ */

int vv_host_sieve_open(const struct vv_sieve_options *opt, struct vv_pool *pool, struct vv_sieve **out)
{
	static const uint8_t zeros[VV_GRAIN_MAX];
	struct sieve *s;

	if (opt->chunk < VV_GRAIN_MIN || opt->chunk > VV_GRAIN_MAX || (opt->chunk & (opt->chunk - 1)))
		return vv_err_set(VV_EINVAL, "grains of %u bytes: want a power of two from %d to %d", opt->chunk, VV_GRAIN_MIN, VV_GRAIN_MAX);
	if (!vv_digest_of_kind(opt->digest_kind))
		return vv_err_set(VV_EINVAL, "there is no digest of kind %u", opt->digest_kind);
	s = vv_mem_new(1, sizeof(*s));
	if (!s)
		return VV_ENOMEM;
	s->base = (struct vv_sieve){ .space = vv_space_host(), .opt = *opt };
	s->pool = pool;
	vv_digest_grains(opt->digest_kind, zeros, opt->chunk, 1, &s->zero);
	*out = &s->base;
	return 0;
}

void vv_host_sieve_close(struct vv_sieve *base)
{
	struct sieve *s = base ? sieve_of(base) : NULL;

	if (!s)
		return;
	vv_last_digests_fini(&s->past);
	vv_known_grains_fini(&s->known);
	vv_known_grains_fini(&s->nodes);
	vv_mem_free(s);
}

size_t vv_host_sieve_bytes(const struct vv_sieve *base)
{
	const struct sieve *s = (const struct sieve *)base;

	return (size_t)s->past.end * sizeof(*s->past.digest) + s->past.end / VV_GRAIN_TILE * sizeof(*s->past.there) +
	       vv_known_grains_bytes(&s->known) + vv_known_grains_bytes(&s->nodes);
}
