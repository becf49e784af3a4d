/* Finds the place of a chunk's content: as before, none (zero), in the index, or now in the
 * payload. */
#include "engine/write/layer_writer.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/format/distribution.h"
#include "engine/write/rank_dedup.h"
#include "engine/write/trust.h"
#include <inttypes.h>
#include <string.h>

static int begin_head(struct vv_layer_writer *p)
{
	struct varve *v = p->v;
	struct vv_head *h = &p->head;

	memcpy(h->lineage, v->ctx.lineage.id, sizeof(h->lineage));
	h->epoch = p->epoch;
	h->parent = p->keyframe ? 0 : v->tip.epoch;
	h->depth = p->keyframe ? 0 : (uint8_t)(v->tip.depth + 1);
	h->rank = v->ctx.rank;
	h->ranks = v->ctx.ranks;
	h->digest_kind = v->ctx.digest_kind;
	h->region = vv_mem_new(p->n_regions, sizeof(*h->region));
	if (!h->region)
		return VV_ENOMEM;
	for (; h->n_regions < p->n_regions; h->n_regions++) {
		struct vv_head_region *r = &h->region[h->n_regions];
		const struct vv_region *from = p->region[h->n_regions];

		r->name = vv_mem_strdup(from->name);
		if (!r->name)
			return VV_ENOMEM;
		r->parent = p->keyframe ? 0 : from->parent;
		r->shape = from->shape;
		if (from->part && !(r->part = vv_distribution_copy(from->part)))
			return VV_ENOMEM;
		p->st.bytes_memory += from->shape.len;
	}
	return 0;
}

int vv_layer_writer_begin(struct vv_layer_writer *p)
{
	int rc = begin_head(p);

	return rc ? rc : vv_index_reserve(&p->v->index_cache->index, p->chunks);
}

int vv_layer_writer_open(struct vv_layer_writer *p, const struct vv_block_writer_options *opt)
{
	struct varve *v = p->v;
	char object[VV_NAME_MAX];
	struct vv_buf header = { 0 };
	struct iovec iov;
	int rc = 0;

	vv_name_layer(object, v->ctx.lineage.name, p->epoch, v->ctx.rank);
	p->opened = true;
	if (!p->put)
		rc = vv_store_put_open(v->ctx.store, object, (uint64_t)p->chunks * vv_conf_number(&v->ctx.conf, "chunk"), &p->put);
	if (rc == 0)
		rc = vv_block_writer_open(v->ctx.pool, p->put, opt, &p->block_writer);
	if (rc)
		return rc;
	vv_layer_put_header(&header);
	iov = (struct iovec){ header.p, header.n };
	rc = vv_buf_check(&header);
	if (rc == 0)
		rc = vv_store_put_write(p->put, &iov, 1);
	vv_buf_fini(&header);
	return rc;
}

static bool is_same(struct vv_layer_writer *p, const struct vv_region *r, size_t i, const struct vv_digest *d)
{
	const struct vv_digest *old = vv_index_cache_was(p->v->index_cache, r, i);

	return old && vv_digest_equal(old, d) &&
	       (r->was[i] < VV_CHUNK_FIRST || vv_trust_check_entry(&p->v->ctx.lineage, p->v->index_cache, r->was[i] - VV_CHUNK_FIRST));
}

bool vv_layer_writer_known(struct vv_layer_writer *p, struct vv_region *r, size_t i, const struct vv_digest *d)
{
	size_t len = vv_region_chunk_len(r, i);
	uint32_t e;

	/* but not twice in one epoch: a thousand entries of one digest make an index slow */
	if (!p->v->ctx.dedup) {
		e = vv_index_find(&p->v->index_cache->index, d);
		if (e == VV_INDEX_NONE || e < p->old_entries)
			return false;
		r->now[i] = e + VV_CHUNK_FIRST;
		p->st.bytes_dup_space += len;
		return true;
	}
	if (is_same(p, r, i, d)) {
		r->now[i] = r->was[i];
		return true;
	}
	if (vv_digest_equal(d, vv_region_zero(r, i))) {
		r->now[i] = VV_CHUNK_ZERO;
		p->st.bytes_zero += len;
		return true;
	}
	e = vv_index_find(&p->v->index_cache->index, d);
	if (e == VV_INDEX_NONE || !vv_trust_check_entry(&p->v->ctx.lineage, p->v->index_cache, e))
		return false;
	r->now[i] = e + VV_CHUNK_FIRST;
	if (vv_rank_dedup_is_claim(p, r->now[i]))
		p->claims->shared[vv_rank_dedup_number(p, r->now[i])] = true;
	*(e < p->old_entries ? &p->st.bytes_dup_time : &p->st.bytes_dup_space) += len;
	return true;
}

int vv_layer_writer_add_digest(struct vv_layer_writer *p, const struct vv_digest *d, uint32_t len, uint32_t entry)
{
	int rc;

	if (!p->digests.v && entry == p->old_entries + p->digests.n)
		return vv_payload_digest_count(&p->digests, p->pos, len);
	rc = vv_payload_digests_keep(&p->digests, vv_layer_writer_new_digests(p));
	return rc ? rc : vv_payload_digest_add(&p->digests, p->pos, len, d);
}

/* A store that writes pages from where they lie needs them at multiples of its unit. So positions
 * are left out before such a page: after the header, and after a chunk of odd length. They hold
 * zeros, and nothing refers to them. Promised positions are not moved. */
