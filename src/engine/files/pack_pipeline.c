/* A ring of slabs (pack_buffer.h). Their tasks read and hash. The caller's thread takes the slabs
 * in order, looks up their chunks, asks the other ranks, and hands new content to the flush. */
#include "engine/files/pack_pipeline.h"
#include "engine/files/recipes.h"
#include "engine/files/pack_buffer.h"
#include "engine/files/parent_files.h"
#include "engine/write/trust.h"
#include "base/err.h"
#include "base/mem.h"
#include <string.h>

enum {
	SLAB = 1 << 20,
	/* large, because chunks end with the slab regardless of their content */
	SLAB_OPAQUE = 4 << 20,
	RING_MAX = 64,         /* slabs in progress, for a single rank */
	RING_MIN = 3,
	/* with so many slabs, for four threads, all may use large pages, which take memory even for
	 * a few bytes */
	RING_WIDE = 10,
	WORD = 8,
	/* a block of an unmerged kind ends with the file if it has so many bytes: the numbers of
	 * one file resemble each other more */
	LEAST_CUT = 96 << 10,
};

struct vv_pack_pipeline {
	struct vv_layer_writer *p;
	struct vv_file_set *file_set;
	struct vv_pack_pipeline_options opt;
	struct vv_pack_buffer **ring;
	/* count slabs from head on are in progress; the next is being filled */
	size_t size, head, count;
	size_t held; /* bytes in these slabs */
	struct vv_file_set_kind *kind; /* of the last placed slab */
	uint32_t file;
	uint64_t in_block;
	/* The beginning of the slab in placement. It enters the payload when it is known whether
	 * the whole slab does, because a whole slab is not copied. */
	struct {
		struct vv_pack_buffer *slab; /* NULL: nothing is held back */
		size_t len;
	} first;
	uint64_t done;
	uint32_t n_asked; /* slabs that were asked about */
	bool ending; /* being drained */
};

static size_t slab_len(const struct vv_pack_pipeline *f, const struct vv_file_set_kind *k)
{
	return vv_file_set_cuts_by_content(f->file_set, k) ? SLAB_OPAQUE : SLAB;
}

/* For a single rank: a slab per thread, the slabs being filled and placed, and a spare. With other
 * ranks: as many as fit in memory, so that rounds are few. Then the number must not depend on
 * threads, because it decides which rank stores which content. */
static size_t ring_size(const struct vv_pack_pipeline *f)
{
	size_t n = 2 * (size_t)vv_pool_width(f->p->v->ctx.pool) + 2, most = f->opt.memory / SLAB_OPAQUE;

	if (f->opt.rounds)
		return f->opt.memory / SLAB + RING_MIN;
	if (f->opt.single_buffer)
		return 1;
	n = n < RING_MAX ? n : RING_MAX;
	return n < most ? n : most > RING_MIN ? most : RING_MIN;
}

int vv_pack_pipeline_open(struct vv_layer_writer *p, struct vv_file_set *c, const struct vv_pack_pipeline_options *opt, struct vv_pack_pipeline **out)
{
	struct vv_pack_pipeline *f = vv_mem_new(1, sizeof(*f));

	if (!f)
		return VV_ENOMEM;
	f->p = p;
	f->file_set = c;
	f->opt = *opt;
	f->size = ring_size(f);
	f->ring = vv_mem_new(f->size, sizeof(*f->ring));
	if (!f->ring) {
		vv_mem_free(f);
		return VV_ENOMEM;
	}
	*out = f;
	return 0;
}

void vv_pack_pipeline_close(struct vv_pack_pipeline *f)
{
	if (!f)
		return;
	for (; f->count; f->count--, f->head = (f->head + 1) % f->size)
		vv_pool_wait(f->p->v->ctx.pool, &f->ring[f->head]->task);
	for (size_t i = 0; i < f->size; i++)
		vv_pack_buffer_free(f->ring[i]);
	vv_mem_free(f->ring);
	vv_mem_free(f);
}

/* ---- lookup of stored content ---------------------------------------------------------------- */

/* Looks up chunks that were not found before; they may be stored by now. A claimed chunk may only
 * refer to content of this epoch: the other ranks were promised that it comes from here. */
