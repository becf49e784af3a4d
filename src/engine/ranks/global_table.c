#include "engine/ranks/global_table.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/ranks/part_sources.h"
#include "engine/ranks/remote_table.h"
#include "engine/read/compose.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct global_reader {
	struct vv_context ctx;
	uint64_t epoch;
	struct vv_rank_parts parts;
	struct vv_run_table *table; /* of each rank; epoch 0: not read yet */
	struct vv_run_table out;
	size_t cap;
};

static const struct vv_run_table *table_of(struct global_reader *g, uint32_t rank, int *rc)
{
	struct vv_run_table_how how = { .pool = g->ctx.pool };

	if (*rc == 0 && !g->table[rank].epoch)
		*rc = vv_run_table_load(&g->ctx.lineage, g->epoch, rank, &how, &g->table[rank]);
	return &g->table[rank];
}

/* The runs of the region that all sources make together. */
static int compose(struct global_reader *g, const struct vv_part_sources *s, struct vv_runs *out)
{
	struct vv_composition c = { .memory = s->memory, .element = s->element, .n = s->n, .source = vv_mem_new(s->n, sizeof(*c.source)) };
	struct vv_composed o = { 0 };
	int rc = c.source ? 0 : VV_ENOMEM;

	for (size_t i = 0; rc == 0 && i < s->n; i++) {
		const struct vv_run_table *t = table_of(g, s->v[i].rank, &rc);
		size_t k = vv_run_table_find(t, s->v[i].region->name);

		if (rc == 0 && (k == t->n || t->region[k].shape.len != s->v[i].region->shape.len))
			rc = vv_err_set(VV_EDAMAGED, "the layer of rank %u in epoch %" PRIu64 " has changed", s->v[i].rank, g->epoch);
		if (rc == 0)
			c.source[i] = (struct vv_compose_source){ s->v[i].memory, s->v[i].provided, &t->region[k].runs, 0 };
	}
	if (rc == 0)
		rc = vv_compose_begin(&c);
	while (rc == 0 && !c.done && c.n) {
		o.base = 0; /* one destination */
		rc = vv_compose_slice(&c, NULL, NULL, &o);
	}
	if (rc == 0) {
		*out = o.runs;
		o.runs = (struct vv_runs){ 0 };
	}
	vv_mem_free(c.source);
	vv_compose_fini(&o);
	return rc;
}

/* Bytes of an element of the first dimension; UINT64_MAX: too many. */
static uint64_t bytes_of_row(const struct vv_shape *s)
{
	uint64_t bytes = vv_head_element_size(s);

	for (unsigned i = 1; i < s->ndim; i++)
		if (__builtin_mul_overflow(bytes, s->dim[i], &bytes))
			return UINT64_MAX;
	return bytes;
}

/* Describes the region as a single rank with all of it would declare it. */
static int describe(const struct vv_rank_parts *p, const struct vv_head_region *first, struct vv_part_wanted *w, struct vv_distribution *whole)
{
	uint64_t before, total, len = vv_head_element_size(&first->shape);

	*whole = (struct vv_distribution){ .kind = first->part->kind, .item = first->part->item };
	w->shape = first->shape;
	w->part = whole;
	if (whole->kind == VV_DISTRIBUTION_LIST) {
		vv_part_sources_count_items(p, w->name, 0, &before, &total);
		if (__builtin_mul_overflow(total, whole->item, &w->shape.len))
			return vv_err_set(VV_EINVAL, "list '%s' has more than 2^64 bytes", w->name);
		if (w->shape.ndim && bytes_of_row(&first->shape) != whole->item) /* no call declares this */
			w->shape.ndim = 1;
		w->shape.dim[0] = w->shape.ndim == 1 ? w->shape.len / len : total;
	}
	for (unsigned i = 0; whole->kind == VV_DISTRIBUTION_SLAB && i < first->shape.ndim; i++) {
		whole->global[i] = w->shape.dim[i] = first->part->global[i];
		if (__builtin_mul_overflow(len, w->shape.dim[i], &len))
			return vv_err_set(VV_EINVAL, "array '%s' has more than 2^64 bytes", w->name);
		w->shape.len = len;
	}
	return 0;
}

