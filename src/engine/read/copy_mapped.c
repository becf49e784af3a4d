#include "engine/read/copy_mapped.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include "track/write_protect.h"
#include <stddef.h>
#include <string.h>

enum {
	LANES = 2,
	/* of runs: they may contain whole blocks, and the cost of finding those is negligible */
	LONG = 128 << 10,
	COPIES = 256, /* pending copies: so that prefetched data arrive before their turn */
	PARTS = 64, /* the same for parts of chunks: all those of a page, in small grains */
	WINDOW = 1 << 20, /* of a region: the layers are overlaid in it while it is in the cache */
	SOON = 4, /* copies: their digests are prefetched */
	SMALL = 256, /* bytes of a piece whose destination is prefetched before it is written, */
	FAR = 8, /* this many pieces ahead */
	GOOD = 1,
	BAD = 2,
};

struct copy_mapped { /* of whole chunks, or of a whole block */
	const uint8_t *from;
	struct vv_run run; /* the run that contains it */
	const struct vv_digest *digest; /* of the first chunk */
	const struct vv_block *whole;   /* if it has a check of its own; else NULL */
	uint32_t chunk;
};

struct copy_mapped_part { /* of a chunk that was found good */
	const uint8_t *from;
	uint64_t at;
	uint64_t len;
};

struct copy_mapped_known { /* a chunk that was found good */
	uint64_t layer; /* 0: none */
	uint64_t lo, hi; /* positions */
	const uint8_t *bytes;
};

struct copy_mapped_walk {
	const struct vv_open_layers *warm;
	const struct vv_want *want;
	uint64_t at, end;
	size_t run; /* current run */
	bool zeros;
	bool cold; /* nothing is copied */
	bool begun;
	uint64_t written; /* nothing of the stretch from here on has been written yet */
	/* the last chunk that was copied in full, beyond its wanted part; length 0: none */
	struct vv_run laid;
	bool in_a_row; /* copies are sequential: none is deferred */
	/* The pieces overwrite others: none may be copied beyond its wanted part, and none is
	 * deferred. */
	bool over;
	struct copy_mapped_known known; /* the chunk of the last part */
	struct vv_pending_list *left;
	int rc;
	uint64_t got; /* bytes, copied or left */
	size_t n_copies, n_parts;
	struct copy_mapped copy[COPIES];
	struct copy_mapped_part part[PARTS];
	/* the last used extents of the layers' lists */
	_Alignas(64) struct vv_open_layers_extent listed[VV_OPEN_LAYERS_LAYERS];
	/* and those that were searched for */
	struct vv_open_layers_extent lane[VV_OPEN_LAYERS_LAYERS][LANES];
};

static uint8_t *place(const struct copy_mapped_walk *k, uint64_t at)
{
	return k->want->to + (at - k->want->at);
}

static void note_written(struct copy_mapped_walk *k, uint64_t end)
{
	k->written = end > k->written ? end : k->written;
}

static void leave(struct copy_mapped_walk *k, const struct vv_run *r)
{
	int rc = vv_pending_add(k->left, (struct vv_pending_piece){ r->layer, r->pos, r->len, place(k, r->at) });

	k->rc = k->rc ? k->rc : rc;
}

/* Prefetches the following bytes meanwhile. */
static bool copy_chunks(uint8_t *to, const struct copy_mapped *c, const uint8_t *after)
{
	const struct vv_digest *want = c->digest;

	for (uint64_t at = 0; at < c->run.len; at += c->chunk, want++) {
		const uint8_t *next = at + c->chunk < c->run.len ? c->from + at + c->chunk : after;

		if (!vv_digest_fits_copy(to + at, c->from + at, c->chunk, next, want))
			return false;
	}
	return true;
}