static void look_up(struct vv_pack_pipeline *f, struct vv_pack_buffer *s)
{
	struct varve *v = f->p->v;

	for (size_t i = 0; i < s->n_chunks; i++) {
		struct vv_pack_buffer_chunk *c = &s->chunks[i];

		if (c->found != VV_PACK_BUFFER_NEW)
			continue;
		c->entry = vv_index_find(&v->index_cache->index, &c->digest);
		if (c->entry != VV_INDEX_NONE && (!c->claimed || c->entry >= f->p->old_entries) && vv_trust_check_entry(&v->ctx.lineage, v->index_cache, c->entry))
			c->found = VV_PACK_BUFFER_STORED;
		else if (!c->claimed && vv_other_ranks_index_find(v, f->opt.others, &c->digest, &c->layer, &c->pos))
			c->found = VV_PACK_BUFFER_ELSEWHERE;
	}
}

static int claim(struct vv_pack_pipeline *f, struct vv_pack_buffer *s)
{
	int rc = 0;

	look_up(f, s);
	for (size_t i = 0; rc == 0 && i < s->n_chunks; i++) {
		struct vv_pack_buffer_chunk *c = &s->chunks[i];

		c->claimed = c->found == VV_PACK_BUFFER_NEW;
		if (c->claimed)
			rc = vv_rank_dedup_rounds_claim(f->opt.rounds, &c->digest, f->n_asked, &c->claim);
	}
	return rc;
}

static void read_decisions(struct vv_pack_pipeline *f, struct vv_pack_buffer *s)
{
	for (size_t i = 0; i < s->n_chunks; i++) {
		struct vv_pack_buffer_chunk *c = &s->chunks[i];
		enum vv_owner_stream_kind kind = c->claimed ? vv_rank_dedup_rounds_decision(f->opt.rounds, c->claim, &c->layer, &c->pos) : VV_OWNER_STREAM_STORE;

		c->shared = kind != VV_OWNER_STREAM_STORE;
		if (c->shared)
			c->found = kind == VV_OWNER_STREAM_STORED ? VV_PACK_BUFFER_ELSEWHERE : VV_PACK_BUFFER_PENDING;
	}
}

/* Runs a round over the gathered slabs. If more are to come it takes half of them, so that the
 * other half is hashed meanwhile. */
static int ask(struct vv_pack_pipeline *f)
{
	size_t n = f->ending ? f->count : (f->count + 1) / 2;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		struct vv_pack_buffer *s = f->ring[(f->head + i) % f->size];

		vv_pool_wait(f->p->v->ctx.pool, &s->task);
		rc = s->rc ? vv_err_restore(&s->error) : claim(f, s);
		s->asked = true;
		f->n_asked++;
	}
	if (rc == 0)
		rc = vv_rank_dedup_rounds_run(f->opt.rounds);
	for (size_t i = 0; rc == 0 && i < n; i++)
		read_decisions(f, f->ring[(f->head + i) % f->size]);
	return rc ? rc : vv_pack_pipeline_resolve(f);
}

/* ---- placing --------------------------------------------------------------------------------- */

/* Writes a run for each stretch that a stored chunk covers. Runs come in the order of the payload,
 * so a file's runs are sorted only at the end. */
struct placer {
	const struct vv_pack_buffer *slab;
	size_t part;
	size_t used; /* bytes of that part */
};

static int write_run(struct vv_pack_pipeline *f, uint32_t file, struct vv_run run)
{
	struct vv_runs *r = &f->file_set->file[file].runs;
	struct vv_run *last = r->n ? &r->v[r->n - 1] : NULL;
	int rc;

	if (last && last->at + last->len == run.at && last->layer == run.layer && (!run.layer || last->pos + last->len == run.pos)) {
		last->len += run.len;
		return 0;
	}
	rc = vv_mem_room(&r->v, r->n, &r->cap, sizeof(*r->v));
	if (rc == 0)
		r->v[r->n++] = run;
	return rc;
}

/* soon: pos is the number to await. */
static int write_runs(struct vv_pack_pipeline *f, struct placer *pen, size_t len, uint64_t layer, uint64_t pos, bool soon)
{
	size_t done = 0;
	int rc = 0;

	while (rc == 0 && done < len) {
		const struct vv_pack_buffer_part *s = &pen->slab->part[pen->part];
		size_t n = s->len - pen->used < len - done ? s->len - pen->used : len - done;
		struct vv_run run = { .at = s->at + pen->used, .len = n, .layer = layer, .pos = layer ? done : 0 };

		if (soon) {
			rc = vv_rank_dedup_rounds_await(f->opt.rounds, pos, s->file, run);
		} else {
			run.pos += pos;
			rc = write_run(f, s->file, run);
		}
		pen->used += n;
		done += n;
		if (pen->used == s->len) {
			pen->part++;
			pen->used = 0;
		}
	}
	return rc;
}

