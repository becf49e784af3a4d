#include "engine/table.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/stack.h"
#include "engine/layerio.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct chain { /* newest first */
	struct vv_layerio *file[VV_MAX_DEPTH + 1];
	size_t n;
};

static void close_one(void *arg, size_t i)
{
	vv_layerio_close(((struct chain *)arg)->file[i]);
}

static void chain_close(struct chain *c, struct vv_pool *pool)
{
	struct vv_loop loop = vv_pool_loop(pool);

	vv_loop_each(&loop, c->n, close_one, c);
	vv_mem_free(c);
}

/* The parents of a layer are known only one from the other, but mostly they are the epochs right before it: so as many as there
 * must be are read at once, and those that were guessed wrong are closed again. Where there are many, a thread reads one from end to end, which is less work
 * than in parts; but for the last, the keyframe, whose table may be longer than all others together. */
struct guess {
	const struct vv_lineage *lin;
	struct vv_pool *pool;
	uint64_t layer; /* the child */
	size_t n;
	struct vv_layerio *file[VV_MAX_DEPTH]; /* file[i]: i + 1 epochs before it */
};

static void guess_one(void *arg, size_t i)
{
	struct guess *g = arg;
	uint64_t epoch = vv_run_epoch(g->layer) - 1 - i;
	bool alone = g->n >= 2 * vv_pool_width(g->pool) && i + 1 < g->n;

	if (vv_layerio_open_on(g->lin, alone ? NULL : g->pool, vv_run_layer(epoch, vv_run_rank(g->layer)), VV_LAYERIO_HEAD, &g->file[i]) < 0) {
		g->file[i] = NULL;
		vv_err_clear();
	}
}

static int chain_next(const struct vv_lineage *lin, struct vv_pool *pool, uint64_t layer, struct guess *g, struct chain *c)
{
	uint64_t back = g ? vv_run_epoch(g->layer) - vv_run_epoch(layer) : 0;
	struct vv_layerio *f = back ? g->file[back - 1] : NULL;
	int rc = f ? 0 : vv_layerio_open_on(lin, pool, layer, VV_LAYERIO_HEAD, &f);

	if (rc)
		return rc;
	if (back)
		g->file[back - 1] = NULL;
	c->file[c->n++] = f;
	if (c->n > 1 && f->head.depth + 1 != c->file[c->n - 2]->head.depth) {
		vv_err_set(VV_EDAMAGED, "section IDENT: depth %d does not fit its child's", f->head.depth);
		return vv_layerio_blame(f, VV_EDAMAGED);
	}
	return 0;
}

static int chain_open(const struct vv_lineage *lin, struct vv_pool *pool, uint64_t layer, struct chain *c)
{
	struct guess *g = NULL;
	size_t n = 0;
	int rc = chain_next(lin, pool, layer, NULL, c);

	if (rc == 0 && pool && c->file[0]->head.depth > 1) {
		uint64_t older = vv_run_epoch(layer) - 1;

		g = vv_mem_new(1, sizeof(*g));
		if (!g)
			return VV_ENOMEM;
		g->lin = lin;
		g->pool = pool;
		g->layer = layer;
		n = c->file[0]->head.depth < older ? c->file[0]->head.depth : (size_t)older;
		g->n = n;
		vv_pool_each(pool, n, guess_one, g);
	}
	while (rc == 0 && c->file[c->n - 1]->head.parent) {
		uint64_t parent = c->file[c->n - 1]->head.parent;

		rc = chain_next(lin, pool, vv_run_layer(parent, vv_run_rank(layer)), vv_run_epoch(layer) - parent <= n ? g : NULL, c);
	}
	for (size_t i = 0; i < n; i++)
		vv_layerio_close(g->file[i]);
	vv_mem_free(g);
	return rc;
}

/* One region followed down the chain: what each layer says of it, newest first. */
struct strand {
	const struct vv_runs *runs[VV_MAX_DEPTH + 1];
	struct vv_runs clipped[VV_MAX_DEPTH + 1];
	size_t n;
};

static void strand_fini(struct strand *s)
{
	for (size_t i = 0; i < s->n; i++)
		vv_run_fini(&s->clipped[i]);
	vv_mem_free(s);
}

static int strand_collect(const struct chain *c, size_t index, struct strand *s)
{
	uint64_t limit = UINT64_MAX;
	uint32_t next = (uint32_t)index + 1;

	for (size_t i = 0; i < c->n && next; i++) {
		const struct vv_head *h = &c->file[i]->head;
		const struct vv_head_region *r;

		if (next > h->n_regions) {
			vv_err_set(VV_EDAMAGED, "section REGIONS: a child continues region %u, there are %zu", next,
				   h->n_regions);
			return vv_layerio_blame(c->file[i], VV_EDAMAGED);
		}
		r = &h->region[next - 1];
		s->runs[s->n] = &r->runs;
		if (limit < r->shape.len) {
			s->runs[s->n] = &s->clipped[s->n];
			if (vv_run_slice(&r->runs, 0, limit, &s->clipped[s->n]) < 0)
				return VV_ENOMEM;
		} else {
			limit = r->shape.len;
		}
		s->n++;
		next = r->parent;
	}
	return 0;
}