static void copy_all(struct copy_mapped_walk *k)
{
	for (size_t i = 0; i < k->n_copies; i++) {
		const struct copy_mapped *c = &k->copy[i];
		uint8_t *to = place(k, c->run.at);
		bool ok;

		if (i + SOON < k->n_copies)
			__builtin_prefetch(c[SOON].digest);
		ok = c->whole ? vv_digest_check_copy(to, c->from, c->run.len) == c->whole->check :
				copy_chunks(to, c, i + 1 < k->n_copies ? c[1].from : c->from + c->run.len);

		note_written(k, c->run.at + c->run.len);
		if (!ok)
			leave(k, &c->run);
	}
	k->n_copies = 0;
}

/* Most parts are as short as a grain. */
static void copy_part(uint8_t *to, const uint8_t *from, size_t n)
{
	enum { STEP = 64 };

	for (; n >= STEP; n -= STEP, to += STEP, from += STEP)
		memcpy(to, from, STEP);
	if (n)
		memcpy(to, from, n);
}

/* In any order: deferred pieces do not overlap each other. Chunks that were copied in full, which
 * they may overwrite, are complete. */
static void flush(struct copy_mapped_walk *k)
{
	copy_all(k);
	for (size_t i = 0; i < k->n_parts; i++) {
		const struct copy_mapped_part *p = &k->part[i];

		copy_part(place(k, p->at), p->from, p->len);
		note_written(k, p->at + p->len);
	}
	k->n_parts = 0;
}

static void push_copy(struct copy_mapped_walk *k, struct copy_mapped c)
{
	k->copy[k->n_copies++] = c;
	if (k->in_a_row)
		copy_all(k);
	else if (k->n_copies == COPIES)
		flush(k);
}

static void push_part(struct copy_mapped_walk *k, struct copy_mapped_part p)
{
	__builtin_prefetch(p.from);
	k->part[k->n_parts++] = p;
	if (k->n_parts == PARTS)
		flush(k);
}

static const struct vv_open_layers_extent *find_listed(struct copy_mapped_walk *k, size_t layer, uint64_t pos)
{
	const struct vv_open_layers_extent *v = k->warm->extent[layer];
	size_t i;

	VV_SEARCH(i, 0, k->warm->n_extents[layer], v[i].hi <= pos);
	if (i == k->warm->n_extents[layer] || v[i].lo > pos)
		return NULL;
	k->listed[layer] = v[i];
	return &k->listed[layer];
}

/* The extent of one block. Payloads are mostly written in one or two passes over the memory. */
static const struct vv_open_layers_extent *find_block(struct copy_mapped_walk *k, size_t layer, uint64_t pos)
{
	struct vv_open_layers_extent *l = k->lane[layer];
	struct vv_plain_extent at;

	for (int i = 0; i < LANES; i++)
		if (pos >= l[i].lo && pos < l[i].hi)
			return &l[i];
	if (!vv_plain_extent_find(k->warm->file[layer], pos, &at))
		return NULL;
	memmove(l + 1, l, (LANES - 1) * sizeof(*l));
	l[0] = vv_open_layers_get_extent(k->warm, layer, &at);
	return &l[0];
}

/* The extent for a run of `len` bytes. */
static const struct vv_open_layers_extent *find_extent(struct copy_mapped_walk *k, size_t layer, uint64_t pos, uint64_t len)
{
	const struct vv_open_layers_extent *l = &k->listed[layer];

	if (len >= LONG)
		return find_block(k, layer, pos);
	if (pos >= l->lo && pos < l->hi)
		return l;
	return k->warm->n_extents[layer] ? find_listed(k, layer, pos) : find_block(k, layer, pos);
}

/* The number of bytes of a chunk, or a block, that the runs use at its destination; 0 if they do
 * not cover the destination. */
static uint64_t wanted_of(const struct copy_mapped_walk *k, const struct vv_run *chunk)
{
	const struct vv_run *v = k->want->runs->v;
	uint64_t done = chunk->at, stop = done + chunk->len, ours = 0;
	size_t i = k->run;

	while (i > 0 && v[i].at > done)
		i--;
	for (; done < stop; i++) {
		uint64_t end = i < k->want->runs->n ? v[i].at + v[i].len : 0;

		if (end <= done || v[i].at > done)
			return 0;
		end = end < stop ? end : stop;
		if (v[i].layer == chunk->layer && v[i].pos - v[i].at == chunk->pos - chunk->at)
			ours += end - done;
		done = end;
	}
	return ours;
}

