#include "engine/read/copy_mapped.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include "track/write_protect.h"
#include <string.h>

enum {
	LANES = 2,
	LONG = 128 << 10, /* of runs: they may hold whole blocks, and what it takes to find those does not count */
	COPIES = 256, /* that wait: so what is needed for them is there when their turn comes */
	PARTS = 64, /* the same of parts of chunks: all those of a page, in small grains */
	WINDOW = 1 << 20, /* of a region: what all layers are laid over each other in, while it is near */
	SOON = 4, /* copies: their digests are fetched */
	SMALL = 256, /* bytes of a piece whose place is fetched before it is written, */
	FAR = 8, /* so many pieces before */
	GOOD = 1,
	BAD = 2,
};

struct copy_mapped { /* of whole chunks, or of a whole block */
	const uint8_t *from;
	struct vv_run run; /* that it is all or a part of */
	const struct vv_digest *digest; /* of the first chunk */
	const struct vv_block *whole;   /* has a check of its own; else NULL */
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
	size_t run; /* that is being walked */
	bool zeros;
	bool cold; /* nothing is copied */
	bool begun;
	uint64_t written; /* from here on nothing of the stretch has been, yet */
	struct vv_run laid; /* the chunk that was copied whole last, beyond what is wanted of it; no length: none was */
	bool in_a_row; /* what is copied follows what was copied: it need not wait */
	bool over; /* the pieces lie over others of the place: none may be copied beyond what is wanted of it, and none waits */
	struct copy_mapped_known known; /* that the last part was of */
	struct vv_pending_list *left;
	int rc;
	uint64_t got; /* bytes, copied or left */
	size_t n_copies, n_parts;
	struct copy_mapped copy[COPIES];
	struct copy_mapped_part part[PARTS];
	_Alignas(64) struct vv_open_layers_extent listed[VV_OPEN_LAYERS_LAYERS]; /* of the layers' lists, those that were met last */
	struct vv_open_layers_extent lane[VV_OPEN_LAYERS_LAYERS][LANES];         /* and those that were looked for */
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

/* What comes after it is fetched meanwhile. */
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

/* Most are as short as a grain. */
static void copy_part(uint8_t *to, const uint8_t *from, size_t n)
{
	enum { STEP = 64 };

	for (; n >= STEP; n -= STEP, to += STEP, from += STEP)
		memcpy(to, from, STEP);
	if (n)
		memcpy(to, from, n);
}

/* In any order: nothing that waits lies over another. What they may lie over, chunks that were copied whole, is there. */
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

/* Of one block. Payloads are mostly laid down in one or two sweeps over the memory. */
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

/* For a run of so many bytes. */
static const struct vv_open_layers_extent *find_extent(struct copy_mapped_walk *k, size_t layer, uint64_t pos, uint64_t len)
{
	const struct vv_open_layers_extent *l = &k->listed[layer];

	if (len >= LONG)
		return find_block(k, layer, pos);
	if (pos >= l->lo && pos < l->hi)
		return l;
	return k->warm->n_extents[layer] ? find_listed(k, layer, pos) : find_block(k, layer, pos);
}

/* How much of a chunk, or a block, the runs have in its place; 0 if they do not fill the place. */
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

/* The lane's chunk n, which a part of is wanted. */
static struct vv_run around(const struct vv_open_layers_extent *l, const struct vv_run *part, uint32_t n)
{
	uint64_t pos = l->first + (uint64_t)n * l->chunk;

