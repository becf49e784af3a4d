/* The option `history` limits a session's knowledge of stored content beyond that of its regions. A
 * chunk whose digest has left the index is stored again if it comes back. So the limit costs space
 * in the store at worst. */
#include "engine/write/index_limit.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/write/index_cache.h"
#include "engine/write/referenced_layers.h"
#include "engine/lineage/layer_file.h"
#include "engine/write/needed_entries.h"
#include "engine/options.h"
#include "engine/ranks/group.h"
#include "engine/context.h"
#include <string.h>

/* A share is computed from at least this much memory: a session with little memory may know a
 * little more. */
#define LEAST_MEMORY (8ull << 20)

static size_t chunks_of(const struct varve *v)
{
	size_t chunks = 0;

	for (size_t i = 0; i < v->n_regions; i++)
		chunks += v->region[i]->n_chunks;
	return chunks;
}

/* The number of entries of `cost` bytes, at least `least`. */
static size_t granted(const struct varve *v, size_t cost, size_t least)
{
	const struct vv_group *g = v->ctx.group;
	bool judges = g && g->size > 1 && g->dedup == VV_GROUP_EXACT;
	uint64_t memory = 0, bytes, little = vv_options_history(&v->ctx.conf, 0, LEAST_MEMORY);
	size_t n;

	for (size_t i = 0; i < v->n_regions; i++)
		memory += v->region[i]->shape.len;
	bytes = vv_options_history(&v->ctx.conf, memory, v->packed_bytes);
	bytes = bytes > little ? bytes : little;
	n = (size_t)((judges ? bytes / 2 : bytes) / cost);
	return n > least ? n : least;
}

/* There is always room for the content of the regions and as much new content. */
static size_t allowed(const struct varve *v, size_t cost)
{
	return granted(v, cost, 2 * chunks_of(v));
}