static int build_region(const struct chain *c, struct vv_pool *pool, size_t index, struct vv_table_region *out)
{
	struct vv_head_region *r = &c->file[0]->head.region[index];
	struct strand *s = vv_mem_new(1, sizeof(*s));
	struct vv_loop loop = vv_pool_loop(pool);
	struct vv_runs *runs = &out->runs;
	bool gaps = false;
	int rc = s ? strand_collect(c, index, s) : VV_ENOMEM;

	out->shape = r->shape;
	if (rc == 0 && s->n == 1) { /* all that there is, and nobody else's; whether it is, was looked at */
		*runs = r->runs;
		r->runs = (struct vv_runs){ 0 };
	} else if (rc == 0) {
		rc = vv_stack_runs(s->runs, s->n, &loop, runs, &gaps);
	}
	if (rc == 0 && (gaps || (runs->n ? runs->v[runs->n - 1].at + runs->v[runs->n - 1].len : 0) != r->shape.len)) {
		vv_err_set(VV_EDAMAGED, "section RUNS: region '%s' is not covered by the layer and its parents", r->name);
		rc = vv_layerio_blame(c->file[0], VV_EDAMAGED);
	}
	if (rc == 0) {
		out->name = vv_mem_strdup(r->name);
		rc = out->name ? 0 : VV_ENOMEM;
	}
	if (s)
		strand_fini(s);
	return rc;
}

static int build(const struct chain *c, struct vv_pool *pool, struct vv_table *t)
{
	const struct vv_head *h = &c->file[0]->head;
	int rc = 0;

	t->epoch = h->epoch;
	t->rank = h->rank;
	t->ranks = h->ranks;
	t->digest_kind = h->digest_kind;
	t->depth = h->depth;
	t->layers = c->n;
	t->region = vv_mem_new(h->n_regions, sizeof(*t->region));
	if (!t->region)
		return VV_ENOMEM;
	for (; rc == 0 && t->n < h->n_regions; t->n++)
		rc = build_region(c, pool, t->n, &t->region[t->n]);
	if (rc == 0)
		rc = vv_map_reserve(&t->by_name, t->n);
	for (size_t i = 0; rc == 0 && i < t->n; i++)
		rc = vv_map_put(&t->by_name, t->region[i].name, i);
	return rc;
}

/* The commit is read first: an epoch that is not there must say so, not that its file is missing. */
static int read_commit(const struct vv_lineage *lin, uint64_t epoch, uint32_t rank, struct vv_commit *c)
{
	int rc = vv_catalog_commit(lin, epoch, c);

	if (rc == 0 && rank >= c->n_ranks)
		rc = vv_err_set(VV_ENOENT, "epoch %" PRIu64 " of lineage '%s' has %u rank(s), there is no rank %u", epoch,
				lin->name, c->n_ranks, rank);
	return rc;
}

static int check_record(struct vv_layerio *f, const struct vv_commit *c, uint32_t rank)
{
	const struct vv_commit_rank *r = &c->rank[rank];
	int rc = vv_layerio_check_head(f, &r->head);

	if (rc == 0 && (f->get->size > r->file_len || f->head.payload != r->payload || f->head.ranks != c->n_ranks ||
			(f->head.parent && f->head.parent != c->parent))) {
		vv_err_set(VV_EDAMAGED, "its length, payload, ranks or parent are not those of the commit record");
		rc = vv_layerio_blame(f, VV_EDAMAGED);
	}
	return rc;
}

int vv_table_load(const struct vv_lineage *lin, uint64_t epoch, uint32_t rank, struct vv_table *out)
{
	return vv_table_load_on(lin, NULL, epoch, rank, out);
}

int vv_table_load_on(const struct vv_lineage *lin, struct vv_pool *pool, uint64_t epoch, uint32_t rank,
		     struct vv_table *out)
{
	struct vv_commit commit = { 0 };
	int rc = read_commit(lin, epoch, rank, &commit);

	if (rc == 0)
		rc = vv_table_load_of(lin, pool, &commit, rank, out);
	vv_commit_fini(&commit);
	return rc;
}

int vv_table_load_of(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_commit *commit, uint32_t rank,
		     struct vv_table *out)
{
	struct chain *c = vv_mem_new(1, sizeof(*c));
	struct vv_table t = { 0 };
	int rc = c ? chain_open(lin, pool, vv_run_layer(commit->epoch, rank), c) : VV_ENOMEM;

	if (rc == 0)
		rc = check_record(c->file[0], commit, rank);
	if (rc == 0)
		rc = build(c, pool, &t);
	if (c)
		chain_close(c, pool);
	if (rc)
		vv_table_fini(&t);
	else
		*out = t;
	return rc;
}

void vv_table_fini(struct vv_table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		vv_mem_free(t->region[i].name);
		if (!t->region[i].sheet)
			vv_run_fini(&t->region[i].runs);
		vv_sheet_drop(t->region[i].sheet);
	}
	vv_mem_free(t->region);
	vv_map_fini(&t->by_name);
	*t = (struct vv_table){ 0 };
}

struct vv_sheet *vv_table_share(struct vv_table_region *r)
{
	if (!r->sheet) {
		r->sheet = vv_sheet_new();
		if (!r->sheet)
			return NULL;
		r->sheet->runs = r->runs;
	}
	return vv_sheet_hold(r->sheet);
}

size_t vv_table_find(const struct vv_table *t, const char *name)
{
	size_t i = vv_map_get(&t->by_name, name);

	return i == VV_MAP_NONE ? t->n : i;
}

int vv_table_region(const struct vv_lineage *lin, const struct vv_table *t, const char *name,
		    const struct vv_table_region **out)
{
	size_t i = vv_table_find(t, name);
	char list[300] = "";
	size_t used = 0;

	if (i < t->n) {
		*out = &t->region[i];
		return 0;
	}
	for (size_t k = 0; k < t->n && used < sizeof(list); k++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s'%s'", k ? ", " : "", t->region[k].name);
	return vv_err_set(VV_ENOENT, "epoch %" PRIu64 " of lineage '%s' has no region '%s'; it holds %s%s", t->epoch,
			  lin->name, name, t->n ? list : "none", used >= sizeof(list) ? " ..." : "");
}
