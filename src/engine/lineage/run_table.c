#include "engine/lineage/run_table.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/format/overlay.h"
#include "engine/lineage/layer_file.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct vv_run_table_chain { /* newest first */
	struct vv_layer_file *file[VV_MAX_DEPTH + 1];
	size_t n;
	unsigned parts; /* to open */
};

static void close_layer(void *arg, size_t i)
{
	vv_layer_file_close(((struct vv_run_table_chain *)arg)->file[i]);
}

static void chain_close(struct vv_run_table_chain *c, struct vv_pool *pool)
{
	struct vv_parallel_for loop = vv_pool_loop(pool);

	if (!c)
		return;
	vv_parallel_for_each(&loop, c->n, close_layer, c);
	vv_mem_free(c);
}

static void release_layer(void *arg, size_t i)
{
	vv_layer_file_release(((struct vv_run_table_chain *)arg)->file[i]);
}

/* The heads stay in memory. */
static void chain_release(struct vv_run_table_chain *c, struct vv_pool *pool)
{
	struct vv_parallel_for loop = vv_pool_loop(pool);

	vv_parallel_for_each(&loop, c->n, release_layer, c);
}

/* Reads the runs of all heads. */
static int chain_finish(struct vv_run_table_chain *c, struct vv_pool *pool)
{
	int rc = 0;

	for (size_t i = 0; c && rc == 0 && i < c->n; i++)
		rc = vv_layer_file_finish(c->file[i], pool);
	return rc;
}

/* The parent of a layer is known only after the layer is read, but mostly it is the previous epoch.
 * So as many layers as the depth requires are read at once, and wrong guesses are closed again. If
 * there are many, each thread reads a complete layer, which is less work than reading in parts. The
 * last one, the keyframe, is an exception: its table may be longer than all others together. */
struct guess {
	const struct vv_lineage *lin;
	struct vv_pool *pool;
	uint64_t layer; /* the child */
	unsigned parts;
	size_t n;
	struct vv_layer_file *file[VV_MAX_DEPTH]; /* file[i]: i + 1 epochs before the child */
};

static void open_guessed(void *arg, size_t i)
{
	struct guess *g = arg;
	uint64_t epoch = vv_run_epoch(g->layer) - 1 - i;
	bool alone = g->n >= 2 * vv_pool_width(g->pool) && i + 1 < g->n;

	if (vv_layer_file_open_on(g->lin, alone ? NULL : g->pool, vv_run_layer(epoch, vv_run_rank(g->layer)), g->parts, &g->file[i]) < 0) {
		g->file[i] = NULL;
		vv_err_clear();
	}
}

static int chain_next(const struct vv_lineage *lin, struct vv_pool *pool, uint64_t layer, struct guess *g, struct vv_run_table_chain *c)
{
	uint64_t back = g ? vv_run_epoch(g->layer) - vv_run_epoch(layer) : 0;
	struct vv_layer_file *f = back ? g->file[back - 1] : NULL;
	int rc = f ? 0 : vv_layer_file_open_on(lin, pool, layer, c->parts, &f);

	if (rc)
		return rc;
	if (back)
		g->file[back - 1] = NULL;
	c->file[c->n++] = f;
	if (c->n > 1 && f->head.depth + 1 != c->file[c->n - 2]->head.depth) {
		vv_err_set(VV_EDAMAGED, "section IDENT: depth %d does not fit its child's", f->head.depth);
		return vv_layer_file_name_in_error(f, VV_EDAMAGED);
	}
	return 0;
}

static int chain_open(const struct vv_lineage *lin, struct vv_pool *pool, uint64_t layer, struct vv_run_table_chain *c)
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
		g->parts = c->parts;
		n = c->file[0]->head.depth < older ? c->file[0]->head.depth : (size_t)older;
		g->n = n;
		vv_store_each(lin->store, pool, false, n, open_guessed, g);
	}
	while (rc == 0 && c->file[c->n - 1]->head.parent) {
		uint64_t parent = c->file[c->n - 1]->head.parent;

		rc = chain_next(lin, pool, vv_run_layer(parent, vv_run_rank(layer)), vv_run_epoch(layer) - parent <= n ? g : NULL, c);
	}
	for (size_t i = 0; i < n; i++)
		vv_layer_file_close(g->file[i]);
	vv_mem_free(g);
	return rc;
}

/* One region in all layers of the chain: the runs of each layer. If the region was longer before,
 * its runs are clipped. */