/* Chunk n of the extent, of which a part is wanted. */
static struct vv_run around(const struct vv_open_layers_extent *l, const struct vv_run *part, uint32_t n)
{
	uint64_t pos = l->first + (uint64_t)n * l->chunk;

	return (struct vv_run){ part->at - (part->pos - pos), l->chunk, part->layer, pos };
}

/* A chunk that is wanted except for a few grains is copied in full and hashed in the same pass. The
 * grains overwrite it: none of them has been written yet. */
static bool copy_whole_chunk(struct copy_mapped_walk *k, const struct vv_open_layers_extent *l, const struct vv_run *part, uint32_t n)
{
	const struct vv_run chunk = around(l, part, n);
	const uint8_t *from = l->bytes + (chunk.pos - l->lo);
	bool ok;

	if (!k->warm->all || part->at < k->written + (part->pos - chunk.pos) || chunk.at + chunk.len > k->end ||
	    2 * wanted_of(k, &chunk) <= chunk.len)
		return false;
	ok = vv_digest_fits_copy(place(k, chunk.at), from, l->chunk, from + l->chunk, &l->digest[n]);
	atomic_store_explicit(&l->state[n], ok ? GOOD : BAD, memory_order_relaxed);
	note_written(k, chunk.at + chunk.len);
	if (ok)
		k->laid = chunk;
	return ok;
}

/* Checks a chunk only once: other threads may want other parts of it. */
static bool is_good(const struct vv_open_layers_extent *l, uint32_t n)
{
	unsigned char state = atomic_load_explicit(&l->state[n], memory_order_relaxed);

	if (!state) {
		state = vv_digest_fits(l->bytes + (l->first + (uint64_t)n * l->chunk - l->lo), l->chunk, &l->digest[n]) ? GOOD : BAD;
		atomic_store_explicit(&l->state[n], state, memory_order_relaxed);
	}
	return state == GOOD;
}

/* Takes a part of chunk n of the extent. */
static void take_part(struct copy_mapped_walk *k, const struct vv_open_layers_extent *l, const struct vv_run *part, uint32_t n)
{
	uint64_t begin = l->first + (uint64_t)n * l->chunk;

	/* the rest of the chunk is elsewhere, or removed */
	if (!l->state || begin < l->lo || begin + l->chunk > l->hi) {
		leave(k, part);
		return;
	}
	if (!k->over && !atomic_load_explicit(&l->state[n], memory_order_relaxed) && copy_whole_chunk(k, l, part, n))
		return;
	if (!is_good(l, n)) {
		leave(k, part);
	} else if (k->over) {
		k->known = (struct copy_mapped_known){ part->layer, begin, begin + l->chunk, l->bytes + (begin - l->lo) };
		copy_part(place(k, part->at), l->bytes + (part->pos - l->lo), part->len);
	} else {
		push_part(k, (struct copy_mapped_part){ l->bytes + (part->pos - l->lo), part->at, part->len });
	}
}

static bool is_laid(const struct copy_mapped_walk *k, const struct vv_run *r)
{
	return r->at + r->len <= k->laid.at + k->laid.len && r->at >= k->laid.at && r->layer == k->laid.layer &&
	       r->pos - r->at == k->laid.pos - k->laid.at;
}

/* Takes whole chunks, and the parts of chunks before and after them. */
static void take_chunks(struct copy_mapped_walk *k, const struct vv_open_layers_extent *l, struct vv_run r)
{
	for (uint64_t end = r.at + r.len; r.at < end; r.at += r.len, r.pos += r.len) {
		uint32_t off = (uint32_t)(r.pos - l->first), n = off / l->chunk, skip = off - n * l->chunk;

		r.len = end - r.at;
		if (skip)
			r.len = r.len < l->chunk - skip ? r.len : l->chunk - skip;
		else if (r.len > l->chunk)
			r.len -= (uint32_t)r.len % l->chunk;
		if (skip == 0 && r.len >= l->chunk) {
			push_copy(k, (struct copy_mapped){ l->bytes + (r.pos - l->lo), r, &l->digest[n], NULL, l->chunk });
		} else if (!is_laid(k, &r)) {
			take_part(k, l, &r, n);
		}
	}
}