size_t vv_index_limit_owner_entries(const struct varve *v)
{
	return allowed(v, VV_OWNER_INDEX_COST);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int add_region(const struct varve *v, const struct vv_region *r, struct vv_needed_entries *n)
{
	const struct vv_index *x = &v->index_cache->index;
	int rc = 0;

	for (size_t c = 0; rc == 0 && c < r->n_chunks; c++) {
		uint32_t e = r->was[c] - VV_CHUNK_FIRST;

		if (r->was[c] >= VV_CHUNK_FIRST && vv_run_rank(vv_index_layer(x, e)) == v->ctx.rank)
			rc = vv_needed_entries_add(n, vv_index_layer(x, e), vv_index_pos(x, e), vv_region_chunk_len(r, c), r->shape.chunk);
	}
	return rc;
}

/* Adds the content of the epoch that is continued. Regions that are deduped in grains have no
 * chunks, and need no entries of the index. */
static int add_table(const struct varve *v, struct vv_needed_entries *n)
{
	bool *fine = vv_mem_new(v->tip.table->n, sizeof(*fine));
	int rc;

	if (!fine)
		return VV_ENOMEM;
	for (size_t i = 0; i < v->n_regions; i++) {
		size_t k = v->region[i]->fine ? vv_run_table_find(v->tip.table, v->region[i]->name) : v->tip.table->n;

		if (k < v->tip.table->n)
			fine[k] = true;
	}
	rc = vv_needed_entries_add_table(n, v->tip.table, v->ctx.rank, fine);
	vv_mem_free(fine);
	return rc;
}

int vv_index_limit_load(struct varve *v, struct vv_index_cache *out)
{
	struct vv_needed_entries needs = { 0 };
	int rc = v->tip.has_table ? add_table(v, &needs) : 0;

	for (size_t i = 0; rc == 0 && v->has_index_cache && i < v->n_regions; i++)
		rc = add_region(v, v->region[i], &needs);
	vv_needed_entries_sort(&needs);
	if (rc == 0)
		rc = vv_index_cache_load(&v->ctx.lineage, v->ctx.rank, v->ctx.digest_kind, v->tip.oldest, v->tip.mixed ? 0 : allowed(v, VV_INDEX_COST) / 2, &needs, out);
	vv_needed_entries_fini(&needs);
	return rc;
}

bool vv_index_limit_is_complete(struct varve *v)
{
	struct vv_needed_entries needs = { 0 };
	bool held = add_table(v, &needs) == 0;

	vv_needed_entries_sort(&needs);
	held = held && vv_needed_entries_are_in(&needs, &v->index_cache->index, v->index_cache->index.n);
	vv_needed_entries_fini(&needs);
	return held;
}

/* ---- forgetting ------------------------------------------------------------------------------ */

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

int vv_index_limit_shrink(struct varve *v, size_t limit)
{
	uint32_t *moved = vv_mem_new(v->index_cache->index.n, sizeof(*moved));
	int rc;

	if (!moved)
		return VV_ENOMEM;
	mark(v, moved);
	rc = vv_index_cache_shrink(v->index_cache, limit, moved);
	if (rc == 0)
		renumber(v, moved);
	vv_mem_free(moved);
	return rc;
}

/* Cuts to half of the limit, so that this does not happen after every epoch. Before the next epoch,
 * the content of the regions and a quarter of it more is enough, for the same reason. As much again
 * comes with an epoch of only new content. */
static void cut(struct varve *v)
{
	size_t chunks = chunks_of(v), most = granted(v, VV_INDEX_COST, chunks + chunks / 4), before = v->index_cache->index.n;

	if (before <= most)
		return;
	if (vv_index_limit_shrink(v, most / 2) < 0)
		vv_log_warn("more is remembered than history=%s allows: %s", vv_conf_text(&v->ctx.conf, "history"), vv_err_last());
	else
		vv_log_info("history: of %zu digests %zu are kept", before, v->index_cache->index.n);
}

void vv_index_limit_enforce(struct varve *v)
{
	cut(v);
	vv_index_cache_save(&v->ctx.lineage, v->ctx.rank, v->ctx.digest_kind, v->tip.epoch, v->index_cache);
}

/* ---- content removed by gc ------------------------------------------------------------------- */

struct left { /* of the layer of one source of the index */
	size_t lo, hi; /* the range of its entries */
};

static void find_entries(const struct vv_index *x, struct left *of)
{
	for (size_t i = 0; i < x->n; i++) {
		struct left *l = &of[vv_index_from(x, (uint32_t)i)];

		l->lo = l->hi ? l->lo : i;
		l->hi = i + 1;
	}
}

static bool holds(const struct vv_digests *d, uint64_t pos, const struct vv_digest *digest)
{
	const struct vv_digest_group *g = &d->group[vv_payload_digest_group(d, pos)];

	if (g == d->group + d->n_groups || pos < g->pos || (pos - g->pos) % g->chunk)
		return false;
	/* memcmp: the digests need not be aligned */
	return memcmp(&d->v[g->digest + (pos - g->pos) / g->chunk], digest, sizeof(*digest)) == 0;
}

/* A layer with the same check as before has the same content. */
static int look_into(struct vv_index_cache *h, size_t k, struct vv_layer_file *f, const struct left *l, uint32_t *stays)
{
	const struct vv_index *x = &h->index;
	uint64_t check = vv_layer_section(&f->frame, VV_SECTION_DIGESTS)->check;
	bool same = check == h->digests_check[k];
	int rc = same ? 0 : vv_layer_file_load_digests(f);

	for (size_t i = l->lo; rc == 0 && i < l->hi; i++)
		if (vv_index_from(x, (uint32_t)i) == k)
			stays[i] = same || holds(&f->digests, vv_index_pos(x, (uint32_t)i), &x->digest[i]);
	h->digests_check[k] = check;
	return rc;
}

/* Marks the entries of this rank's layers that the store still has. A damaged layer counts as
 * gone. */
static int find_left(struct varve *v, const struct left *of, uint32_t *stays)
{
	struct vv_index_cache *h = v->index_cache;
	struct vv_listing all = { 0 };
	int rc = vv_catalog_list(&v->ctx.lineage, 0, &all);

	for (size_t k = 0; rc == 0 && k < h->index.n_layers; k++) {
		uint64_t layer = h->index.layer[k];
		struct vv_layer_file *f = NULL;

		if (vv_run_rank(layer) != v->ctx.rank || !of[k].hi || !vv_catalog_has_layer(&all, layer))
			continue;
		rc = vv_layer_file_open(&v->ctx.lineage, layer, 0, &f);
		if (rc == 0)
			rc = look_into(h, k, f, &of[k], stays);
		vv_layer_file_close(f);
		if (rc == VV_EDAMAGED) {
			vv_log_warn("%s; its content will not be referred to", vv_err_last());
			vv_err_clear();
			rc = 0;
		}
	}
	vv_catalog_listing_fini(&all);
	return rc;
}

/* Entries of other ranks stay if this rank's regions use them. Chunks whose entries are gone become
 * unknown. */
static void mark_kept(const struct varve *v, struct vv_region *r, uint32_t *stays)
{
	for (size_t c = 0; c < r->n_chunks; c++) {
		uint32_t e = r->was[c] - VV_CHUNK_FIRST;

		if (r->was[c] < VV_CHUNK_FIRST)
			continue;
		if (vv_run_rank(vv_index_layer(&v->index_cache->index, e)) != v->ctx.rank)
			stays[e] = 1;
		if (!stays[e]) {
			r->was[c] = VV_CHUNK_UNKNOWN;
			r->fresh = true;
		}
	}
}

static int prune(struct varve *v, uint32_t *stays)
{
	struct vv_index_cache *h = v->index_cache;
	struct left *of = vv_mem_new(h->index.n_layers, sizeof(*of));
	int rc = of ? 0 : VV_ENOMEM;

	vv_layer_file_close(h->open);
	h->open = NULL;
	if (rc == 0) {
		find_entries(&h->index, of);
		rc = find_left(v, of, stays);
	}
	vv_mem_free(of);
	for (size_t i = 0; rc == 0 && i < v->n_regions; i++)
		mark_kept(v, v->region[i], stays);
	if (rc == 0)
		rc = vv_index_cache_shrink(h, 0, stays);
	if (rc == 0)
		renumber(v, stays);
	return rc;
}

int vv_index_limit_prune(struct varve *v)
{
	uint32_t *stays = vv_mem_new(v->index_cache->index.n, sizeof(*stays));
	int rc = stays ? prune(v, stays) : VV_ENOMEM;

	vv_mem_free(stays);
	vv_referenced_layers_after_gc(v);
	if (rc)
		return rc;
	v->index_cache->cached = 0; /* gc has removed the cache */
	v->index_cache->n_layers_since = v->index_cache->index.n_layers;
	return 0;
}