struct unmerged {
	struct vv_run_table_unmerged *is;
	struct vv_runs *clipped; /* one per layer; NULL: none was clipped */
	/* Its length never changed, and the last layer covers it completely: so there are no
	 * gaps. */
	bool even;
};

static struct vv_run_table_unmerged *unmerged_new(size_t most)
{
	struct vv_run_table_unmerged *s = vv_mem_new(1, sizeof(*s) + most * sizeof(s->source[0]));

	if (!s)
		return NULL;
	s->runs = vv_mem_new(most, sizeof(*s->runs));
	if (s->runs)
		return s;
	vv_mem_free(s);
	return NULL;
}

static void unmerged_free(struct vv_run_table_unmerged *s)
{
	if (!s)
		return;
	vv_mem_free(s->runs);
	vv_mem_free(s);
}

static void unmerged_fini(struct unmerged *s)
{
	for (size_t i = 0; s->clipped && i < s->is->n; i++)
		vv_run_fini(&s->clipped[i]);
	vv_mem_free(s->clipped);
	unmerged_free(s->is);
}

static int unmerged_clip(const struct vv_run_table_chain *c, struct vv_pool *pool, struct unmerged *s, uint64_t limit)
{
	const struct vv_runs **last = &s->is->runs[s->is->n - 1];
	const struct vv_runs *all = *last;
	int rc = vv_layer_file_finish(s->is->source[s->is->n - 1].file, pool);

	if (rc)
		return rc;
	if (!s->clipped)
		s->clipped = vv_mem_new(c->n, sizeof(*s->clipped));
	if (!s->clipped)
		return VV_ENOMEM;
	*last = &s->clipped[s->is->n - 1];
	return vv_run_slice(all, 0, limit, &s->clipped[s->is->n - 1]);
}

static int unmerged_collect(const struct vv_run_table_chain *c, struct vv_pool *pool, size_t index, struct unmerged *s)
{
	uint64_t len = c->file[0]->head.region[index].shape.len, limit = len;
	uint32_t next = (uint32_t)index + 1;
	int rc = 0;

	s->even = true;
	s->is = unmerged_new(c->n);
	if (!s->is)
		return VV_ENOMEM;
	for (size_t i = 0; rc == 0 && i < c->n && next; i++) {
		const struct vv_head *h = &c->file[i]->head;
		const struct vv_head_region *r;

		if (next > h->n_regions) {
			vv_err_set(VV_EDAMAGED, "section REGIONS: a child continues region %u, there are %zu", next,
				   h->n_regions);
			return vv_layer_file_name_in_error(c->file[i], VV_EDAMAGED);
		}
		r = &h->region[next - 1];
		s->is->source[s->is->n] = (struct vv_run_table_source){ c->file[i], next - 1 };
		s->is->runs[s->is->n++] = &r->runs;
		s->even &= r->shape.len == len;
		if (limit < r->shape.len)
			rc = unmerged_clip(c, pool, s, limit);
		else
			limit = r->shape.len;
		next = r->parent;
	}
	s->even &= next == 0;
	return rc;
}

static int stack(struct vv_run_table_chain *c, struct vv_pool *pool, size_t index, const struct vv_run_table_unmerged *s, struct vv_runs *out)
{
	const struct vv_head_region *r = &c->file[0]->head.region[index];
	struct vv_parallel_for loop = vv_pool_loop(pool);
	struct vv_runs runs = { 0 };
	bool gaps = false;
	int rc = chain_finish(c, pool);

	if (rc == 0)
		rc = vv_overlay_runs(s->runs, s->n, &loop, &runs, &gaps);
	if (rc == 0 && (gaps || (runs.n ? runs.v[runs.n - 1].at + runs.v[runs.n - 1].len : 0) != r->shape.len)) {
		vv_err_set(VV_EDAMAGED, "section RUNS: region '%s' is not covered by the layer and its parents", r->name);
		rc = vv_layer_file_name_in_error(c->file[0], VV_EDAMAGED);
	}
	if (rc)
		vv_run_fini(&runs);
	else
		*out = runs;
	return rc;
}

/* Moves the complete runs to out. The caller has checked that one layer covers the region. */
static void hand_over(struct vv_head_region *from, struct vv_runs *out)
{
	*out = from->runs;
	from->runs = (struct vv_runs){ 0 };
}