static bool is_there(const struct copy_mapped_walk *k, const struct vv_open_layers_extent *l, const struct vv_run *r)
{
	size_t layer = vv_open_layers_find(k->warm, r->layer);

	return vv_open_layers_may_touch(k->warm, layer, (uint64_t)(l->bytes - k->warm->file[layer]->get->map) + (r->pos - l->lo), r->len);
}

/* Takes a stretch of one extent. */
static void take(struct copy_mapped_walk *k, const struct vv_open_layers_extent *l, const struct vv_run *r)
{
	k->got += r->len;
	if (!k->begun)
		note_written(k, r->at); /* by other threads */
	k->begun = true;
	if (k->cold || !l->bytes || !(l->may_touch || is_there(k, l, r)))
		leave(k, r);
	else if (l->full_block && r->len == l->hi - l->lo)
		push_copy(k, (struct copy_mapped){ l->bytes, *r, NULL, l->full_block, 0 });
	else if (l->digest)
		take_chunks(k, l, *r);
	else
		leave(k, r);
}

/* Takes the pieces of a run, at..end of the region, that begin in the walk's stretch. A piece is
 * never cut: its digest and its block's check would be useless. */
static void walk_run(struct copy_mapped_walk *k, const struct vv_run *r, uint64_t at, uint64_t end)
{
	size_t layer = vv_open_layers_find(k->warm, r->layer);
	struct vv_run piece = { .at = at > k->at ? at : k->at, .layer = r->layer };

	for (; layer < k->warm->n && piece.at < k->end && piece.at < end; piece.at += piece.len) {
		const struct vv_open_layers_extent *l;

		piece.pos = r->pos + (piece.at - r->at);
		l = find_extent(k, layer, piece.pos, r->len);
		if (!l) {
			piece.len = 1;
			leave(k, &piece); /* the normal reader reports that */
			return;
		}
		piece.len = l->hi - piece.pos < end - piece.at ? l->hi - piece.pos : end - piece.at;
		/* otherwise it begins before the stretch */
		if (piece.at == at || piece.pos == l->lo)
			take(k, l, &piece);
	}
}

static void walk_zeros(struct copy_mapped_walk *k, uint64_t at, uint64_t end)
{
	if (k->cold)
		leave(k, &(struct vv_run){ .at = at, .len = end - at });
	else
		vv_mem_zero(place(k, at), (size_t)(end - at));
	note_written(k, end);
	k->begun = true;
}

/* Takes the next part of the chunk of the last part. */
static inline bool take_known(struct copy_mapped_walk *k, const struct vv_run *r, uint64_t at, uint64_t end)
{
	const struct copy_mapped_known *c = &k->known;

	if (r->layer != c->layer || r->pos < c->lo || r->pos + r->len > c->hi || !c->layer)
		return false;
	copy_part(place(k, at), c->bytes + (r->pos - c->lo) + (at - r->at), end - at);
	k->got += end - at;
	return true;
}

/* A piece is mostly shorter than a cache line: writing it would wait for the rest of the line. */
static inline void fetch_place(const struct copy_mapped_walk *k, const struct vv_run *r)
{
	enum { LINE = 64 };

	for (uint64_t at = r->at; r->len <= SMALL && at < r->at + r->len && at < k->end; at += LINE)
		__builtin_prefetch(place(k, at), 1);
}

