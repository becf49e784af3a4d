/* A ring of slabs. A slab is a stretch of bytes of one kind and one file, gathered from as many places of it as need be, and cut into
 * chunks: of one size where the bytes are typed, by their content where nothing is known of them. Tasks read and hash; the caller's thread
 * takes the slabs in order, looks their chunks up, and hands what is new to the flush. */
#include "engine/feed.h"
#include "engine/kinds.h"
#include "base/err.h"
#include "base/mem.h"
#include <string.h>

enum {
	SLAB = 1 << 20,
	SLAB_OPAQUE = 4 << 20, /* chunks end with it, whatever their content: so it is large */
	RING_MAX = 64,
	RING_MIN = 3,
	WORD = 8,
	LEAST_CUT = 256 << 10, /* a block of what is not merged ends with the file if it has so much */
};

struct stretch {
	uint32_t file;
	uint64_t at;
	size_t len;
};

struct chunk {
	struct vv_digest digest;
	uint32_t len;
	bool zero;
	uint32_t entry; /* of the index, or VV_INDEX_NONE */
};

struct slab {
	struct vv_task task;
	struct vv_feed *feed;
	struct vv_cargo_kind *kind;
	uint32_t file;
	struct stretch *part;
	size_t n_parts, parts_cap;
	uint8_t *bytes;
	size_t len, cap;
	struct chunk *chunk;
	size_t n_chunks, chunks_cap;
	int rc;
	struct vv_err_state error;
};

struct vv_feed {
	struct vv_pass *p;
	struct vv_cargo *cargo;
	struct vv_feed_options opt;
	struct slab *ring[RING_MAX];
	size_t size, head, count; /* count slabs from head on are under way; the next is being filled */
	struct vv_cargo_kind *kind; /* of the slab placed last */
	uint32_t file;
	uint64_t in_block;
	uint64_t done;
};

static size_t slab_len(const struct vv_feed *f, const struct vv_cargo_kind *k)
{
	return vv_cargo_is_flowing(f->cargo, k) ? SLAB_OPAQUE : SLAB;
}

int vv_feed_open(struct vv_pass *p, struct vv_cargo *c, const struct vv_feed_options *opt, struct vv_feed **out)
{
	struct vv_feed *f = vv_mem_new(1, sizeof(*f));

	if (!f)
		return VV_ENOMEM;
	f->p = p;
	f->cargo = c;
	f->opt = *opt;
	f->size = 2 * (size_t)vv_pool_width(p->v->pool) + 2;
	f->size = f->size < RING_MAX ? f->size : RING_MAX;
	while (f->size > RING_MIN && f->size * SLAB_OPAQUE > opt->memory)
		f->size--;
	*out = f;
	return 0;
}

static void free_slab(struct slab *s)
{
	if (!s)
		return;
	vv_mem_unmap(s->bytes, s->cap);
	vv_mem_free(s->part);
	vv_mem_free(s->chunk);
	vv_mem_free(s);
}

void vv_feed_close(struct vv_feed *f)
{
	if (!f)
		return;
	for (; f->count; f->count--, f->head = (f->head + 1) % f->size)
		vv_pool_wait(f->p->v->pool, &f->ring[f->head]->task);
	for (size_t i = 0; i < f->size; i++)
		free_slab(f->ring[i]);
	vv_mem_free(f);
}

/* ---- tasks --------------------------------------------------------------------------------------------------------------- */

static int read_parts(struct slab *s)
{
	size_t at = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->n_parts; at += s->part[i++].len)
		rc = vv_cargo_read(s->feed->cargo, s->part[i].file, s->part[i].at, s->bytes + at, s->part[i].len);
	return rc;
}

static bool is_zero(const uint8_t *p, size_t n)
{
	return p[0] == 0 && (n == 1 || memcmp(p, p + 1, n - 1) == 0);
}