int vv_pack_pipeline_resolve(struct vv_pack_pipeline *f)
{
	struct vv_run run;
	uint32_t file;
	int rc = 0;

	while (rc == 0 && f->opt.rounds && vv_rank_dedup_rounds_next_resolved(f->opt.rounds, &file, &run))
		rc = write_run(f, file, run);
	return rc;
}

/* Adds chunk by chunk, so that the block writer splits a chunk only if it must. */
static int add_first(struct vv_pack_pipeline *f)
{
	const struct vv_pack_buffer *s = f->first.slab;
	size_t at = 0;
	int rc = 0;

	f->first.slab = NULL;
	for (size_t i = 0; rc == 0 && s && at < f->first.len; at += s->chunks[i++].len)
		rc = vv_block_writer_add(f->p->block_writer, s->bytes + at, s->chunks[i].len, NULL, 0, false);
	return rc;
}

/* Hands over the memory of the slab if all of it is new. The memory that the flush gives in
 * exchange has held at most a block. */
static int add_slab(struct vv_pack_pipeline *f, struct vv_pack_buffer *s)
{
	bool taken = false;
	int rc = 0;

	if (f->first.slab && f->first.len == s->len) {
		vv_pack_buffer_trim(s);
		rc = vv_block_writer_take(f->p->block_writer, &s->bytes, s->cap, s->len, &taken);
	}
	if (rc == 0 && !taken)
		rc = add_first(f);
	f->first.slab = NULL;
	return rc;
}

static int add(struct vv_pack_pipeline *f, const uint8_t *bytes, size_t n)
{
	int rc = 0;

	if (f->first.slab && bytes == f->first.slab->bytes + f->first.len) {
		f->first.len += n;
	} else {
		rc = add_first(f);
		if (rc == 0)
			rc = vv_block_writer_add(f->p->block_writer, bytes, n, NULL, 0, false);
	}
	f->p->pos += n;
	f->in_block += n;
	return rc;
}

/* Untyped words keep the alignment they have in their file, so that the codec finds complete
 * words. */
static int align(struct vv_pack_pipeline *f, const struct vv_pack_buffer_part *s, size_t used)
{
	static const uint8_t zeros[WORD];
	size_t pad = (size_t)(s->at + used - f->in_block) % WORD;

	return pad ? add(f, zeros, pad) : 0;
}

static struct varve_stats *stats_of(struct vv_pack_pipeline *f, const struct vv_pack_buffer *s)
{
	const struct vv_file_set_file *file = &f->file_set->file[s->file];

	return file->other_rank_stats ? file->other_rank_stats : &f->p->st;
}

/* Appends the chunk to the payload, and adds it to the index unless it is known. */
static int append(struct vv_pack_pipeline *f, const struct vv_pack_buffer_chunk *c, const uint8_t *bytes, bool known)
{
	struct vv_layer_writer *p = f->p;
	struct vv_index *x = &p->v->index_cache->index;
	uint32_t e;
	int rc = 0;

	if (f->opt.dedup && c->found != VV_PACK_BUFFER_ZERO && !known) {
		rc = vv_index_find(x, &c->digest) != VV_INDEX_NONE ? vv_index_supersede(x, &c->digest, p->layer, p->pos, &e)
								   : vv_index_add(x, &c->digest, p->layer, p->pos, &e);
		if (rc == 0)
			rc = vv_layer_writer_add_digest(p, &c->digest, c->len, VV_INDEX_NONE);
	}
	return rc ? rc : add(f, bytes, c->len);
}

/* Numbers are predicted from the previous row and plane. A gap of chunks that are stored elsewhere
 * or zero spoils the prediction of up to a plane after it. So a few small gaps do not pay, and the
 * slab is stored in full. */