static int align(struct vv_layer_writer *p, size_t len, uint32_t tag)
{
	enum { MOST = 4096, SHARE = 256 };
	static const uint8_t zeros[MOST];
	uint64_t unit = p->put->unit, gap = unit ? -(VV_LAYER_HEADER + p->pos) % unit : 0, left_out = p->pos - p->st.bytes_new;
	int rc;

	if (!gap || gap > MOST || len % unit || tag == VV_NO_TAG || (p->claims && !p->claims->kept_promises) || left_out > p->pos / SHARE)
		return 0;
	rc = vv_block_writer_add(p->block_writer, zeros, (size_t)gap, NULL, VV_NO_TAG, false);
	p->pos += gap;
	return rc ? rc : vv_block_writer_push(p->block_writer);
}

static int append(struct vv_layer_writer *p, const struct vv_region *r, const struct vv_digest *d, uint32_t entry, const void *bytes, size_t len,
		  enum vv_place_stability how, uint32_t tag)
{
	struct vv_form form = vv_recipe_form(r->shape.type, false, r->shape.ndim, r->shape.dim);
	int rc = vv_layer_writer_add_digest(p, d, (uint32_t)len, entry);

	if (rc == 0)
		rc = vv_block_writer_add(p->block_writer, bytes, len, &form, tag, how != VV_PLACE_STABLE);
	if (rc)
		return rc;
	p->pos += len;
	p->st.bytes_new += len;
	return 0;
}

/* Others refer to overwritten content. With dedup among ranks, references are decided before any
 * content is placed. */
static int is_overwritten(const struct vv_region *r, size_t i)
{
	return vv_err_set(VV_EMISMATCH,
			  "region '%s' was written by another thread during varve_checkpoint, at or before offset %" PRIu64 ", and other data refers to the old content: the epoch is discarded; write no region during the call, or set collective=none",
			  r->name, (uint64_t)i * r->shape.chunk);
}

/* The claim has an entry in the index, which gets its place now. Content that others refer to was
 * promised a position. It gets that one because chunks are placed in the order of the promises. For
 * a chunk that has changed since, the old content is enough if it is stored. Otherwise the new
 * content is stored, if no other chunk or rank relies on the entry. */
static int place_claim(struct vv_layer_writer *p, const struct vv_region *r, size_t i, const struct vv_digest *d, const void *bytes,
		       enum vv_place_stability how, uint32_t tag, bool *added)
{
	size_t len = vv_region_chunk_len(r, i), k = vv_rank_dedup_number(p, r->now[i]);
	uint32_t e = r->now[i] - VV_CHUNK_FIRST;
	uint8_t *state = &p->claims->state[k];
	uint64_t source = 0;
	int rc;

	*added = false;
	if (*state == VV_CLAIM_REMOTE)
		return 0;
	if (*state == VV_CLAIM_PLACED) {
		p->st.bytes_dup_space += len;
		return 0;
	}
	if (how == VV_PLACE_CHANGED && (*state == VV_CLAIM_SHARED || p->claims->shared[k]))
		return is_overwritten(r, i);
	if (*state == VV_CLAIM_SHARED && p->claims->pos[k] != p->pos)
		return vv_err_set(VV_EINVAL, "a chunk was promised position %" PRIu64 " and comes to %" PRIu64, p->claims->pos[k],
				  p->pos);
	rc = vv_index_source(&p->v->index_cache->index, p->layer, &source);
	if (rc == 0)
		rc = align(p, len, tag);
	if (rc == 0)
		rc = append(p, r, d, VV_INDEX_NONE, bytes, len, how, tag);
	if (rc)
		return rc;
	if (how == VV_PLACE_CHANGED)
		vv_index_rename(&p->v->index_cache->index, e, d);
	vv_index_move(&p->v->index_cache->index, e, source, p->pos - len);
	*state = VV_CLAIM_PLACED;
	*added = true;
	return 0;
}

int vv_layer_writer_place(struct vv_layer_writer *p, struct vv_region *r, size_t i, const struct vv_digest *d, const void *bytes,
		  enum vv_place_stability how, uint32_t tag, bool *added)
{
	struct vv_index *x = &p->v->index_cache->index;
	size_t len = vv_region_chunk_len(r, i);
	uint32_t e;
	int rc;

	if (vv_rank_dedup_is_claim(p, r->now[i]))
		return place_claim(p, r, i, d, bytes, how, tag, added);
	*added = !vv_layer_writer_known(p, r, i, d);
	if (!*added)
		return 0;
	rc = align(p, len, tag);
	if (rc)
		return rc;
	if (vv_index_find(x, d) != VV_INDEX_NONE) /* it exists, but must not be used */
		rc = vv_index_supersede(x, d, p->layer, p->pos, &e);
	else
		rc = vv_index_add(x, d, p->layer, p->pos, &e);
	if (rc == 0)
		rc = append(p, r, d, e, bytes, len, how, tag);
	if (rc == 0)
		r->now[i] = e + VV_CHUNK_FIRST;
	return rc;
}

struct vv_run vv_layer_writer_run(const struct vv_index *x, const struct vv_region *r, size_t i, uint32_t state)
{
	struct vv_run run = { .at = (uint64_t)i * r->shape.chunk, .len = vv_region_chunk_len(r, i) };

	if (state >= VV_CHUNK_FIRST) {
		run.layer = vv_index_layer(x, state - VV_CHUNK_FIRST);
		run.pos = vv_index_pos(x, state - VV_CHUNK_FIRST);
	}
	return run;
}
