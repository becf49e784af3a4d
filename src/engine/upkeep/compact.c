/* Blocks that are needed in full are copied unchanged, also those that are differences to others.
 * Of other blocks the needed extents are decoded, gathered and compressed again. Positions never
 * change, so references stay valid. */
#include "engine/upkeep/compact.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/codec.h"
#include "codec/section.h"
#include "engine/ranks/copies_lookup.h"
#include "engine/lineage/layer_file.h"
#include <string.h>

enum { GATHER = 1 << 20, AHEAD = 8 /* blocks that are read ahead */ };

/* The number of the block's bytes that are needed. */
static uint64_t needed_of(const struct vv_blocks *b, size_t k, const struct vv_extents *need)
{
	uint64_t sum = 0;

	for (size_t e = b->v[k].extent; e < b->v[k].extent + b->v[k].n_extents; e++) {
		uint64_t at = b->extent.v[e].pos, end = at + b->extent.v[e].len;

		for (size_t i = vv_payload_extent_find(need, at); i < need->n && need->v[i].pos < end; i++) {
			uint64_t from = need->v[i].pos > at ? need->v[i].pos : at;
			uint64_t to = need->v[i].pos + need->v[i].len;

			sum += (to < end ? to : end) - from;
		}
	}
	return sum;
}

int vv_compact_plan(const struct vv_lineage *lin, const struct vv_reachable_layer *l, struct vv_compact_plan *out)
{
	struct vv_layer_file *f = NULL;
	int rc = vv_layer_file_open(lin, l->layer, VV_LAYER_FILE_BLOCKS, &f);
	double needed = 0, stored = 0, share;
	uint64_t meta, head;

	if (rc)
		return rc;
	for (size_t k = 0; k < f->blocks.n; k++) {
		const struct vv_block *b = &f->blocks.v[k];

		needed += (double)b->stored_len * (double)needed_of(&f->blocks, k, &l->need) / b->raw_len;
		stored += b->stored_len;
	}
	head = vv_layer_section(&f->frame, VV_SECTION_BLOCKS)->off - f->frame.section[0].off;
	meta = f->get->size - f->frame.section[0].off - head;
	share = stored > 0 ? needed / stored : 1;
	out->needed = (uint64_t)(needed + share * (double)meta) + (l->chain ? head : 0);
	out->size = f->get->size;
	vv_layer_file_close(f);
	return 0;
}

struct writer {
	struct vv_layer_file *from;
	const struct vv_extents *need;
	const struct vv_progress *progress;
	struct vv_put *put;
	struct vv_blocks blocks;
	struct vv_digests digests;
	struct vv_copies_section copies;
	uint8_t *raw, *stored, *gathered, *coded;
	size_t cap;
	size_t n_gathered;
	uint32_t codec; /* of the gathered bytes */
	struct vv_recipe how;
};

static int emit(struct writer *w, uint32_t codec, uint32_t raw_len, uint8_t *p, size_t n)
{
	struct iovec iov = { p, n };
	int rc = vv_store_put_write(w->put, &iov, 1);

	return rc ? rc : vv_payload_block_add(&w->blocks, codec, raw_len, (uint32_t)n, vv_digest_check(p, n));
}

/* Compresses and writes the gathered bytes; their extents are in w->blocks already. */
static int flush(struct writer *w)
{
	const struct vv_codec *c = vv_codec_numbered(w->codec);
	size_t n = w->n_gathered, got = 0;
	int rc = 0;

	if (n == 0)
		return 0;
	w->n_gathered = 0;
	if (c)
		rc = c->encode(w->gathered, n, &w->how, w->coded, c->bound(w->cap), c->usual_level, &got);
	if (rc)
		return rc;
	return got ? emit(w, w->codec, (uint32_t)n, w->coded, got) : emit(w, 0, (uint32_t)n, w->gathered, n);
}

static int copy_whole(struct writer *w, size_t k)
{
	const struct vv_block *b = &w->from->blocks.v[k];
	size_t n = 0;
	const struct vv_delta_base *base = vv_delta_bases_of(&w->from->blocks.bases, k, &n);
	int rc = flush(w);

	for (size_t e = b->extent; rc == 0 && e < b->extent + b->n_extents; e++)
		rc = vv_payload_extent_add(&w->blocks.extent, w->from->blocks.extent.v[e].pos,
					   w->from->blocks.extent.v[e].len, 0);
	if (rc == 0)
		rc = vv_layer_file_read_stored(w->from, k, w->stored);
	if (rc == 0)
		rc = emit(w, b->codec, b->raw_len, w->stored, b->stored_len);
	if (rc == 0 && base)
		rc = vv_delta_bases_add(&w->blocks.bases, w->blocks.n - 1, base, n);
	return rc;
}

