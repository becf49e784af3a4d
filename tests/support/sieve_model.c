#include "support/sieve_model.h"
#include "vv_test.h"
#include <stdbool.h>

enum { HEIGHTS = 21 };
_Static_assert(1 << HEIGHTS == VV_GRAIN_SLICE, "a slice is a perfect tree");

/* ---- what is known ---------------------------------------------------------------------------------------------------- */

struct entry {
	struct vv_digest digest;
	uint32_t epoch;
	uint64_t k;
};

struct generation {
	struct entry *entry;
	size_t n, cap;
};

struct knowledge {
	struct generation young, aged;
	size_t limit, take; /* take: of this slice, how many more take part */
	uint64_t forgotten;
};

static struct entry *find(const struct generation *g, const struct vv_digest *d)
{
	for (size_t i = 0; i < g->n; i++)
		if (vv_digest_equal(&g->entry[i].digest, d))
			return &g->entry[i];
	return NULL;
}

static void add(struct generation *g, struct entry e)
{
	if (g->n == g->cap) {
		g->cap = g->cap ? 2 * g->cap : 64;
		g->entry = sieve_need(realloc(g->entry, g->cap * sizeof(e)));
	}
	g->entry[g->n++] = e;
}

/* Counts what is in no other generation. */
static void empty(struct knowledge *k, struct generation *g, const struct generation *other)
{
	for (size_t i = 0; i < g->n; i++)
		k->forgotten += !find(other, &g->entry[i].digest);
	g->n = 0;
}

static void set_limit(struct knowledge *k, size_t limit)
{
	k->limit = limit;
	if (k->aged.n > limit)
		empty(k, &k->aged, &k->young);
	if (k->young.n > limit)
		empty(k, &k->young, &k->aged);
}

static void begin_slice(struct knowledge *k, size_t m)
{
	if (k->young.n && k->young.n + m > k->limit) {
		struct generation was = k->aged;

		empty(k, &k->aged, &k->young);
		k->aged = k->young;
		k->young = was;
		k->young.n = 0;
	}
	k->take = m < k->limit ? m : k->limit;
	k->forgotten += m - k->take;
}

static struct entry *look_up(struct knowledge *k, const struct vv_digest *d)
{
	struct entry *e = find(&k->young, d);

	if (!e && find(&k->aged, d)) {
		add(&k->young, *find(&k->aged, d));
		e = find(&k->young, d);
	}
	return e;
}

static void kill(struct generation *g, uint32_t epoch)
{
	size_t n = 0;

	for (size_t i = 0; i < g->n; i++)
		if (g->entry[i].epoch != epoch)
			g->entry[n++] = g->entry[i];
	g->n = n;
}

static void forget_all(struct knowledge *k)
{
	k->young.n = k->aged.n = 0;
}

/* ---- the model -------------------------------------------------------------------------------------------------------- */

struct region_past {
	uint64_t id;
	uint32_t first, n;
	struct vv_digest *digest;
	bool *there;
};

struct grain { /* a number of this slice */
	const uint8_t *p; /* NULL: no grain */
	struct vv_digest digest;
	bool changed, zero, takes_part;
	int kind; /* -1: same */
	uint32_t epoch;
	uint64_t k;
	uint32_t back;
};

struct sieve_model {
	struct vv_sieve_options opt;
	struct region_past *past;
	size_t n;
	uint32_t end;
	struct knowledge known, nodes;
	struct grain *grain; /* of a slice */
	uint32_t begin, count;
	uint32_t ordinal;
	uint64_t n_data;
};

struct sieve_model *sieve_model_new(const struct vv_sieve_options *opt)
{
	struct sieve_model *m = sieve_need(calloc(1, sizeof(*m)));

	m->opt = *opt;
	return m;
}

static void free_past(struct region_past *past, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(past[i].digest);
		free(past[i].there);
	}
	free(past);
}