static bool is_dense(const struct vv_pack_buffer *s)
{
	const struct vv_recipe *r = &s->kind->recipe;
	uint64_t reach = r->n_strides ? (uint64_t)r->stride[r->n_strides - 1] * r->width : 0, known = 0, zeros = 0, harm = 0, since = 0;
	bool hole = false;

	for (size_t i = 0; i < s->n_chunks; i++) {
		const struct vv_pack_buffer_chunk *c = &s->chunks[i];

		*(c->found == VV_PACK_BUFFER_ZERO ? &zeros : c->found ? &known : &since) += c->len;
		if (c->found) {
			hole = true;
		} else if (hole) {
			harm += reach;
			hole = false;
		}
	}
	return since && harm / 3 > known + zeros / 32;
}

/* Refers to a chunk that is stored already, or zero. */
static int refer(struct vv_pack_pipeline *f, const struct vv_pack_buffer *s, struct placer *pen, const struct vv_pack_buffer_chunk *c)
{
	const struct vv_index *x = &f->p->v->index_cache->index;
	struct varve_stats *st = stats_of(f, s);
	bool old = c->found == VV_PACK_BUFFER_STORED ? c->entry < f->p->old_entries : !c->shared;

	if (c->found == VV_PACK_BUFFER_ZERO) {
		st->bytes_zero += c->len;
		s->kind->placed.zero += c->len;
		return write_runs(f, pen, c->len, 0, 0, false);
	}
	*(old ? &st->bytes_dup_time : c->shared ? &st->bytes_dup_ranks : &st->bytes_dup_space) += c->len;
	*(old ? &s->kind->placed.dup_time : &s->kind->placed.dup_space) += c->len;
	if (c->found == VV_PACK_BUFFER_STORED)
		return write_runs(f, pen, c->len, vv_index_layer(x, c->entry), vv_index_pos(x, c->entry), false);
	return write_runs(f, pen, c->len, c->layer, c->pos, c->found == VV_PACK_BUFFER_PENDING);
}

/* A block that is a difference begins and ends with a block of its base. So a reader decodes no
 * block of the base twice. */
static int follow_base(struct vv_pack_pipeline *f, const struct placer *pen)
{
	const struct vv_pack_buffer_part *s = &pen->slab->part[pen->part];
	int rc = 0;

	if (!vv_parent_files_begins_block(f->opt.parent, pen->slab->kind->delta, s->file, s->at + pen->used) || f->in_block < LEAST_CUT)
		return 0;
	if (f->first.len)
		rc = add_first(f);
	f->in_block = 0;
	return rc ? rc : vv_block_writer_push(f->p->block_writer);
}

/* Notes which files the chunk's bytes are of, before they may enter a block. */
static int note_origin(struct vv_pack_pipeline *f, const struct placer *pen, size_t len)
{
	size_t part = pen->part, used = pen->used;
	uint64_t pos = f->p->pos;
	int rc = 0;

	for (size_t n; rc == 0 && len; len -= n) {
		const struct vv_pack_buffer_part *s = &pen->slab->part[part];

		n = s->len - used < len ? s->len - used : len;
		rc = vv_parent_files_note(f->opt.parent, pos, s->file, s->at + used, n);
		pos += n;
		used = 0;
		part++;
	}
	return rc;
}

static int place_chunk(struct vv_pack_pipeline *f, const struct vv_pack_buffer *s, struct placer *pen, struct vv_pack_buffer_chunk *c, const uint8_t *bytes, bool dense)
{
	struct vv_layer_writer *p = f->p;
	bool mine = c->claimed && !c->shared;
	uint64_t pos;
	int rc;

	/* it may equal a chunk just before it */
	if (c->found == VV_PACK_BUFFER_NEW && f->opt.dedup) {
		c->entry = vv_index_find(&p->v->index_cache->index, &c->digest);
		if (c->entry != VV_INDEX_NONE && c->entry >= p->old_entries)
			c->found = VV_PACK_BUFFER_STORED;
	}
	if (c->found && !dense) {
		if (mine)
			vv_rank_dedup_rounds_placed(f->opt.rounds, c->claim, vv_index_pos(&p->v->index_cache->index, c->entry));
		return refer(f, s, pen, c);
	}
	rc = f->opt.parent && s->kind->delta ? follow_base(f, pen) : 0;
	if (rc == 0 && vv_file_set_cuts_by_content(f->file_set, s->kind) && f->opt.dedup)
		rc = align(f, &s->part[pen->part], pen->used);
	pos = p->pos;
	if (mine)
		vv_rank_dedup_rounds_placed(f->opt.rounds, c->claim, pos);
	if (rc == 0 && f->opt.parent && s->kind->delta)
		rc = note_origin(f, pen, c->len);
	if (rc == 0)
		rc = append(f, c, bytes, c->found == VV_PACK_BUFFER_STORED);
	stats_of(f, s)->bytes_new += c->len;
	return rc ? rc : write_runs(f, pen, c->len, p->layer, pos, false);
}