static int add_region(struct global_reader *g, const char *name, const struct vv_head_region *first)
{
	struct vv_part_wanted w = { .name = name, .lineage = g->ctx.lineage.name, .epoch = g->epoch, .stored = &g->parts, .rank = UINT32_MAX };
	struct vv_run_table_region *r = &g->out.region[g->out.n];
	struct vv_part_sources s = { 0 };
	struct vv_distribution whole;
	int rc = describe(&g->parts, first, &w, &whole);

	if (rc == 0 && whole.kind == VV_DISTRIBUTION_SLAB)
		rc = vv_part_sources_slab(&w, &s);
	else if (rc == 0 && whole.kind == VV_DISTRIBUTION_LIST)
		rc = vv_part_sources_list(&w, 0, w.shape.len / whole.item, &s);
	else if (rc == 0)
		rc = vv_part_sources_whole(&w, 0, &s);
	*r = (struct vv_run_table_region){ .shape = w.shape };
	if (rc == 0)
		rc = compose(g, &s, &r->runs);
	vv_part_sources_fini(&s);
	r->name = vv_mem_strdup(name);
	g->out.n++;
	return rc ? rc : !r->name ? VV_ENOMEM : vv_map_put(&g->out.by_name, r->name, g->out.n - 1);
}

/* Room for one more. */
static int grow(struct global_reader *g)
{
	if (vv_mem_room(&g->out.region, g->out.n, &g->cap, sizeof(*g->out.region)) < 0)
		return VV_ENOMEM;
	return vv_map_reserve(&g->out.by_name, g->out.n + 1);
}

/* In the order in which the ranks have declared them. A shared region is rank 0's. */
static int add_all(struct global_reader *g, const char *only)
{
	char name[VV_MAX_NAME + 1];
	int rc = 0;

	for (uint32_t k = 0; rc == 0 && k < g->parts.ranks; k++)
		for (size_t i = 0; rc == 0 && i < g->parts.rank[k].head.n_regions; i++) {
			const struct vv_head_region *r = &g->parts.rank[k].head.region[i];
			bool slab = r->part && r->part->kind == VV_DISTRIBUTION_SLAB;

			snprintf(name, sizeof(name), "%.*s", slab ? (int)vv_distribution_name_length(r->name) : VV_MAX_NAME, r->name);
			if (!r->part || (only && strcmp(name, only) != 0) || vv_map_get(&g->out.by_name, name) != VV_MAP_NONE)
				continue;
			rc = grow(g);
			rc = rc ? rc : add_region(g, name, r);
		}
	return rc;
}

static int check_found(const struct global_reader *g, const char *name)
{
	const struct vv_head_region *r = NULL;

	if (!name || g->out.n)
		return 0;
	for (uint32_t k = 0; !r && k < g->parts.ranks; k++)
		r = vv_rank_parts_region(&g->parts.rank[k], name);
	if (r)
		return vv_err_set(VV_EINVAL, "region '%s' of epoch %" PRIu64 " is %s, not a part of the state of all ranks", name, g->epoch,
				  vv_distribution_kind_name(r->part));
	return vv_err_set(VV_ENOENT, "epoch %" PRIu64 " of lineage '%s' has no global array, list or shared region '%s'", g->epoch, g->ctx.lineage.name, name);
}

int vv_global_table_load(const struct vv_lineage *lin, struct vv_pool *pool, uint64_t epoch, const char *name, struct vv_run_table *out)
{
	struct global_reader g = { .ctx = { .store = lin->store, .lineage = *lin, .ranks = 1, .pool = pool }, .epoch = epoch };
	struct vv_commit c = { 0 };
	int rc = vv_catalog_commit(lin, epoch, &c);

	if (rc == 0)
		rc = vv_rank_parts_of_epoch(&g.ctx, 0, epoch, c.n_ranks, &g.parts);
	if (rc == 0) {
		g.out.epoch = epoch;
		g.out.rank = VV_GLOBAL_RANK;
		g.out.ranks = c.n_ranks;
		g.table = vv_mem_new(c.n_ranks, sizeof(*g.table));
		rc = g.table ? add_all(&g, name) : VV_ENOMEM;
	}
	if (rc == 0)
		rc = check_found(&g, name);
	for (uint32_t k = 0; g.table && k < c.n_ranks; k++)
		vv_run_table_fini(&g.table[k]);
	vv_mem_free(g.table);
	vv_rank_parts_fini(&g.parts);
	vv_commit_fini(&c);
	if (rc)
		vv_run_table_fini(&g.out);
	else
		*out = g.out;
	return rc;
}
