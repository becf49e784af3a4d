#include "engine/files/other_ranks_index.h"
#include "base/mem.h"
#include "engine/write/needed_entries.h"
#include "engine/ranks/group.h"
#include "engine/write/trust.h"

struct other_ranks_index_loading {
	struct varve *v;
	struct vv_run_table *table; /* per rank of the epoch; empty if it cannot be read */
	size_t n;
	struct vv_listing unfinished; /* layers of epochs that were never committed */
	uint8_t *wanted; /* per rank: its layers are referred to, or it left unfinished ones */
	uint32_t ranks;
};

static int load_tables(struct other_ranks_index_loading *l, const struct vv_commit *c)
{
	const struct vv_run_table_how how = { .pool = l->v->ctx.pool, .commit = c };
	int rc = 0;

	l->table = vv_mem_new(c->n_ranks, sizeof(*l->table));
	if (!l->table)
		return VV_ENOMEM;
	for (; rc == 0 && l->n < c->n_ranks; l->n++)
		rc = vv_run_table_load(&l->v->ctx.lineage, c->epoch, (uint32_t)l->n, &how, &l->table[l->n]) == VV_ENOMEM ? VV_ENOMEM : 0;
	return rc;
}

/* A job that died has left intact layers above the newest epoch. Each rank refers to its own such
 * layers (engine/write/index_limit.c). If the others did not see them, they would store the content
 * again. They are not listed once this session has tried an epoch, because it removes the rest of
 * that epoch. Nor are they if a store has only some of the ranks. */
static int list_unfinished(struct other_ranks_index_loading *l, uint64_t epoch)
{
	const struct varve *v = l->v;

	if (v->tip.highest <= epoch || v->tip.highest != v->tip.highest_at_open || (v->ctx.group && v->ctx.group->has_local_stores))
		return 0;
	return vv_catalog_list(&v->ctx.lineage, epoch + 1, &l->unfinished);
}

/* Calls fn for each layer that a run names, and for each unfinished layer. */
static void each_layer(const struct other_ranks_index_loading *l, void (*fn)(void *arg, uint32_t rank), void *arg)
{
	for (size_t t = 0; t < l->n; t++)
		for (size_t i = 0; i < l->table[t].n; i++)
			for (size_t k = 0; k < l->table[t].region[i].runs.n; k++)
				if (l->table[t].region[i].runs.v[k].layer)
					fn(arg, vv_run_rank(l->table[t].region[i].runs.v[k].layer));
	for (size_t i = 0; i < l->unfinished.n_layers; i++)
		fn(arg, vv_run_rank(l->unfinished.layer[i].layer));
}

static void count(void *arg, uint32_t rank)
{
	uint32_t *ranks = arg;

	*ranks = rank + 1 > *ranks ? rank + 1 : *ranks;
}

static void want(void *arg, uint32_t rank)
{
	((uint8_t *)arg)[rank] = 1;
}

static int load_rank(struct other_ranks_index_loading *l, uint32_t rank, size_t room, struct vv_index_cache *out)
{
	struct vv_needed_entries needs = { 0 };
	int rc = 0;

	for (size_t t = 0; rc == 0 && t < l->n; t++)
		rc = vv_needed_entries_add_table(&needs, &l->table[t], rank, NULL);
	vv_needed_entries_sort(&needs);
	if (rc == 0)
		rc = vv_index_cache_load(&l->v->ctx.lineage, rank, l->v->ctx.digest_kind, l->v->tip.oldest, room, &needs, out);
	vv_needed_entries_fini(&needs);
	return rc;
}

static int load_all(struct other_ranks_index_loading *l, size_t room, struct vv_other_ranks_index *out)
{
	size_t n = 0;
	int rc = 0;

	each_layer(l, count, &l->ranks);
	l->wanted = vv_mem_new(l->ranks, 1);
	if (!l->wanted)
		return VV_ENOMEM;
	each_layer(l, want, l->wanted);
	for (uint32_t rank = 0; rank < l->ranks; rank++)
		n += l->wanted[rank];
	out->index_cache = vv_mem_new(n, sizeof(*out->index_cache));
	if (!out->index_cache)
		return VV_ENOMEM;
	for (uint32_t rank = 0; rc != VV_ENOMEM && rank < l->ranks; rank++) {
		if (rank == l->v->ctx.rank || !l->wanted[rank])
			continue;
		rc = load_rank(l, rank, room / n, &out->index_cache[out->n]);
		out->n += rc == 0;
	}
	return rc;
}

int vv_other_ranks_index_load(struct varve *v, uint64_t epoch, size_t room, struct vv_other_ranks_index *out)
{
	struct other_ranks_index_loading l = { .v = v };
	struct vv_other_ranks_index o = { 0 };
	struct vv_commit c = { 0 };
	int rc = epoch ? vv_catalog_commit(&v->ctx.lineage, epoch, &c) : 0;

	if (rc == 0 && epoch)
		rc = load_tables(&l, &c);
	if (rc == 0)
		rc = list_unfinished(&l, epoch);
	if (rc == 0)
		rc = load_all(&l, room, &o);
	for (size_t t = 0; t < l.n; t++)
		vv_run_table_fini(&l.table[t]);
	vv_mem_free(l.table);
	vv_mem_free(l.wanted);
	vv_catalog_listing_fini(&l.unfinished);
	vv_commit_fini(&c);
	if (rc == VV_ENOMEM)
		vv_other_ranks_index_fini(&o);
	else
		vv_err_clear();
	*out = o;
	return rc == VV_ENOMEM ? rc : 0;
}

void vv_other_ranks_index_fini(struct vv_other_ranks_index *o)
{
	for (size_t i = 0; i < o->n; i++)
		vv_index_cache_fini(&o->index_cache[i]);
	vv_mem_free(o->index_cache);
	*o = (struct vv_other_ranks_index){ 0 };
}

bool vv_other_ranks_index_find(const struct varve *v, struct vv_other_ranks_index *o, const struct vv_digest *d, uint64_t *layer, uint64_t *pos)
{
	for (size_t i = 0; i < o->n; i++) {
		struct vv_index_cache *h = &o->index_cache[i];
		uint32_t e = vv_index_find(&h->index, d);

		if (e == VV_INDEX_NONE || !vv_trust_check_entry(&v->ctx.lineage, h, e))
			continue;
		*layer = vv_index_layer(&h->index, e);
		*pos = vv_index_pos(&h->index, e);
		return true;
	}
	return false;
}