/* Walks from k->run on, the first run that intersects the stretch. */
static void walk_on(struct copy_mapped_walk *k)
{
	const struct vv_want *w = k->want;
	const struct vv_runs *runs = w->runs;

	for (; k->run < runs->n && runs->v[k->run].at < k->end && k->rc == 0; k->run++) {
		const struct vv_run *r = &runs->v[k->run];
		uint64_t at = r->at > w->at ? r->at : w->at;
		uint64_t end = r->at + r->len < w->at + w->len ? r->at + r->len : w->at + w->len;

		if (k->over && k->run + FAR < runs->n)
			fetch_place(k, r + FAR);
		if (take_known(k, r, at, end))
			continue;
		if (is_laid(k, &(struct vv_run){ at, end - at, r->layer, r->pos + (at - r->at) }))
			k->got += end - at;
		else if (r->layer)
			walk_run(k, r, at, end);
		else if (k->zeros)
			walk_zeros(k, at > k->at ? at : k->at, end < k->end ? end : k->end);
	}
	flush(k);
}

static void walk(void *arg)
{
	struct copy_mapped_walk *k = arg;

	k->run = vv_run_find(k->want->runs, k->at);
	walk_on(k);
}

/* Thousands of small regions are a walk each. So only that part of it is cleared which is used. */
static void begin(struct copy_mapped_walk *k, const struct vv_open_layers *w, const struct vv_want *want, struct vv_pending_list *left)
{
	memset(k, 0, offsetof(struct copy_mapped_walk, copy));
	memset(k->listed, 0, w->n * sizeof(k->listed[0]));
	memset(k->lane, 0, w->n * sizeof(k->lane[0]));
	k->warm = w;
	k->want = want;
	k->left = left;
}

/* An unreadable mapped file raises SIGBUS, missing memory SIGSEGV. The normal reader then reports
 * the error. */
int vv_copy_mapped_read(const struct vv_open_layers *w, const struct vv_want *want, uint64_t at, uint64_t end, bool zeros,
		 struct vv_pending_list *left, uint64_t *got)
{
	struct copy_mapped_walk k;

	begin(&k, w, want, left);
	k.at = at;
	k.end = end;
	k.zeros = zeros;
	if (vv_write_protect_try_read(walk, &k) == 0) {
		*got = k.got;
		return k.rc;
	}
	vv_err_clear();
	left->n = 0;
	begin(&k, w, want, left);
	k.at = at;
	k.end = end;
	k.zeros = zeros;
	k.cold = true;
	walk(&k);
	*got = k.got;
	return k.rc;
}

/* ---- overlaying tables ----------------------------------------------------------------------- */

struct copy_mapped_replay {
	struct copy_mapped_walk walk;
	struct vv_want window;
	uint64_t end; /* of all windows */
	const struct vv_runs *const *table; /* newest first */
	size_t n;
	size_t run[VV_MAX_DEPTH + 1]; /* of each table, the first run that intersects the window */
};

/* A run of the layer with most of the following bytes, by the oldest table; NULL: there is none. */
static const struct vv_run *find_base(const struct copy_mapped_replay *r)
{
	enum { LOOK = 4 };
	const struct vv_runs *runs = r->table[r->n - 1];
	const struct vv_run *best = NULL;
	size_t first = r->run[r->n - 1];

	for (size_t i = first; i < runs->n && i < first + LOOK; i++)
		if (runs->v[i].layer && (!best || runs->v[i].len > best->len))
			best = &runs->v[i];
	return best;
}

/* The block with the base's bytes at `at`; none if the base has no bytes there. */
static size_t first_block(const struct vv_blocks *b, const struct vv_run *base, uint64_t at)
{
	return vv_payload_block_find(b, base->pos + (at > base->at ? at - base->at : 0));
}

/* The position of a block in the region, if all of it were wanted. */
static struct vv_run place_of_block(const struct vv_blocks *b, size_t i, const struct vv_run *base)
{
	const struct vv_extent *x = &b->extent.v[b->v[i].extent];

	return (struct vv_run){ x->pos - base->pos + base->at, x->len, base->layer, x->pos };
}