/* Gathers the needed stretches of one extent of a decoded block, at `bytes`. */
static int gather_extent(struct writer *w, const struct vv_extent *x, const uint8_t *bytes)
{
	uint64_t end = x->pos + x->len;
	int rc = 0;

	for (size_t i = vv_payload_extent_find(w->need, x->pos); rc == 0 && i < w->need->n && w->need->v[i].pos < end;
	     i++) {
		uint64_t from = w->need->v[i].pos > x->pos ? w->need->v[i].pos : x->pos;
		uint64_t to = w->need->v[i].pos + w->need->v[i].len;

		to = to < end ? to : end;
		if (w->n_gathered + (to - from) > w->cap)
			rc = flush(w);
		if (rc == 0)
			rc = vv_payload_extent_add(&w->blocks.extent, from, to - from, w->n_gathered > 0);
		memcpy(w->gathered + w->n_gathered, bytes + (from - x->pos), (size_t)(to - from));
		w->n_gathered += (size_t)(to - from);
	}
	return rc;
}

static int copy_part(struct writer *w, size_t k)
{
	const struct vv_block *b = &w->from->blocks.v[k];
	const struct vv_codec *c = vv_codec_numbered(b->codec);
	int rc = vv_layer_file_read_block(w->from, k, w->raw, w->stored);
	struct vv_recipe how = { 0 };
	uint64_t at = 0;

	if (rc == 0 && c && c->recipe)
		how = c->recipe(w->stored, b->stored_len);
	if (rc == 0 && (w->codec != b->codec || !vv_recipe_same(&w->how, &how)))
		rc = flush(w);
	w->codec = b->codec;
	w->how = how;
	for (size_t e = b->extent; rc == 0 && e < b->extent + b->n_extents; e++) {
		rc = gather_extent(w, &w->from->blocks.extent.v[e], w->raw + at);
		at += w->from->blocks.extent.v[e].len;
	}
	if (rc == 0 && w->n_gathered >= GATHER)
		rc = flush(w);
	return rc;
}

static void expect(struct writer *w, size_t k)
{
	if (k < w->from->blocks.n && needed_of(&w->from->blocks, k, w->need))
		vv_store_get_advise(w->from->get, VV_STORE_SOON, w->from->blocks.v[k].off, w->from->blocks.v[k].stored_len);
}

static int copy_blocks(struct writer *w)
{
	int rc = 0;

	for (size_t k = 0; k < AHEAD; k++)
		expect(w, k);
	for (size_t k = 0; rc == 0 && k < w->from->blocks.n; k++) {
		uint64_t needed = needed_of(&w->from->blocks, k, w->need);

		expect(w, k + AHEAD);
		if (vv_progress_gives_way(w->progress))
			return VV_COMPACT_LATER;
		if (needed == w->from->blocks.v[k].raw_len || (needed && w->from->blocks.v[k].codec == VV_CODEC_DELTA))
			rc = copy_whole(w, k);
		else if (needed)
			rc = copy_part(w, k);
	}
	return rc ? rc : flush(w);
}

static int keep_digests(struct writer *w)
{
	const struct vv_digests *d = &w->from->digests;
	int rc = 0;

	for (size_t g = 0; rc == 0 && g < d->n_groups; g++)
		for (uint64_t i = 0; rc == 0 && i < d->group[g].count; i++) {
			uint64_t pos = d->group[g].pos + i * d->group[g].chunk;

			if (vv_payload_extent_has(&w->blocks.extent, pos, d->group[g].chunk))
				rc = vv_payload_digest_add(&w->digests, pos, d->group[g].chunk,
							   &d->v[d->group[g].digest + i]);
		}
	return rc;
}

/* Keeps the records of other copies of the needed bytes. */
static int keep_copies(struct writer *w)
{
	struct vv_copies_section all = { 0 };
	int rc = vv_copies_lookup_read(w->from, &all);

	if (rc == VV_EDAMAGED) { /* the bytes themselves matter, not their copies */
		vv_log_warn("%s; where the other copies are is lost", vv_err_last());
		rc = 0;
	}
	for (size_t i = 0; rc == 0 && i < all.n; i++) {
		uint64_t end = all.v[i].pos + all.v[i].len;

		for (size_t k = vv_payload_extent_find(w->need, all.v[i].pos); rc == 0 && k < w->need->n && w->need->v[k].pos < end; k++) {
			const struct vv_extent *x = &w->need->v[k];
			uint64_t from = x->pos > all.v[i].pos ? x->pos : all.v[i].pos, to = x->pos + x->len < end ? x->pos + x->len : end;

			rc = vv_copies_section_add(&w->copies, &(struct vv_copy){ .pos = from, .len = to - from, .rank = all.v[i].rank,
									  .at = all.v[i].at + (from - all.v[i].pos) });
		}
	}
	vv_copies_section_sort(&w->copies);
	vv_copies_section_fini(&all);
	return rc;
}