static int cut(struct slab *s)
{
	const struct vv_feed *f = s->feed;
	size_t at = 0;

	s->n_chunks = 0;
	while (at < s->len) {
		size_t n = vv_cargo_cut(f->cargo, s->kind, f->opt.chunk, s->bytes + at, s->len - at);
		struct chunk *c;

		if (vv_mem_room(&s->chunk, s->n_chunks, &s->chunks_cap, sizeof(*s->chunk)) < 0)
			return VV_ENOMEM;
		c = &s->chunk[s->n_chunks++];
		*c = (struct chunk){ .len = (uint32_t)n, .entry = VV_INDEX_NONE, .zero = f->opt.dedup && is_zero(s->bytes + at, n) };
		if (f->opt.dedup && !c->zero)
			f->p->v->digest(s->bytes + at, n, &c->digest);
		at += n;
	}
	return 0;
}

static void run_slab(struct vv_task *t)
{
	struct slab *s = (struct slab *)t;

	s->rc = read_parts(s);
	if (s->rc == 0)
		s->rc = cut(s);
	if (s->rc)
		vv_err_save(s->rc, &s->error);
}

/* ---- placing --------------------------------------------------------------------------------------------------------------- */

/* The bytes of a chunk are somewhere: a run for each stretch that it covers. They come in the order of the payload, so a file's runs are put
 * in order only in the end. */
struct pen {
	const struct slab *slab;
	size_t part;
	size_t used; /* of that part */
};