void sieve_model_free(struct sieve_model *m)
{
	free_past(m->past, m->n);
	free(m->known.young.entry);
	free(m->known.aged.entry);
	free(m->nodes.young.entry);
	free(m->nodes.aged.entry);
	free(m->grain);
	free(m);
}

static void fit(struct sieve_model *m, struct vv_span *span, size_t n)
{
	struct region_past *past = sieve_need(calloc(n + 1, sizeof(*past)));
	size_t limit;

	CHECK_EQ(vv_grain_number_spans(span, n, m->opt.chunk, &m->end), 0);
	for (size_t i = 0; i < n; i++) {
		struct region_past *r = &past[i];

		*r = (struct region_past){ span[i].id, span[i].first, span[i].n, NULL, NULL };
		r->digest = sieve_need(calloc(r->n + 1, sizeof(*r->digest)));
		r->there = sieve_need(calloc(r->n + 1, sizeof(*r->there)));
		for (size_t k = 0; k < m->n; k++)
			for (uint32_t g = 0; m->past[k].id == r->id && g < m->past[k].n && g < r->n; g++) {
				r->digest[g] = m->past[k].digest[g];
				r->there[g] = m->past[k].there[g];
			}
	}
	free_past(m->past, m->n);
	m->past = past;
	m->n = n;
	limit = vv_grain_limit(m->opt.memory, m->end, m->opt.states);
	set_limit(&m->known, m->opt.method == VV_METHOD_TREE ? limit / 2 : limit);
	set_limit(&m->nodes, limit / 2);
}