/* A new kind begins new blocks with its own compression, unless both kinds are joint. A new file
 * does so too, if its kind is not merged and the block is large enough. */
static int begin_block(struct vv_pack_pipeline *f, struct vv_pack_buffer *s)
{
	struct vv_file_set_kind *k = s->kind;
	int rc = 0;

	if (f->kind != k && !(f->kind && f->kind->joint && k->joint)) {
		rc = vv_block_writer_set_codec(f->p->block_writer, vv_recipes_codec(k), &k->recipe, vv_recipes_block(k));
		vv_block_writer_set_delta(f->p->block_writer, k->delta);
		f->in_block = 0;
	} else if (f->file != s->file && !k->merged && (f->in_block >= LEAST_CUT || k->recipe.record > 1)) {
		rc = vv_block_writer_push(f->p->block_writer);
		f->in_block = 0;
	}
	f->kind = k;
	f->file = s->file;
	return rc;
}

/* Records a payload range of a kind. */
static int note_range(struct vv_file_set_kind *k, uint64_t from, uint64_t to)
{
	struct vv_file_set_range *last = k->placed.n_ranges ? &k->placed.range[k->placed.n_ranges - 1] : NULL;
	int rc = 0;

	if (last && last->to == from) {
		last->to = to;
	} else if (from < to) {
		rc = vv_mem_room(&k->placed.range, k->placed.n_ranges, &k->placed.ranges_cap, sizeof(*k->placed.range));
		if (rc == 0)
			k->placed.range[k->placed.n_ranges++] = (struct vv_file_set_range){ from, to };
	}
	return rc;
}

static int place(struct vv_pack_pipeline *f, struct vv_pack_buffer *s)
{
	struct placer pen = { .slab = s };
	uint64_t from = f->p->pos;
	size_t at = 0;
	bool dense;
	int rc = s->rc ? vv_err_restore(&s->error) : begin_block(f, s);

	if (rc)
		return rc;
	if (f->opt.dedup)
		look_up(f, s);
	dense = !f->opt.dedup || is_dense(s);
	f->first.slab = s;
	f->first.len = 0;
	for (size_t i = 0; rc == 0 && i < s->n_chunks; at += s->chunks[i++].len)
		rc = place_chunk(f, s, &pen, &s->chunks[i], s->bytes + at, dense);
	if (rc == 0)
		rc = add_slab(f, s);
	if (rc == 0)
		rc = note_range(s->kind, from, f->p->pos);
	f->done += s->len;
	vv_progress_report(&f->opt.progress, f->done < f->file_set->bytes ? f->done : f->file_set->bytes, f->file_set->bytes);
	return rc;
}

static int place_oldest(struct vv_pack_pipeline *f)
{
	struct vv_pack_buffer *s = f->ring[f->head];
	int rc = f->opt.rounds && !s->asked ? ask(f) : 0;

	vv_pool_wait(f->p->v->ctx.pool, &s->task);
	f->head = (f->head + 1) % f->size;
	f->count--;
	if (rc == 0)
		rc = vv_file_set_check_stop(f->file_set);
	if (rc == 0)
		rc = place(f, s);
	f->held -= s->len;
	if (f->opt.rounds && s->len > SLAB) /* there may be many slabs */
		vv_mem_discard(s->bytes + SLAB, s->len - SLAB);
	s->asked = false;
	s->n_parts = 0;
	s->len = 0;
	return rc;
}

/* ---- filling --------------------------------------------------------------------------------- */

static struct vv_pack_buffer *filling(struct vv_pack_pipeline *f)
{
	size_t i = (f->head + f->count) % f->size;
	bool wide = f->size <= RING_WIDE && !f->opt.small_pages;

	if (!f->ring[i] && vv_pack_buffer_new(f->file_set, f->opt.chunk, f->opt.dedup ? f->p->v->ctx.digest : NULL, vv_block_writer_slab(f->opt.block), wide, &f->ring[i]) < 0)
		return NULL;
	return f->ring[i];
}