static int write_run(struct vv_feed *f, const struct stretch *s, struct vv_run run)
{
	struct vv_runs *r = &f->cargo->file[s->file].runs;
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

static int write_runs(struct vv_feed *f, struct pen *pen, size_t len, uint64_t layer, uint64_t pos)
{
	int rc = 0;

	while (rc == 0 && len) {
		const struct stretch *s = &pen->slab->part[pen->part];
		size_t n = s->len - pen->used < len ? s->len - pen->used : len;

		rc = write_run(f, s, (struct vv_run){ .at = s->at + pen->used, .len = n, .layer = layer, .pos = layer ? pos : 0 });
		pen->used += n;
		pos += n;
		len -= n;
		if (pen->used == s->len) {
			pen->part++;
			pen->used = 0;
		}
	}
	return rc;
}

/* Words of which nothing is known lie in their block as they lie in their file: who codes them finds them whole. */
static int align(struct vv_feed *f, const struct stretch *s, size_t used)
{
	static const uint8_t zeros[WORD];
	size_t pad = (size_t)(s->at + used - f->in_block) % WORD;
	int rc = pad ? vv_flush_add(f->p->flush, zeros, pad, NULL, 0) : 0;

	f->p->pos += pad;
	f->in_block += pad;
	return rc;
}

/* Its bytes go into the payload; the index learns of them unless it has such content already. */
static int append(struct vv_feed *f, const struct chunk *c, const uint8_t *bytes, bool known)
{
	struct vv_pass *p = f->p;
	struct vv_index *x = &p->v->history.index;
	uint32_t e;
	int rc = 0;

	if (f->opt.dedup && !c->zero && !known) {
		rc = vv_index_find(x, &c->digest) != VV_INDEX_NONE ? vv_index_supersede(x, &c->digest, p->layer, p->pos, &e)
								   : vv_index_add(x, &c->digest, p->layer, p->pos, &e);
		if (rc == 0)
			rc = vv_payload_digest_add(&p->digests, p->pos, c->len, &c->digest);
	}
	if (rc == 0)
		rc = vv_flush_add(p->flush, bytes, c->len, NULL, 0);
	p->pos += c->len;
	p->st.bytes_new += c->len;
	f->in_block += c->len;
	return rc;
}

/* Numbers are predicted from those in the row and the plane before. A hole in between, of chunks that are stored elsewhere or zero, spoils the
 * prediction of as much as a plane behind it: so few small gaps are not worth it, and the slab is stored whole. */
static bool is_dense(struct vv_feed *f, struct slab *s)
{
	const struct vv_recipe *r = &s->kind->recipe;
	const struct vv_index *x = &f->p->v->history.index;
	uint64_t reach = r->n_strides ? (uint64_t)r->stride[r->n_strides - 1] * r->width : 0, known = 0, zeros = 0, harm = 0, since = 0;
	uint64_t layer, pos;
	bool hole = false;

	for (size_t i = 0; i < s->n_chunks; i++) {
		struct chunk *c = &s->chunk[i];

		bool there;

		c->entry = c->zero ? VV_INDEX_NONE : vv_index_find(x, &c->digest);
		there = c->entry != VV_INDEX_NONE || (!c->zero && f->opt.others->n && vv_others_find(f->p->v, f->opt.others, &c->digest, &layer, &pos));
		*(c->zero ? &zeros : there ? &known : &since) += c->len;
		if (c->zero || there) {
			hole = true;
		} else if (hole) {
			harm += reach;
			hole = false;
		}
	}
	return since && harm / 3 > known + zeros / 32;
}

static int place_chunk(struct vv_feed *f, const struct slab *s, struct pen *pen, const struct chunk *c, const uint8_t *bytes, bool dense)
{
	struct vv_pass *p = f->p;
	struct varve *v = p->v;
	uint32_t e = c->entry;
	uint64_t layer, pos;
	bool known;
	int rc;

	if (c->zero && !dense) {
		p->st.bytes_zero += c->len;
		s->kind->zero += c->len;
		return write_runs(f, pen, c->len, 0, 0);
	}
	if (f->opt.dedup && !c->zero && e == VV_INDEX_NONE) /* it may be the twin of one just before */
		e = vv_index_find(&v->history.index, &c->digest);
	known = e != VV_INDEX_NONE && vv_trust_entry(&v->lineage, &v->history, e);
	if (known && !dense) {
		*(e < p->old_entries ? &p->st.bytes_dup_time : &p->st.bytes_dup_space) += c->len;
		*(e < p->old_entries ? &s->kind->dup_time : &s->kind->dup_space) += c->len;
		return write_runs(f, pen, c->len, vv_index_layer(&v->history.index, e), vv_index_pos(&v->history.index, e));
	}
	if (f->opt.dedup && !c->zero && !known && !dense && vv_others_find(v, f->opt.others, &c->digest, &layer, &pos)) {
		p->st.bytes_dup_time += c->len;
		s->kind->dup_time += c->len;
		return write_runs(f, pen, c->len, layer, pos);
	}
	rc = vv_cargo_is_flowing(f->cargo, s->kind) && f->opt.dedup ? align(f, &s->part[pen->part], pen->used) : 0;
	pos = p->pos;
	if (rc == 0)
		rc = append(f, c, bytes, known);
	return rc ? rc : write_runs(f, pen, c->len, p->layer, pos);
}

/* A new kind begins new blocks, coded its own way, unless both are of those that go together; so does a new file, if its kind is not merged and the block has become large enough. */
static int turn(struct vv_feed *f, struct slab *s)
{
	struct vv_cargo_kind *k = s->kind;
	int rc = 0;

	if (f->kind != k && !(f->kind && f->kind->joint && k->joint)) {
		rc = vv_flush_turn(f->p->flush, vv_kinds_codec(k), &k->recipe, vv_kinds_block(k));
		f->in_block = 0;
	} else if (f->file != s->file && !k->merged && (f->in_block >= LEAST_CUT || k->recipe.record > 1)) {
		rc = vv_flush_push(f->p->flush);
		f->in_block = 0;
	}
	f->kind = k;
	f->file = s->file;
	return rc;
}

/* Where bytes of a kind came to lie. */
static int note_range(struct vv_cargo_kind *k, uint64_t from, uint64_t to)
{
	struct vv_cargo_range *last = k->n_ranges ? &k->range[k->n_ranges - 1] : NULL;
	int rc = 0;

	if (last && last->to == from) {
		last->to = to;
	} else if (from < to) {
		rc = vv_mem_room(&k->range, k->n_ranges, &k->ranges_cap, sizeof(*k->range));
		if (rc == 0)
			k->range[k->n_ranges++] = (struct vv_cargo_range){ from, to };
	}
	return rc;
}

static int place(struct vv_feed *f, struct slab *s)
{
	struct pen pen = { .slab = s };
	uint64_t from = f->p->pos;
	size_t at = 0;
	bool dense;
	int rc = s->rc ? vv_err_restore(&s->error) : turn(f, s);

	if (rc)
		return rc;
	dense = !f->opt.dedup || is_dense(f, s);
	for (size_t i = 0; rc == 0 && i < s->n_chunks; at += s->chunk[i++].len)
		rc = place_chunk(f, s, &pen, &s->chunk[i], s->bytes + at, dense);
	if (rc == 0)
		rc = note_range(s->kind, from, f->p->pos);
	f->done += s->len;
	vv_progress_tell(&f->opt.progress, f->done, f->cargo->bytes);
	return rc;
}

static int place_oldest(struct vv_feed *f)
{
	struct slab *s = f->ring[f->head];
	int rc;

	vv_pool_wait(f->p->v->pool, &s->task);
	f->head = (f->head + 1) % f->size;
	f->count--;
	rc = place(f, s);
	s->n_parts = 0;
	s->len = 0;
	return rc;
}

/* ---- filling --------------------------------------------------------------------------------------------------------------- */

static struct slab *filling(struct vv_feed *f)
{
	size_t i = (f->head + f->count) % f->size;

	if (!f->ring[i])
		f->ring[i] = vv_mem_new(1, sizeof(struct slab));
	if (f->ring[i] && !f->ring[i]->bytes) {
		f->ring[i]->cap = SLAB_OPAQUE;
		f->ring[i]->bytes = vv_mem_map(SLAB_OPAQUE);
	}
	return f->ring[i] && f->ring[i]->bytes ? f->ring[i] : NULL;
}

static int send(struct vv_feed *f)
{
	struct slab *s = filling(f);

	if (!s)
		return VV_ENOMEM;
	if (s->len == 0)
		return 0;
	s->feed = f;
	s->task.run = run_slab;
	vv_pool_submit(f->p->v->pool, &s->task);
	f->count++;
	return f->count == f->size ? place_oldest(f) : 0; /* the next to be filled is always free */
}

static int add_part(struct slab *s, struct stretch x)
{
	struct stretch *last = s->n_parts ? &s->part[s->n_parts - 1] : NULL;
	int rc = 0;

	if (last && last->file == x.file && last->at + last->len == x.at) {
		last->len += x.len;
	} else {
		rc = vv_mem_room(&s->part, s->n_parts, &s->parts_cap, sizeof(*s->part));
		if (rc == 0)
			s->part[s->n_parts++] = x;
	}
	return rc;
}

int vv_feed_add(struct vv_feed *f, uint32_t kind, uint32_t file, uint64_t at, uint64_t len)
{
	struct vv_cargo_kind *k = &f->cargo->kind[kind];
	int rc = 0;

	while (rc == 0 && len) {
		struct slab *s = filling(f);
		size_t n;

		if (!s)
			return VV_ENOMEM;
		if (s->len && (s->kind != k || s->file != file || s->len == slab_len(f, k))) {
			rc = send(f);
			continue;
		}
		s->kind = k;
		s->file = file;
		n = slab_len(f, k) - s->len < len ? slab_len(f, k) - s->len : (size_t)len;
		rc = add_part(s, (struct stretch){ file, at, n });
		s->len += n;
		at += n;
		len -= n;
	}
	return rc;
}

int vv_feed_drain(struct vv_feed *f)
{
	int rc = send(f);

	while (rc == 0 && f->count)
		rc = place_oldest(f);
	f->kind = NULL; /* kinds may come to lie elsewhere before there is more */
	return rc;
}

int vv_feed_bytes(struct vv_feed *f, const uint8_t *bytes, size_t n, struct vv_runs *out)
{
	struct vv_pass *p = f->p;
	int rc = 0;

	for (size_t at = 0, len; rc == 0 && at < n; at += len) {
		struct chunk c = { .entry = VV_INDEX_NONE };
		uint64_t pos = p->pos;

		len = n - at < f->opt.chunk ? n - at : f->opt.chunk;
		c.len = (uint32_t)len;
		p->v->digest(bytes + at, len, &c.digest);
		c.entry = vv_index_find(&p->v->history.index, &c.digest);
		if (c.entry != VV_INDEX_NONE && vv_trust_entry(&p->v->lineage, &p->v->history, c.entry)) {
			*(c.entry < p->old_entries ? &p->st.bytes_dup_time : &p->st.bytes_dup_space) += len;
			rc = vv_run_add(out, (struct vv_run){ at, len, vv_index_layer(&p->v->history.index, c.entry),
							      vv_index_pos(&p->v->history.index, c.entry) });
			continue;
		}
		rc = append(f, &c, bytes + at, false);
		if (rc == 0)
			rc = vv_run_add(out, (struct vv_run){ at, len, p->layer, pos });
	}
	return rc;
}