static int build_region(struct vv_run_table_chain *c, struct vv_pool *pool, size_t index, bool late, struct vv_run_table_region *out)
{
	struct vv_head_region *r = &c->file[0]->head.region[index];
	struct unmerged s = { 0 };
	int rc = unmerged_collect(c, pool, index, &s);

	out->shape = r->shape;
	if (rc == 0 && s.is->n == 1 && s.even && !c->file[0]->lazy_runs) {
		hand_over(r, &out->runs);
	} else if (rc == 0 && late && s.even) {
		out->unmerged = s.is;
		s.is = NULL;
	} else if (rc == 0) {
		rc = stack(c, pool, index, s.is, &out->runs);
	}
	if (rc == 0) {
		out->name = vv_mem_strdup(r->name);
		out->part = r->part;
		r->part = NULL;
		rc = out->name ? 0 : VV_ENOMEM;
	}
	unmerged_fini(&s);
	return rc;
}

static int build(struct vv_run_table_chain *c, struct vv_pool *pool, bool late, struct vv_run_table *t)
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
	t->layer = vv_mem_new(c->n, sizeof(*t->layer));
	if (!t->region || !t->layer)
		return VV_ENOMEM;
	for (size_t i = 0; i < c->n; i++)
		t->layer[i] = c->file[i]->layer;
	for (; rc == 0 && t->n < h->n_regions; t->n++)
		rc = build_region(c, pool, t->n, late, &t->region[t->n]);
	if (rc == 0)
		rc = vv_map_reserve(&t->by_name, t->n);
	for (size_t i = 0; rc == 0 && i < t->n; i++)
		rc = vv_map_put(&t->by_name, t->region[i].name, i);
	return rc;
}

static bool is_merged(const struct vv_run_table *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->region[i].unmerged)
			return false;
	return true;
}

bool vv_run_table_layer_runs(const struct vv_run_table_unmerged *s, size_t i, uint64_t at, uint64_t end, struct vv_runs *out)
{
	struct vv_lazy_runs *r = s->source[i].file->lazy_runs;

	*out = *s->runs[i];
	return !r || vv_lazy_runs_find(r, s->source[i].region, at, end, out);
}

size_t vv_run_table_sources(const struct vv_run_table_unmerged *s, size_t i, const uint64_t **out)
{
	*out = s->source[i].file->source;
	return s->source[i].file->n_sources;
}

int vv_run_table_load_rest(struct vv_run_table *t, struct vv_pool *pool)
{
	return chain_finish(t->chain, pool);
}

static int merge_region(struct vv_run_table_chain *c, struct vv_pool *pool, size_t i, struct vv_run_table_region *r)
{
	struct vv_head_region *from = &c->file[0]->head.region[i];
	int rc = 0;

	if (r->unmerged->n == 1)
		hand_over(from, &r->runs);
	else
		rc = stack(c, pool, i, r->unmerged, &r->runs);
	if (rc == 0 && r->shared_runs)
		r->shared_runs->runs = r->runs;
	if (rc == 0) {
		unmerged_free(r->unmerged);
		r->unmerged = NULL;
	}
	return rc;
}

int vv_run_table_merge(struct vv_run_table *t, struct vv_pool *pool)
{
	int rc = chain_finish(t->chain, pool);

	for (size_t i = 0; rc == 0 && t->chain && i < t->n; i++)
		if (t->region[i].unmerged)
			rc = merge_region(t->chain, pool, i, &t->region[i]);
	if (rc)
		return rc;
	chain_close(t->chain, pool);
	t->chain = NULL;
	return 0;
}

/* The commit record is read first, so that the error for a missing epoch does not report a missing
 * file. */
static int read_commit(const struct vv_lineage *lin, uint64_t epoch, uint32_t rank, struct vv_commit *c)
{
	int rc = vv_catalog_commit(lin, epoch, c);

	if (rc == 0 && rank >= c->n_ranks)
		rc = vv_err_set(VV_ENOENT, "epoch %" PRIu64 " of lineage '%s' has %u rank(s), there is no rank %u", epoch,
				lin->name, c->n_ranks, rank);
	return rc;
}

static int check_record(struct vv_layer_file *f, const struct vv_commit *c, uint32_t rank)
{
	const struct vv_commit_rank *r = &c->rank[rank];
	int rc = vv_layer_file_check_head(f, &r->head);

	if (rc == 0 && (f->get->size > r->file_len || f->head.payload != r->payload || f->head.ranks != c->n_ranks ||
			(f->head.parent && f->head.parent != c->parent))) {
		vv_err_set(VV_EDAMAGED, "its length, payload, ranks or parent are not those of the commit record");
		rc = vv_layer_file_name_in_error(f, VV_EDAMAGED);
	}
	return rc;
}