/* The end of the window: at the end of a block, if possible. */
static uint64_t window_end(const struct copy_mapped_walk *k, const struct vv_run *base, const struct vv_blocks *b)
{
	uint64_t end = 0;

	for (size_t i = first_block(b, base, k->at); i < b->n && b->v[i].n_extents == 1; i++) {
		struct vv_run block = place_of_block(b, i, base);

		if (block.at + block.len > k->end)
			break;
		end = block.at + block.len;
	}
	return end > k->at ? end : k->end;
}

/* Blocks that are wanted except for small parts are copied in full, and the table's other runs
 * overwrite those parts. So a block needs one check, and its pages are copied without
 * interruption. */
static void lay_blocks(struct copy_mapped_walk *k, const struct vv_run *base, size_t layer)
{
	const struct vv_layer_file *f = k->warm->file[layer];
	const struct vv_blocks *b = &f->blocks;

	for (size_t i = first_block(b, base, k->at); i < b->n; i++) {
		const struct vv_block *is = &b->v[i];
		struct vv_run block = place_of_block(b, i, base);

		if (is->n_extents != 1 || is->codec || block.at < k->at || block.at >= k->end || block.at + block.len > k->end ||
		    block.at < k->written || wanted_of(k, &block) <= block.len / 4 * 3 || !vv_open_layers_may_touch(k->warm, layer, is->off, block.len))
			return;
		note_written(k, block.at + block.len);
		if (vv_digest_check_copy(place(k, block.at), f->get->map + is->off, block.len) != is->check)
			return;
		if (!k->laid.len)
			k->laid = block;
		else
			k->laid.len += block.len;
	}
}

/* The oldest table first, as any table is read; then the tables over it. Chunks that the last table
 * copied in full may have been overwritten since. */
static void walk_tables(struct copy_mapped_replay *r, const struct vv_run *base, size_t layer)
{
	struct copy_mapped_walk *k = &r->walk;

	k->over = false;
	for (size_t i = r->n; i-- > 0 && !k->left->n && k->rc == 0; k->over = true) {
		const struct vv_run *v = r->table[i]->v;

		r->window.runs = r->table[i];
		k->laid = (struct vv_run){ 0 };
		k->run = r->run[i];
		if (!k->over && base && k->warm->window[layer])
			lay_blocks(k, base, layer);
		walk_on(k);
		r->run[i] = k->run && v[k->run - 1].at + v[k->run - 1].len > k->end ? k->run - 1 : k->run;
	}
}

static void walk_windows(void *arg)
{
	struct copy_mapped_replay *r = arg;
	struct copy_mapped_walk *k = &r->walk;

	for (size_t i = 0; i < r->n; i++)
		r->run[i] = vv_run_find(r->table[i], r->window.at);
	for (; r->window.at < r->end && !k->left->n && k->rc == 0; r->window.to += r->window.len, r->window.at += r->window.len) {
		const struct vv_run *base = find_base(r);
		size_t layer = base ? vv_open_layers_find(k->warm, base->layer) : k->warm->n;

		base = layer < k->warm->n ? base : NULL;
		k->at = r->window.at;
		k->end = r->end - k->at < WINDOW ? r->end : k->at + WINDOW;
		if (base)
			k->end = window_end(k, base, &k->warm->file[layer]->blocks);
		k->begun = false;
		r->window.len = k->end - k->at;
		walk_tables(r, base, layer);
	}
}

bool vv_copy_mapped_replay(const struct vv_open_layers *w, const struct vv_runs *const *table, size_t n, const struct vv_want *part, uint64_t *got)
{
	struct vv_pending_list left = { 0 };
	struct copy_mapped_replay r = { .walk = { .warm = w, .zeros = true, .in_a_row = true, .left = &left },
			    .window = *part, .end = part->at + part->len, .table = table, .n = n };
	int rc;

	r.walk.want = &r.window;
	rc = vv_write_protect_try_read(walk_windows, &r);
	vv_err_clear();
	vv_mem_free(left.v);
	*got = r.walk.got;
	return rc == 0 && r.walk.rc == 0 && !left.n;
}