static int send(struct vv_pack_pipeline *f)
{
	struct vv_pack_buffer *s = filling(f);
	int rc = 0;

	if (!s)
		return VV_ENOMEM;
	if (s->len == 0)
		return 0;
	vv_pool_submit(f->p->v->ctx.pool, &s->task);
	f->count++;
	f->held += s->len;
	while (rc == 0 && (f->count == f->size || (f->opt.rounds && f->count && f->held + SLAB_OPAQUE > f->opt.memory)))
		rc = place_oldest(f); /* the next slab to fill is always free */
	return rc;
}

static int fill(struct vv_pack_pipeline *f, uint32_t kind, uint32_t file, uint64_t at, uint64_t len)
{
	struct vv_file_set_kind *k = &f->file_set->kind[kind];
	int rc = 0;

	while (rc == 0 && len) {
		struct vv_pack_buffer *s = filling(f);
		size_t n;

		if (!s)
			return VV_ENOMEM;
		if (s->len && (s->kind != k || (s->file != file && !k->small) || s->len == slab_len(f, k))) {
			rc = send(f);
			continue;
		}
		s->kind = k;
		s->file = file;
		n = slab_len(f, k) - s->len < len ? slab_len(f, k) - s->len : (size_t)len;
		rc = vv_pack_buffer_add(s, (struct vv_pack_buffer_part){ file, at, n });
		at += n;
		len -= n;
	}
	return rc;
}

/* Skips a hole: zeros that need not be read. */
static int pass_hole(struct vv_pack_pipeline *f, uint32_t kind, uint32_t file, uint64_t at, uint64_t len)
{
	f->p->st.bytes_zero += len;
	f->file_set->kind[kind].placed.zero += len;
	f->done += len;
	return write_run(f, file, (struct vv_run){ .at = at, .len = len });
}

/* Holes are skipped in multiples of a slab, so that the data between them is cut as if the holes
 * had been read. */
int vv_pack_pipeline_add(struct vv_pack_pipeline *f, uint32_t kind, uint32_t file, uint64_t at, uint64_t len)
{
	int rc = 0;

	for (uint64_t end = at + len, hole, n; rc == 0 && at < end; at += n) {
		hole = 0;
		n = end - at;
		if (f->opt.dedup)
			vv_file_set_find_hole(f->file_set, file, at, end - at, &hole, &n);
		if (hole >= SLAB || hole == end - at) {
			n = hole == end - at ? hole : hole / SLAB * SLAB;
			rc = pass_hole(f, kind, file, at, n);
			continue;
		}
		n = (hole + n + SLAB - 1) / SLAB * SLAB;
		n = n < end - at ? n : end - at;
		rc = fill(f, kind, file, at, n);
	}
	return rc;
}

int vv_pack_pipeline_drain(struct vv_pack_pipeline *f)
{
	int rc;

	f->ending = true;
	rc = send(f);
	while (rc == 0 && f->count)
		rc = place_oldest(f);
	f->ending = false;
	f->kind = NULL; /* other bytes may follow before there is more of this kind */
	return rc;
}

int vv_pack_pipeline_bytes(struct vv_pack_pipeline *f, const uint8_t *bytes, size_t n, struct vv_runs *out)
{
	struct vv_layer_writer *p = f->p;
	int rc = 0;

	for (size_t at = 0, len; rc == 0 && at < n; at += len) {
		struct vv_pack_buffer_chunk c = { .found = VV_PACK_BUFFER_NEW };
		uint64_t pos = p->pos;

		len = n - at < f->opt.chunk ? n - at : f->opt.chunk;
		c.len = (uint32_t)len;
		p->v->ctx.digest(bytes + at, len, &c.digest);
		c.entry = vv_index_find(&p->v->index_cache->index, &c.digest);
		if (c.entry != VV_INDEX_NONE && vv_trust_check_entry(&p->v->ctx.lineage, p->v->index_cache, c.entry)) {
			*(c.entry < p->old_entries ? &p->st.bytes_dup_time : &p->st.bytes_dup_space) += len;
			rc = vv_run_add(out, (struct vv_run){ at, len, vv_index_layer(&p->v->index_cache->index, c.entry),
							      vv_index_pos(&p->v->index_cache->index, c.entry) });
			continue;
		}
		rc = append(f, &c, bytes + at, false);
		p->st.bytes_new += len;
		if (rc == 0)
			rc = vv_run_add(out, (struct vv_run){ at, len, p->layer, pos });
	}
	return rc;
}