/* Tables may stay unmerged only if all files are mapped, or if the data is for a device. */
static bool may_be_late(const struct vv_run_table_chain *c, const struct vv_run_table_how *how)
{
	if (how->runs != VV_RUN_TABLE_LATE)
		return how->runs == VV_RUN_TABLE_BEGUN;
	for (size_t i = 0; i < c->n; i++)
		if (!c->file[i]->get->maps)
			return false;
	return true;
}

static int load(const struct vv_lineage *lin, const struct vv_commit *commit, uint32_t rank, const struct vv_run_table_how *how, struct vv_run_table *out)
{
	struct vv_run_table_chain *c = vv_mem_new(1, sizeof(*c));
	struct vv_run_table t = { 0 };
	int rc = c ? 0 : VV_ENOMEM;

	if (rc == 0) {
		c->parts = VV_LAYER_FILE_HEAD | (how->runs == VV_RUN_TABLE_BEGUN ? VV_LAYER_FILE_LAZY : 0);
		rc = chain_open(lin, how->pool, vv_run_layer(commit->epoch, rank), c);
	}
	if (rc == 0)
		rc = check_record(c->file[0], commit, rank);
	if (rc == 0)
		rc = build(c, how->pool, may_be_late(c, how), &t);
	if (rc == 0 && !is_merged(&t)) {
		chain_release(c, how->pool);
		t.chain = c;
		c = NULL;
	}
	chain_close(c, how->pool);
	if (rc)
		vv_run_table_fini(&t);
	else
		*out = t;
	return rc;
}

int vv_run_table_load(const struct vv_lineage *lin, uint64_t epoch, uint32_t rank, const struct vv_run_table_how *how, struct vv_run_table *out)
{
	struct vv_run_table_how plain = { 0 };
	struct vv_commit commit = { 0 };
	int rc = 0;

	how = how ? how : &plain;
	if (!how->commit)
		rc = read_commit(lin, epoch, rank, &commit);
	if (rc == 0)
		rc = load(lin, how->commit ? how->commit : &commit, rank, how, out);
	vv_commit_fini(&commit);
	return rc;
}

void vv_run_table_fini(struct vv_run_table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		vv_mem_free(t->region[i].name);
		vv_mem_free(t->region[i].part);
		if (!t->region[i].shared_runs)
			vv_run_fini(&t->region[i].runs);
		vv_shared_runs_unref(t->region[i].shared_runs);
		unmerged_free(t->region[i].unmerged);
	}
	vv_mem_free(t->region);
	vv_mem_free(t->layer);
	vv_map_fini(&t->by_name);
	chain_close(t->chain, NULL);
	*t = (struct vv_run_table){ 0 };
}

struct vv_shared_runs *vv_run_table_share(struct vv_run_table_region *r)
{
	if (!r->shared_runs) {
		r->shared_runs = vv_shared_runs_new();
		if (!r->shared_runs)
			return NULL;
		r->shared_runs->runs = r->runs;
	}
	return vv_shared_runs_ref(r->shared_runs);
}

size_t vv_run_table_find(const struct vv_run_table *t, const char *name)
{
	size_t i = vv_map_get(&t->by_name, name);

	return i == VV_MAP_NONE ? t->n : i;
}

int vv_run_table_region(const struct vv_lineage *lin, const struct vv_run_table *t, const char *name,
		    const struct vv_run_table_region **out)
{
	size_t i = vv_run_table_find(t, name);
	char list[300] = "";
	size_t used = 0;

	if (i < t->n) {
		*out = &t->region[i];
		return 0;
	}
	for (size_t k = 0; k < t->n && used < sizeof(list); k++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s'%s'", k ? ", " : "", t->region[k].name);
	if (t->ranks > 1)
		return vv_err_set(VV_ENOENT, "epoch %" PRIu64 " of lineage '%s' has no region '%s' of rank %" PRIu32 ", which holds %s%s; each rank has its own regions",
				  t->epoch, lin->name, name, t->rank, t->n ? list : "none", used >= sizeof(list) ? " ..." : "");
	return vv_err_set(VV_ENOENT, "epoch %" PRIu64 " of lineage '%s' has no region '%s'; it holds %s%s", t->epoch,
			  lin->name, name, t->n ? list : "none", used >= sizeof(list) ? " ..." : "");
}