/* Tables are compressed again if some were: the new layer must be shorter. */
static vv_layer_coder coder_of(const struct vv_frame *f)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (f->section[i].flags & VV_SECTION_CODED)
			return vv_section_encode;
	return NULL;
}

/* A layer of which only the payload is needed has no regions any more. */
static int put_tail(struct writer *w, bool chain, struct vv_buf *out)
{
	vv_layer_coder code = coder_of(&w->from->frame);
	struct vv_head bare = w->from->head;
	struct vv_digest unused;
	uint8_t *head = NULL;
	size_t n = 0;
	int rc;

	if (chain) {
		rc = vv_layer_file_head_bytes(w->from, &head, &n);
		if (rc == 0)
			rc = vv_layer_put_tail_kept(&w->from->frame, head, &w->from->head, &w->blocks, &w->digests, &w->copies, &w->from->eras, code,
						    w->put->written, out);
		vv_mem_free(head);
		return rc;
	}
	bare.parent = 0;
	bare.depth = 0;
	bare.region = NULL;
	bare.n_regions = 0;
	bare.stat = NULL;
	bare.n_stats = 0;
	return vv_layer_put_tail(&bare, &w->blocks, &w->digests, &w->copies, &w->from->eras, code, w->put->written, out, &unused, NULL);
}

/* No larger than the layer's content: most layers are small. */
static int make_buffers(struct writer *w)
{
	size_t raw = 0, all = 0, stored = 0, bound = 0;

	for (size_t k = 0; k < w->from->blocks.n; k++) {
		const struct vv_block *b = &w->from->blocks.v[k];

		raw = raw < b->raw_len ? b->raw_len : raw;
		stored = stored < b->stored_len ? b->stored_len : stored;
		all += b->raw_len;
	}
	w->cap = all < raw + GATHER ? all : raw + GATHER;
	for (const struct vv_codec *const *c = vv_codec_all(); *c; c++)
		bound = bound < (*c)->bound(w->cap) ? (*c)->bound(w->cap) : bound;
	w->raw = vv_mem_new(raw, 1);
	w->stored = vv_mem_new(stored, 1);
	w->gathered = vv_mem_new(w->cap, 1);
	w->coded = vv_mem_new(bound, 1);
	return w->raw && w->stored && w->gathered && w->coded ? 0 : VV_ENOMEM;
}

static int write_layer(struct writer *w, bool chain)
{
	struct vv_buf b = { 0 };
	struct iovec iov;
	int rc;

	vv_layer_put_header(&b);
	iov = (struct iovec){ b.p, b.n };
	rc = vv_buf_check(&b);
	if (rc == 0)
		rc = vv_store_put_write(w->put, &iov, 1);
	if (rc == 0)
		rc = copy_blocks(w);
	if (rc == 0)
		rc = keep_digests(w);
	if (rc == 0)
		rc = keep_copies(w);
	b.n = 0;
	if (rc == 0)
		rc = put_tail(w, chain, &b);
	iov = (struct iovec){ b.p, b.n };
	if (rc == 0)
		rc = vv_store_put_write(w->put, &iov, 1);
	vv_buf_fini(&b);
	return rc;
}

int vv_compact_layer(const struct vv_lineage *lin, const struct vv_reachable_layer *l, const struct vv_progress *progress, uint64_t *size)
{
	struct writer w = { .need = &l->need, .progress = progress };
	int rc = vv_progress_gives_way(progress) ? VV_COMPACT_LATER : vv_layer_file_open(lin, l->layer, VV_LAYER_FILE_HEAD | VV_LAYER_FILE_BLOCKS | VV_LAYER_FILE_DIGESTS, &w.from);

	if (rc == 0)
		rc = make_buffers(&w);
	if (rc == 0)
		rc = vv_store_put_open(lin->store, w.from->object, *size, &w.put);
	if (rc == 0)
		rc = write_layer(&w, l->chain);
	if (rc == 0) {
		*size = w.put->written;
		rc = vv_store_put_commit(w.put);
		w.put = NULL;
	}
	vv_store_put_abort(w.put);
	vv_layer_file_close(w.from);
	vv_payload_blocks_fini(&w.blocks);
	vv_payload_digests_fini(&w.digests);
	vv_copies_section_fini(&w.copies);
	vv_mem_free(w.raw);
	vv_mem_free(w.stored);
	vv_mem_free(w.gathered);
	vv_mem_free(w.coded);
	return rc;
}