static bool all_zero(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

/* Which numbers of the slice have a grain, and what it holds. */
static void load_slice(struct sieve_model *m, const struct vv_span *span, uint32_t begin)
{
	vv_digest_fn digest = vv_digest_of_kind(m->opt.digest_kind);

	m->begin = begin;
	m->count = m->end - begin < VV_GRAIN_SLICE ? m->end - begin : VV_GRAIN_SLICE;
	free(m->grain);
	m->grain = sieve_need(calloc(m->count + 1, sizeof(*m->grain)));
	for (size_t i = 0; i < m->n; i++)
		for (uint32_t g = 0; g < m->past[i].n; g++) {
			uint32_t number = m->past[i].first + g;
			struct grain *gr = &m->grain[number - begin];

			if (number < begin || number - begin >= m->count)
				continue;
			gr->p = span[i].p + (size_t)g * m->opt.chunk;
			digest(gr->p, m->opt.chunk, &gr->digest);
			gr->zero = all_zero(gr->p, m->opt.chunk);
			gr->changed = !m->past[i].there[g] || !vv_digest_equal(&gr->digest, &m->past[i].digest[g]);
			m->past[i].there[g] = true;
			m->past[i].digest[g] = gr->digest;
		}
}

static void be_new(struct sieve_model *m, struct grain *g, struct sieve_record *out)
{
	g->kind = VV_PIECE_NEW;
	g->epoch = m->ordinal;
	g->k = m->n_data++;
	out->counts.fresh++;
	sieve_record_add_data(out, g->p, m->opt.chunk);
}

static void take_kind(struct sieve_model *m, struct grain *g, struct sieve_record *out)
{
	struct entry *e;

	g->kind = -1;
	if (m->opt.method == VV_METHOD_FULL ? !g->p : !g->changed)
		return;
	out->counts.changed++;
	if (m->opt.method <= VV_METHOD_BASIC) {
		be_new(m, g, out);
		return;
	}
	if (g->zero) {
		g->kind = VV_PIECE_ZERO;
		out->counts.zero++;
		return;
	}
	g->takes_part = m->known.take > 0;
	if (!g->takes_part) {
		be_new(m, g, out);
		return;
	}
	m->known.take--;
	e = look_up(&m->known, &g->digest);
	if (e) {
		g->kind = VV_PIECE_COPY;
		g->epoch = e->epoch;
		g->k = e->k;
		out->counts.known++;
		out->counts.known_here += e->epoch == m->ordinal;
		return;
	}
	be_new(m, g, out);
	add(&m->known.young, (struct entry){ g->digest, m->ordinal, g->k });
}

static void take_kinds(struct sieve_model *m, struct sieve_record *out)
{
	size_t fit = 0;

	for (uint32_t i = 0; i < m->count; i++)
		fit += m->grain[i].changed && !m->grain[i].zero;
	if (m->opt.method >= VV_METHOD_LIST)
		begin_slice(&m->known, fit);
	if (m->opt.method == VV_METHOD_TREE)
		begin_slice(&m->nodes, fit);
	for (uint32_t i = 0; i < m->count; i++)
		take_kind(m, &m->grain[i], out);
}

/* ---- pieces ----------------------------------------------------------------------------------------------------------- */

static void put(struct sieve_record *out, uint32_t at, uint32_t len, int kind, uint32_t epoch, uint64_t k)
{
	struct vv_piece p = { at, len, 0 };

	if (kind == VV_PIECE_NEW || kind == VV_PIECE_REPEAT)
		p.from = vv_grain_from(kind, 0, k);
	else if (kind == VV_PIECE_COPY)
		p.from = vv_grain_from(kind, epoch, k);
	sieve_record_add_pieces(out, &p, 1);
}

static bool same_a_run(const struct grain *a, const struct grain *b)
{
	return a->kind == VV_PIECE_COPY && b->kind == VV_PIECE_COPY && a->epoch == b->epoch && b->k == a->k + 1;
}

static bool same_b_run(const struct grain *a, const struct grain *b)
{
	return a->kind == VV_PIECE_COPY && b->kind == VV_PIECE_COPY && a->back && a->back == b->back;
}

static bool same_piece(const struct grain *a, const struct grain *b)
{
	if (a->kind != b->kind)
		return false;
	return a->kind == VV_PIECE_COPY ? same_a_run(a, b) : a->kind == VV_PIECE_REPEAT ? a->back == b->back : true;
}

static void cut_list(struct sieve_model *m, struct sieve_record *out)
{
	for (uint32_t i = 0, len; i < m->count; i += len) {
		const struct grain *g = &m->grain[i];

		for (len = 1; i + len < m->count && same_piece(&g[len - 1], &g[len]);)
			len++;
		if (g->kind >= 0)
			put(out, m->begin + i, len, g->kind, g->epoch, g->kind == VV_PIECE_REPEAT ? g->back : g->k);
	}
}

static void look_back(struct sieve_model *m, uint32_t i)
{
	struct grain *g = m->grain;

	g[i].back = 0;
	for (uint32_t d = 1; d <= i && g[i].kind == VV_PIECE_COPY && !g[i].back; d++)
		if (g[i - d].changed && !g[i - d].zero && vv_digest_equal(&g[i - d].digest, &g[i].digest))
			g[i].back = d;
}

static void cut_run(struct sieve_model *m, struct sieve_record *out)
{
	bool *repeat = sieve_need(calloc(m->count + 1, sizeof(*repeat)));
	struct grain *g = m->grain;

	for (uint32_t i = 0; i < m->count; i++)
		look_back(m, i);
	for (uint32_t i = 0; i < m->count; i++) {
		uint32_t a = i, a_end = i + 1, b = i, b_end = i + 1;

		if (g[i].kind != VV_PIECE_COPY || !g[i].back)
			continue;
		while (a > 0 && same_a_run(&g[a - 1], &g[a]))
			a--;
		while (a_end < m->count && same_a_run(&g[a_end - 1], &g[a_end]))
			a_end++;
		while (b > 0 && same_b_run(&g[b - 1], &g[b]))
			b--;
		while (b_end < m->count && same_b_run(&g[b_end - 1], &g[b_end]))
			b_end++;
		repeat[i] = b <= a && a_end <= b_end && a_end - a < b_end - b;
	}
	for (uint32_t i = 0; i < m->count; i++)
		if (repeat[i])
			g[i].kind = VV_PIECE_REPEAT;
	free(repeat);
	cut_list(m, out);
}

static int kind_at(const struct sieve_model *m, uint32_t i)
{
	return i < m->count && m->grain[i].p ? m->grain[i].kind : -1;
}

static void node_digest(const struct sieve_model *m, uint32_t i, unsigned height, struct vv_digest *out)
{
	struct vv_digest left, right;

	if (height == 0) {
		*out = m->grain[i].digest;
		return;
	}
	node_digest(m, i, height - 1, &left);
	node_digest(m, i + (1u << (height - 1)), height - 1, &right);
	vv_digest_node(&left, &right, height, out);
}

static bool all_kind(const struct sieve_model *m, uint32_t i, unsigned height, int kind)
{
	for (uint32_t k = 0; k < 1u << height; k++)
		if (kind_at(m, i + k) != kind)
			return false;
	return true;
}

static bool node_takes_part(const struct sieve_model *m, uint32_t i, unsigned height)
{
	return m->grain[i + (1u << height) - 1].takes_part;
}

/* The kind of a node whose grains all have this kind, or -2. */
static int label(struct sieve_model *m, uint32_t i, unsigned height, int kind)
{
	struct vv_digest d;

	if (!all_kind(m, i, height, kind))
		return -2;
	if (kind != VV_PIECE_COPY || height == 0)
		return kind;
	if (label(m, i, height - 1, kind) != kind || label(m, i + (1u << (height - 1)), height - 1, kind) != kind)
		return -2;
	node_digest(m, i, height, &d);
	return look_up(&m->nodes, &d) ? kind : -2;
}

static void enter_new_nodes(struct sieve_model *m)
{
	for (unsigned h = 1; h <= HEIGHTS; h++)
		for (uint32_t i = 0; i + (1u << h) <= m->count; i += 1u << h) {
			struct vv_digest d;

			if (!all_kind(m, i, h, VV_PIECE_NEW) || !node_takes_part(m, i, h))
				continue;
			node_digest(m, i, h, &d);
			if (!look_up(&m->nodes, &d))
				add(&m->nodes.young, (struct entry){ d, m->ordinal, m->grain[i].k });
		}
}

static void cut_tree(struct sieve_model *m, struct sieve_record *out)
{
	uint32_t len;

	enter_new_nodes(m);
	for (unsigned h = 1; h <= HEIGHTS; h++) /* so that they are met level by level */
		for (uint32_t i = 0; i + (1u << h) <= m->count; i += 1u << h)
			label(m, i, h, VV_PIECE_COPY);
	for (uint32_t i = 0; i < m->count; i += len) {
		const struct grain *g = &m->grain[i];
		unsigned h = 0;
		struct vv_digest d;

		len = 1;
		if (kind_at(m, i) < 0)
			continue;
		while (h < HEIGHTS && i % (2u << h) == 0 && label(m, i, h + 1, g->kind) == g->kind)
			h++;
		len = 1u << h;
		node_digest(m, i, h, &d);
		if (h && g->kind == VV_PIECE_COPY)
			put(out, m->begin + i, len, g->kind, look_up(&m->nodes, &d)->epoch, look_up(&m->nodes, &d)->k);
		else
			put(out, m->begin + i, len, g->kind, g->epoch, g->k);
	}
}

void sieve_model_pass(struct sieve_model *m, struct vv_span *span, size_t n, uint32_t ordinal, struct sieve_record *out)
{
	uint64_t forgotten = m->known.forgotten;

	*out = (struct sieve_record){ .ordinal = ordinal };
	m->ordinal = ordinal;
	m->n_data = 0;
	fit(m, span, n);
	for (uint32_t begin = 0; begin < m->end; begin += VV_GRAIN_SLICE) {
		load_slice(m, span, begin);
		take_kinds(m, out);
		if (m->opt.method == VV_METHOD_RUN)
			cut_run(m, out);
		else if (m->opt.method == VV_METHOD_TREE)
			cut_tree(m, out);
		else
			cut_list(m, out);
	}
	out->counts.forgotten = m->opt.method >= VV_METHOD_LIST ? m->known.forgotten - forgotten : 0;
}

/* ---- what a session continues from ------------------------------------------------------------------------------------ */

static bool in_ranges(const struct vv_number_range *usable, size_t n, uint32_t number)
{
	for (size_t i = 0; i < n; i++)
		if (number >= usable[i].at && number - usable[i].at < usable[i].len)
			return true;
	return false;
}

static void know_slice(struct sieve_model *m, const struct vv_number_range *usable, size_t n_usable)
{
	size_t fit = 0;

	for (uint32_t i = 0; i < m->count; i++) {
		struct grain *g = &m->grain[i];

		g->changed = g->p && !g->zero && in_ranges(usable, n_usable, m->begin + i);
		g->kind = -1;
		fit += g->changed;
	}
	begin_slice(&m->known, fit);
	if (m->opt.method == VV_METHOD_TREE)
		begin_slice(&m->nodes, fit);
	for (uint32_t i = 0; i < m->count; i++) {
		struct grain *g = &m->grain[i];

		if (!g->changed || !m->known.take)
			continue;
		m->known.take--;
		g->takes_part = true;
		g->kind = look_up(&m->known, &g->digest) ? VV_PIECE_COPY : VV_PIECE_NEW;
		g->k = m->begin + i;
		if (g->kind == VV_PIECE_NEW)
			add(&m->known.young, (struct entry){ g->digest, m->ordinal, g->k });
	}
	if (m->opt.method == VV_METHOD_TREE)
		enter_new_nodes(m);
}

/* The zero digest stands for zero bytes where only digests are left. */
static void load_past(struct sieve_model *m, uint32_t begin)
{
	static const uint8_t zeros[VV_GRAIN_MAX];
	struct vv_digest zero;

	vv_digest_of_kind(m->opt.digest_kind)(zeros, m->opt.chunk, &zero);
	m->begin = begin;
	m->count = m->end - begin < VV_GRAIN_SLICE ? m->end - begin : VV_GRAIN_SLICE;
	free(m->grain);
	m->grain = sieve_need(calloc(m->count + 1, sizeof(*m->grain)));
	for (size_t i = 0; i < m->n; i++)
		for (uint32_t g = 0; g < m->past[i].n; g++) {
			uint32_t number = m->past[i].first + g;

			if (number < begin || number - begin >= m->count || !m->past[i].there[g])
				continue;
			m->grain[number - begin].p = zeros;
			m->grain[number - begin].digest = m->past[i].digest[g];
			m->grain[number - begin].zero = vv_digest_equal(&m->past[i].digest[g], &zero);
		}
}

void sieve_model_readopt(struct sieve_model *m, uint32_t ordinal, const struct vv_number_range *usable, size_t n_usable)
{
	forget_all(&m->known);
	forget_all(&m->nodes);
	m->ordinal = ordinal;
	for (uint32_t begin = 0; m->opt.method >= VV_METHOD_LIST && begin < m->end; begin += VV_GRAIN_SLICE) {
		load_past(m, begin);
		know_slice(m, usable, n_usable);
	}
}

void sieve_model_adopt(struct sieve_model *m, struct vv_span *span, size_t n, uint32_t ordinal, const struct vv_number_range *usable,
		       size_t n_usable)
{
	fit(m, span, n);
	for (uint32_t begin = 0; begin < m->end; begin += VV_GRAIN_SLICE)
		load_slice(m, span, begin);
	sieve_model_readopt(m, ordinal, usable, n_usable);
}

void sieve_model_forget(struct sieve_model *m, uint32_t ordinal)
{
	for (size_t i = 0; i < m->n; i++)
		memset(m->past[i].there, 0, m->past[i].n * sizeof(*m->past[i].there));
	kill(&m->known.young, ordinal);
	kill(&m->known.aged, ordinal);
	kill(&m->nodes.young, ordinal);
	kill(&m->nodes.aged, ordinal);
}
