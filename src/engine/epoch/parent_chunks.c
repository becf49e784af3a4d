#include "engine/epoch/parent_chunks.h"
#include "base/held.h"
#include "base/mem.h"
#include "engine/grains/grain_sets.h"
#include "engine/lineage/run_table.h"
#include "engine/epoch/tip.h"
#include "engine/write/index_cache.h"
#include "engine/write/trust.h"

/* The run that contains the complete chunk, or NULL. *k advances from chunk to chunk. */
static const struct vv_run *run_at(const struct vv_runs *runs, uint64_t at, uint64_t end, size_t *k)
{
	while (*k < runs->n && runs->v[*k].at + runs->v[*k].len <= at)
		++*k;
	return *k < runs->n && runs->v[*k].at + runs->v[*k].len >= end ? &runs->v[*k] : NULL;
}

static void adopt(struct varve *v, struct vv_region *r, const struct vv_run_table_region *from)
{
	const struct vv_index *x = &v->index_cache->index;
	uint32_t hint = 0;
	size_t k = 0;

	r->fresh = true;
	for (size_t i = 0; i < r->n_chunks; i++) {
		uint64_t at = (uint64_t)i * r->shape.chunk;
		uint64_t end = at + r->shape.chunk < r->shape.len ? at + r->shape.chunk : r->shape.len;
		const struct vv_run *run = run_at(&from->runs, at, end, &k);

		r->was[i] = VV_CHUNK_UNKNOWN;
		if (!run)
			continue;
		if (run->layer == 0) {
			r->was[i] = VV_CHUNK_ZERO;
		} else {
			uint32_t e = vv_index_near(x, v->ctx.group ? v->index_cache->n_loaded : x->n, run->layer, run->pos + (at - run->at), hint);

			if (e != VV_INDEX_NONE && vv_trust_check_layer(&v->ctx.lineage, v->index_cache, e)) {
				if (r->restored)
					vv_trust_mark_good(v->index_cache, e);
				r->was[i] = e + VV_CHUNK_FIRST;
				hint = e + 1;
			}
		}
	}
}

struct hashing {
	struct varve *v;
	struct vv_region *r;
	struct vv_digest *digest;
};

enum { HASH_STEP = 256 };

static void hash_step(void *arg, size_t step)
{
	struct hashing *h = arg;
	size_t end = (step + 1) * HASH_STEP < h->r->n_chunks ? (step + 1) * HASH_STEP : h->r->n_chunks;

	for (size_t i = step * HASH_STEP; i < end; i++)
		h->v->ctx.digest(h->r->p + (uint64_t)i * h->r->shape.chunk, vv_region_chunk_len(h->r, i), &h->digest[i]);
}

static int adopt_foreign(struct varve *v, struct vv_region *r, const struct vv_runs *runs)
{
	struct hashing h = { v, r, vv_mem_new(r->n_chunks, sizeof(*h.digest)) };
	size_t k = 0;
	int rc = 0;

	if (!h.digest)
		return VV_ENOMEM;
	vv_pool_each(v->ctx.pool, (r->n_chunks + HASH_STEP - 1) / HASH_STEP, hash_step, &h);
	for (size_t i = 0; rc == 0 && i < r->n_chunks; i++) {
		uint64_t at = (uint64_t)i * r->shape.chunk;
		const struct vv_run *run = run_at(runs, at, at + vv_region_chunk_len(r, i), &k);
		uint32_t e;

		if (!run || !run->layer || vv_run_rank(run->layer) == v->ctx.rank)
			continue;
		e = vv_index_find(&v->index_cache->index, &h.digest[i]);
		if (e == VV_INDEX_NONE || !vv_trust_is_verified(v->index_cache, e) ||
		    vv_index_layer(&v->index_cache->index, e) != run->layer)
			rc = vv_index_supersede(&v->index_cache->index, &h.digest[i], run->layer, run->pos + (at - run->at), &e);
		if (rc == 0)
			r->was[i] = e + VV_CHUNK_FIRST;
	}
	vv_mem_free(h.digest);
	return rc;
}

static bool has_foreign(const struct vv_runs *runs, uint32_t rank)
{
	for (size_t k = 0; k < runs->n; k++)
		if (runs->v[k].layer && vv_run_rank(runs->v[k].layer) != rank)
			return true;
	return false;
}

int vv_parent_chunks_adopt_foreign(struct varve *v)
{
	int rc = 0;

	VV_HELD(&v->entry.lock);
	for (size_t i = 0; rc == 0 && i < v->n_regions; i++) {
		struct vv_region *r = v->region[i];

		if (r->parent && r->restored && has_foreign(&v->tip.table->region[r->parent - 1].runs, v->ctx.rank))
			rc = adopt_foreign(v, r, &v->tip.table->region[r->parent - 1].runs);
	}
	return rc;
}

void vv_parent_chunks_adopt(struct varve *v)
{
	VV_HELD(&v->entry.lock);
	vv_tip_adopt(v);
	for (size_t i = 0; i < v->n_regions; i++) {
		struct vv_region *r = v->region[i];
		size_t k = vv_run_table_find(v->tip.table, r->name);

		if (r->adopted)
			continue;
		r->parent = k < v->tip.table->n ? (uint32_t)k + 1 : 0;
		if (r->parent)
			adopt(v, r, &v->tip.table->region[k]);
		r->adopted = true;
	}
}

void vv_parent_chunks_forget(struct varve *v)
{
	for (size_t i = 0; i < v->n_regions; i++) {
		v->region[i]->fresh = true;
		for (size_t c = 0; c < v->region[i]->n_chunks; c++)
			v->region[i]->was[c] = VV_CHUNK_UNKNOWN;
	}
	vv_index_cache_fini(v->index_cache);
	v->has_index_cache = false;
	vv_grain_sets_forget(v);
}
