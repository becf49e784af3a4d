/* The option `history`: what a session knows of stored content beside what its regions hold has a bound. A chunk whose digest has left
 * the index is stored again if it comes back; so the bound costs space in the store at worst. */
#include "base/log.h"
#include "base/mem.h"
#include "engine/needs.h"
#include "engine/ranks.h"
#include "engine/session.h"

/* A share is one of at least so much: a session with little memory may know a little more. */
#define LEAST_MEMORY (8ull << 20)

static size_t chunks_of(const struct varve *v)
{
	size_t chunks = 0;

	for (size_t i = 0; i < v->n_regions; i++)
		chunks += v->region[i]->n_chunks;
	return chunks;
}

/* Entries of so many bytes, but at least so many of them. */
static size_t granted(const struct varve *v, size_t cost, size_t least)
{
	const struct vv_ranks *g = v->group;
	bool judges = g && g->size > 1 && g->how == VV_RANKS_EXACT;
	uint64_t memory = v->cargo, bytes;
	size_t n;

	for (size_t i = 0; i < v->n_regions; i++)
		memory += v->region[i]->shape.len;
	bytes = vv_conf_share(&v->conf, "history", memory > LEAST_MEMORY ? memory : LEAST_MEMORY);
	n = (size_t)((judges ? bytes / 2 : bytes) / cost);
	return n > least ? n : least;
}

/* There is always room for what the regions hold and as much again that is new. */
static size_t allowed(const struct varve *v, size_t cost)
{
	return granted(v, cost, 2 * chunks_of(v));
}

size_t vv_window_judged(const struct varve *v)
{
	return allowed(v, VV_JUDGE_COST);
}

/* ---- reading ---------------------------------------------------------------------------------------------------------- */

static int add_region(const struct varve *v, const struct vv_region *r, struct vv_needs *n)
{
	const struct vv_index *x = &v->history.index;
	int rc = 0;

	for (size_t c = 0; rc == 0 && c < r->n_chunks; c++) {
		uint32_t e = r->was[c] - VV_CHUNK_FIRST;

		if (r->was[c] >= VV_CHUNK_FIRST && vv_run_rank(vv_index_layer(x, e)) == v->rank)
			rc = vv_needs_add(n, vv_index_layer(x, e), vv_index_pos(x, e), vv_region_chunk_len(r, c), r->shape.chunk);
	}
	return rc;
}

/* What the epoch holds that is continued. Regions that are deduped in grains have no chunks, and need nothing of the index. */
static int add_table(const struct varve *v, struct vv_needs *n)
{
	bool *fine = vv_mem_new(v->table.n, sizeof(*fine));
	int rc;

	if (!fine)
		return VV_ENOMEM;
	for (size_t i = 0; i < v->n_regions; i++) {
		size_t k = v->region[i]->fine ? vv_table_find(&v->table, v->region[i]->name) : v->table.n;

		if (k < v->table.n)
			fine[k] = true;
	}
	rc = vv_needs_add_table(n, &v->table, v->rank, fine);
	vv_mem_free(fine);
	return rc;
}

int vv_window_load(struct varve *v, struct vv_history *out)
{
	struct vv_needs needs = { 0 };
	int rc = v->has_table ? add_table(v, &needs) : 0;

	for (size_t i = 0; rc == 0 && v->has_history && i < v->n_regions; i++)
		rc = add_region(v, v->region[i], &needs);
	vv_needs_settle(&needs);
	if (rc == 0)
		rc = vv_history_load(&v->lineage, v->rank, v->digest_kind, v->mixed ? 0 : allowed(v, VV_INDEX_COST) / 2, &needs, out);
	vv_needs_fini(&needs);
	return rc;
}

bool vv_window_holds(struct varve *v)
{
	struct vv_needs needs = { 0 };
	bool held = add_table(v, &needs) == 0;

	vv_needs_settle(&needs);
	held = held && vv_needs_met(&needs, &v->history.index, v->history.index.n);
	vv_needs_fini(&needs);
	return held;
}

/* ---- forgetting -------------------------------------------------------------------------------------------------------- */

static void mark(const struct varve *v, uint32_t *moved)
{
	for (size_t i = 0; i < v->n_regions; i++)
		for (size_t c = 0; c < v->region[i]->n_chunks; c++)
			if (v->region[i]->was[c] >= VV_CHUNK_FIRST)
				moved[v->region[i]->was[c] - VV_CHUNK_FIRST] = 1;
}

static void renumber(struct varve *v, const uint32_t *moved)
{
	for (size_t i = 0; i < v->n_regions; i++)
		for (size_t c = 0; c < v->region[i]->n_chunks; c++) {
			uint32_t *was = &v->region[i]->was[c];

			if (*was >= VV_CHUNK_FIRST)
				*was = moved[*was - VV_CHUNK_FIRST] - 1 + VV_CHUNK_FIRST;
		}
}

int vv_window_shrink(struct varve *v, size_t limit)
{
	uint32_t *moved = vv_mem_new(v->history.index.n, sizeof(*moved));
	int rc;

	if (!moved)
		return VV_ENOMEM;
	mark(v, moved);
	rc = vv_history_shrink(&v->history, limit, moved);
	if (rc == 0)
		renumber(v, moved);
	vv_mem_free(moved);
	return rc;
}

/* To the half of what is allowed, so that it is not to be done after every epoch. Before the next one what the regions hold is enough, and a quarter of that, for the
 * same reason: as much again comes with an epoch in which everything is new. */
void vv_window_settle(struct varve *v)
{
	size_t chunks = chunks_of(v), most = granted(v, VV_INDEX_COST, chunks + chunks / 4), before = v->history.index.n;

	if (before <= most)
		return;
	if (vv_window_shrink(v, most / 2) < 0)
		vv_log_warn("more is remembered than history=%s allows: %s", vv_conf_text(&v->conf, "history"), vv_err_last());
	else
		vv_log_info("history: of %zu digests %zu are kept", before, v->history.index.n);
}