	return (struct vv_run){ part->at - (part->pos - pos), l->chunk, part->layer, pos };
}

/* A chunk that is wanted but for a few grains is copied whole and hashed on the way, and the grains come over it: nothing of them
 * has been written yet. */
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

/* A chunk of which others may want other parts is looked at once. */
static bool is_good(const struct vv_open_layers_extent *l, uint32_t n)
{
	unsigned char state = atomic_load_explicit(&l->state[n], memory_order_relaxed);

	if (!state) {
		state = vv_digest_fits(l->bytes + (l->first + (uint64_t)n * l->chunk - l->lo), l->chunk, &l->digest[n]) ? GOOD : BAD;
		atomic_store_explicit(&l->state[n], state, memory_order_relaxed);
	}
	return state == GOOD;
}

/* Of the lane's chunk n. */
static void take_part(struct copy_mapped_walk *k, const struct vv_open_layers_extent *l, const struct vv_run *part, uint32_t n)
{
	uint64_t begin = l->first + (uint64_t)n * l->chunk;

	if (!l->state || begin < l->lo || begin + l->chunk > l->hi) { /* the rest of the chunk is elsewhere, or nowhere */
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

/* Whole chunks, and what there is of one before and after them. */
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

/* A stretch of one lane. */
static void take(struct copy_mapped_walk *k, const struct vv_open_layers_extent *l, const struct vv_run *r)
{
	k->got += r->len;
	if (!k->begun)
		note_written(k, r->at); /* by others */
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

/* The pieces of a run, at..end of the region, that begin in the walk's stretch: a piece is never cut, or its digest and the check
 * of its block would be of no use. */
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
			leave(k, &piece); /* is refused there */
			return;
		}
		piece.len = l->hi - piece.pos < end - piece.at ? l->hi - piece.pos : end - piece.at;
		if (piece.at == at || piece.pos == l->lo) /* else it begins before the stretch */
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

/* The next part of the chunk that the last one was of. */
static inline bool take_known(struct copy_mapped_walk *k, const struct vv_run *r, uint64_t at, uint64_t end)
{
	const struct copy_mapped_known *c = &k->known;

	if (r->layer != c->layer || r->pos < c->lo || r->pos + r->len > c->hi || !c->layer)
		return false;
	copy_part(place(k, at), c->bytes + (r->pos - c->lo) + (at - r->at), end - at);
	k->got += end - at;
	return true;
}

/* A piece is mostly shorter than what the core writes without reading what was there: it would wait for that. */
static inline void fetch_place(const struct copy_mapped_walk *k, const struct vv_run *r)
{
	enum { LINE = 64 };

	for (uint64_t at = r->at; r->len <= SMALL && at < r->at + r->len && at < k->end; at += LINE)
		__builtin_prefetch(place(k, at), 1);
}

/* From k->run on, the first that has something of the stretch. */
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

/* A mapped file that cannot be read any more raises SIGBUS, memory that is not there SIGSEGV: then it is for those who read in the
 * plain way to say what is wrong. */
int vv_copy_mapped_read(const struct vv_open_layers *w, const struct vv_want *want, uint64_t at, uint64_t end, bool zeros,
		 struct vv_pending_list *left, uint64_t *got)
{
	struct copy_mapped_walk k = { .warm = w, .want = want, .at = at, .end = end, .zeros = zeros, .left = left };

	if (vv_write_protect_try_read(walk, &k) == 0) {
		*got = k.got;
		return k.rc;
	}
	vv_err_clear();
	left->n = 0;
	k = (struct copy_mapped_walk){ .warm = w, .want = want, .at = at, .end = end, .zeros = zeros, .cold = true, .left = left };
	walk(&k);
	*got = k.got;
	return k.rc;
}

/* ---- table over table --------------------------------------------------------------------------------------------------------------- */

struct copy_mapped_replay {
	struct copy_mapped_walk walk;
	struct vv_want window;
	uint64_t end; /* of all windows */
	const struct vv_runs *const *table; /* newest first */
	size_t n;
	size_t run[VV_MAX_DEPTH + 1]; /* of each table, the first that has something of the window */
};

/* A run of the layer that most of what comes next is in, says the oldest table; NULL: there is none. */
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

/* The block that holds what the base has at `at`; none if it has nothing there. */
static size_t first_block(const struct vv_blocks *b, const struct vv_run *base, uint64_t at)
{
	return vv_payload_block_find(b, base->pos + (at > base->at ? at - base->at : 0));
}

/* Where a block would lie in the region, if all of it were wanted. */
static struct vv_run place_of_block(const struct vv_blocks *b, size_t i, const struct vv_run *base)
{
	const struct vv_extent *x = &b->extent.v[b->v[i].extent];

	return (struct vv_run){ x->pos - base->pos + base->at, x->len, base->layer, x->pos };
}

/* Where the window ends: with a block, if it can. */
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

/* Blocks that are wanted but for small parts are copied whole, and what the table has instead of those comes over them: so there is one check for all of a block,
 * and nothing is between its pages. */
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

/* The oldest first, as any table is read; then what lies over it. What the last table laid down whole may have been written over since. */
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
