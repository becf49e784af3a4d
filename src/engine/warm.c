#include "engine/warm.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "engine/lane.h"
#include "track/fence.h"
#include <string.h>

enum {
	WINDOW = 1 << 20, /* where one page is in the cache its neighbours are, too; if not, touching them reads them */
	CACHED = 1,
	NOT_CACHED = 2,
	LANES = 2,
	LONG = 128 << 10, /* of runs: they may hold whole blocks, and what it takes to find those does not count */
	COPIES = 64, /* that wait: so what is needed for them is there when their turn comes */
	PARTS = 64, /* the same of parts of chunks: all those of a page, in small grains */
	GOOD = 1,
	BAD = 2,
};

/* All that is needed for the next piece of a layer: a line of the cache, because between two pieces everything else has left it. */
struct vv_warm_lane {
	uint64_t lo, hi;      /* positions */
	const uint8_t *bytes; /* at lo; NULL: they are to be read in the plain way */
	const struct vv_digest *digest; /* of the chunk at `first`; NULL: none are known */
	atomic_uchar *state;            /* of the same chunk: GOOD, BAD, or 0: nobody has looked; NULL: it is not kept */
	uint64_t first;                 /* the last chunk that begins at or before lo */
	uint32_t chunk;
	bool cached;                  /* all of it */
	const struct vv_block *whole; /* the block, if this is all of it */
};

_Static_assert(sizeof(struct vv_warm_lane) == 64, "a line");

static size_t hash(uint64_t layer)
{
	return (size_t)((layer * 0x9e3779b97f4a7c15u) >> 32) % VV_WARM_SLOTS;
}

size_t vv_warm_find(const struct vv_warm *w, uint64_t layer)
{
	for (size_t s = hash(layer); w->slot[s]; s = (s + 1) % VV_WARM_SLOTS)
		if (w->layer[w->slot[s] - 1] == layer)
			return w->slot[s] - 1u;
	return w->n;
}

void vv_warm_number(struct vv_warm *w)
{
	memset(w->slot, 0, sizeof(w->slot));
	for (size_t i = 0; i < w->n; i++) {
		size_t s = hash(w->layer[i]);

		while (w->slot[s])
			s = (s + 1) % VV_WARM_SLOTS;
		w->slot[s] = (uint8_t)(i + 1);
	}
}

static bool is_cached(const struct vv_warm *w, size_t i, uint64_t off, uint64_t len)
{
	for (uint64_t k = off / WINDOW; k <= (off + len - 1) / WINDOW; k++) {
		unsigned char known = atomic_load_explicit(&w->window[i][k], memory_order_relaxed);

		if (!known) {
			const uint8_t *page = w->file[i]->get->map + (k * WINDOW > off ? k * WINDOW : off);

			known = vv_fs_is_cached(page) ? CACHED : NOT_CACHED;
			atomic_store_explicit(&w->window[i][k], known, memory_order_relaxed);
		}
		if (known == NOT_CACHED)
			return false;
	}
	return true;
}

static struct vv_warm_lane lay(const struct vv_warm *w, size_t layer, const struct vv_lane *at)
{
	const struct vv_layerio *f = w->file[layer];
	struct vv_warm_lane l = { .lo = at->lo, .hi = at->hi, .chunk = at->chunk };

	if (at->digest) {
		uint64_t n = (at->lo - at->first) / at->chunk;

		l.digest = at->digest + n;
		l.first = at->first + n * at->chunk;
	}
	if (l.digest && w->chunk[layer]) /* digests may have been read since */
		l.state = w->chunk[layer] + (l.digest - f->digests.v);
	if (at->off == at->block->off && l.hi - l.lo == at->block->raw_len)
		l.whole = at->block;
	if (at->block->codec == 0 && w->window[layer]) {
		l.bytes = f->get->map + at->off;
		l.cached = is_cached(w, layer, at->off, l.hi - l.lo);
	}
	return l;
}

/* It pays if there are not more lanes than runs. */
static int list_lanes(struct vv_warm *w, size_t i, size_t n_runs)
{
	const struct vv_layerio *f = w->file[i];
	struct vv_lanes list = { 0 };
	int rc = 0;

	if (f->blocks.extent.n + f->digests.n_groups > n_runs + PARTS)
		return 0;
	rc = vv_lane_list(f, &list);
	if (rc == 0) {
		w->lane[i] = vv_mem_new(list.n, sizeof(*w->lane[i]));
		rc = w->lane[i] ? 0 : VV_ENOMEM;
	}
	for (size_t k = 0; rc == 0 && k < list.n; k++)
		w->lane[i][k] = lay(w, i, &list.v[k]);
	w->n_lanes[i] = rc ? 0 : list.n;
	vv_mem_free(list.v);
	return rc;
}

/* Where there are few runs they are mostly whole blocks, which have checks of their own. Digests that are damaged are done
 * without: the blocks may still be whole. */
int vv_warm_open(struct vv_warm *w, size_t i, const struct vv_lineage *lin, uint64_t layer, size_t n_runs)
{
	struct vv_layerio *f = NULL;
	int rc = vv_layerio_open(lin, layer, VV_LAYERIO_BLOCKS, &f);

	w->layer[i] = layer;
	w->file[i] = f;
	if (rc || !f->get->map)
		return rc;
	w->window[i] = vv_mem_new((size_t)(f->get->size / WINDOW) + 1, sizeof(*w->window[i]));
	if (!w->window[i])
		return VV_ENOMEM;
	if (f->head.digest_kind == VV_DIGEST_XXH3 && 8 * n_runs > f->blocks.n)
		rc = vv_layerio_load_digests(f);
	if (rc && rc != VV_ENOMEM) {
		vv_err_clear();
		rc = 0;
	}
	if (rc == 0 && f->digests.n) {
		w->chunk[i] = vv_mem_new(f->digests.n, sizeof(*w->chunk[i]));
		rc = w->chunk[i] ? list_lanes(w, i, n_runs) : VV_ENOMEM;
	}
	return rc;
}

void vv_warm_close(struct vv_warm *w, size_t i)
{
	vv_layerio_close(w->file[i]);
	vv_mem_free(w->window[i]);
	vv_mem_free(w->chunk[i]);
	vv_mem_free(w->lane[i]);
	w->file[i] = NULL;
	w->window[i] = NULL;
	w->chunk[i] = NULL;
	w->lane[i] = NULL;
	w->n_lanes[i] = 0;
}

struct copy { /* of whole chunks, or of a whole block */
	const uint8_t *from;
	struct vv_run run; /* that it is all or a part of */
	const struct vv_digest *digest; /* of the first chunk */
	const struct vv_block *whole;   /* has a check of its own; else NULL */
	uint32_t chunk;
};

struct part { /* of a chunk that was found good */
	const uint8_t *from;
	uint64_t at;
	uint64_t len;
};

struct known { /* a chunk that was found good */
	uint64_t layer; /* 0: none */
	uint64_t lo, hi; /* positions */
	const uint8_t *bytes;
};

struct walk {
	const struct vv_warm *warm;
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
	struct known known; /* that the last part was of */
	struct vv_stretches *left;
	int rc;
	uint64_t got; /* bytes, copied or left */
	size_t n_copies, n_parts;
	struct copy copy[COPIES];
	struct part part[PARTS];
	_Alignas(64) struct vv_warm_lane listed[VV_WARM_LAYERS]; /* of the layers' lists, those that were met last */
	struct vv_warm_lane lane[VV_WARM_LAYERS][LANES];         /* and those that were looked for */
};

static uint8_t *place(const struct walk *k, uint64_t at)
{
	return k->want->to + (at - k->want->at);
}

static void note_written(struct walk *k, uint64_t end)
{
	k->written = end > k->written ? end : k->written;
}

static void leave(struct walk *k, const struct vv_run *r)
{
	int rc = vv_stretch_add(k->left, (struct vv_stretch){ r->layer, r->pos, r->len, place(k, r->at) });

	k->rc = k->rc ? k->rc : rc;
}

/* What comes after it is fetched meanwhile. */
static bool copy_chunks(uint8_t *to, const struct copy *c, const uint8_t *after)
{
	const struct vv_digest *want = c->digest;

	for (uint64_t at = 0; at < c->run.len; at += c->chunk, want++) {
		const uint8_t *next = at + c->chunk < c->run.len ? c->from + at + c->chunk : after;

		if (!vv_digest_fits_copy(to + at, c->from + at, c->chunk, next, want))
			return false;
	}
	return true;
}

static void copy_all(struct walk *k)
{
	for (size_t i = 0; i < k->n_copies; i++) {
		const struct copy *c = &k->copy[i];
		uint8_t *to = place(k, c->run.at);
		bool ok;

		if (i + 2 < k->n_copies)
			__builtin_prefetch(c[2].from, 0, 2); /* so that where it lies in memory is known when c[1] is copied */
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
static void flush(struct walk *k)
{
	copy_all(k);
	for (size_t i = 0; i < k->n_parts; i++) {
		const struct part *p = &k->part[i];

		copy_part(place(k, p->at), p->from, p->len);
		note_written(k, p->at + p->len);
	}
	k->n_parts = 0;
}

static void push_copy(struct walk *k, struct copy c)
{
	k->copy[k->n_copies++] = c;
	if (k->in_a_row)
		copy_all(k);
	else if (k->n_copies == COPIES)
		flush(k);
}

static void push_part(struct walk *k, struct part p)
{
	__builtin_prefetch(p.from);
	k->part[k->n_parts++] = p;
	if (k->n_parts == PARTS)
		flush(k);
}

static const struct vv_warm_lane *find_listed(struct walk *k, size_t layer, uint64_t pos)
{
	const struct vv_warm_lane *v = k->warm->lane[layer];
	size_t lo = 0, hi = k->warm->n_lanes[layer];

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (v[mid].hi <= pos)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == k->warm->n_lanes[layer] || v[lo].lo > pos)
		return NULL;
	k->listed[layer] = v[lo];
	return &k->listed[layer];
}

/* Of one block. Payloads are mostly laid down in one or two sweeps over the memory. */
static const struct vv_warm_lane *find_block(struct walk *k, size_t layer, uint64_t pos)
{
	struct vv_warm_lane *l = k->lane[layer];
	struct vv_lane at;

	for (int i = 0; i < LANES; i++)
		if (pos >= l[i].lo && pos < l[i].hi)
			return &l[i];
	if (!vv_lane_find(k->warm->file[layer], pos, &at))
		return NULL;
	memmove(l + 1, l, (LANES - 1) * sizeof(*l));
	l[0] = lay(k->warm, layer, &at);
	return &l[0];
}

/* For a run of so many bytes. */
static const struct vv_warm_lane *find_lane(struct walk *k, size_t layer, uint64_t pos, uint64_t len)
{
	const struct vv_warm_lane *l = &k->listed[layer];

	if (len >= LONG)
		return find_block(k, layer, pos);
	if (pos >= l->lo && pos < l->hi)
		return l;
	return k->warm->n_lanes[layer] ? find_listed(k, layer, pos) : find_block(k, layer, pos);
}

/* Do the runs fill the place of a chunk, most of it with what the chunk has? */
static bool mostly(const struct walk *k, const struct vv_run *chunk)
{
	const struct vv_run *v = k->want->runs->v;
	uint64_t done = chunk->at, stop = done + chunk->len, ours = 0;
	size_t i = k->run;

	while (i > 0 && v[i].at > done)
		i--;
	for (; done < stop; i++) {
		uint64_t end = i < k->want->runs->n ? v[i].at + v[i].len : 0;

		if (end <= done || v[i].at > done)
			return false;
		end = end < stop ? end : stop;
		if (v[i].layer == chunk->layer && v[i].pos - v[i].at == chunk->pos - chunk->at)
			ours += end - done;
		done = end;
	}
	return 2 * ours > chunk->len;
}

/* The lane's chunk n, which a part of is wanted. */
static struct vv_run around(const struct vv_warm_lane *l, const struct vv_run *part, uint32_t n)
{
	uint64_t pos = l->first + (uint64_t)n * l->chunk;

	return (struct vv_run){ part->at - (part->pos - pos), l->chunk, part->layer, pos };
}

/* A chunk that is wanted but for a few grains is copied whole and hashed on the way, and the grains come over it: nothing of them
 * has been written yet. */
static bool lay_whole(struct walk *k, const struct vv_warm_lane *l, const struct vv_run *part, uint32_t n)
{
	const struct vv_run chunk = around(l, part, n);
	const uint8_t *from = l->bytes + (chunk.pos - l->lo);
	bool ok;

	if (!k->warm->all || part->at < k->written + (part->pos - chunk.pos) || chunk.at + chunk.len > k->end || !mostly(k, &chunk))
		return false;
	ok = vv_digest_fits_copy(place(k, chunk.at), from, l->chunk, from + l->chunk, &l->digest[n]);
	atomic_store_explicit(&l->state[n], ok ? GOOD : BAD, memory_order_relaxed);
	note_written(k, chunk.at + chunk.len);
	if (ok)
		k->laid = chunk;
	return ok;
}

/* A chunk of which others may want other parts is looked at once. */
static bool is_good(const struct vv_warm_lane *l, uint32_t n)
{
	unsigned char state = atomic_load_explicit(&l->state[n], memory_order_relaxed);

	if (!state) {
		state = vv_digest_fits(l->bytes + (l->first + (uint64_t)n * l->chunk - l->lo), l->chunk, &l->digest[n]) ? GOOD : BAD;
		atomic_store_explicit(&l->state[n], state, memory_order_relaxed);
	}
	return state == GOOD;
}

/* Of the lane's chunk n. */
static void take_part(struct walk *k, const struct vv_warm_lane *l, const struct vv_run *part, uint32_t n)
{
	uint64_t begin = l->first + (uint64_t)n * l->chunk;

	if (!l->state || begin < l->lo || begin + l->chunk > l->hi) { /* the rest of the chunk is elsewhere, or nowhere */
		leave(k, part);
		return;
	}
	if (!k->over && !atomic_load_explicit(&l->state[n], memory_order_relaxed) && lay_whole(k, l, part, n))
		return;
	if (!is_good(l, n)) {
		leave(k, part);
	} else if (k->over) {
		k->known = (struct known){ part->layer, begin, begin + l->chunk, l->bytes + (begin - l->lo) };
		copy_part(place(k, part->at), l->bytes + (part->pos - l->lo), part->len);
	} else {
		push_part(k, (struct part){ l->bytes + (part->pos - l->lo), part->at, part->len });
	}
}

static bool is_laid(const struct walk *k, const struct vv_run *r)
{
	return r->at + r->len <= k->laid.at + k->laid.len && r->at >= k->laid.at && r->layer == k->laid.layer &&
	       r->pos - r->at == k->laid.pos - k->laid.at;
}

/* Whole chunks, and what there is of one before and after them. */
static void take_chunks(struct walk *k, const struct vv_warm_lane *l, struct vv_run r)
{
	for (uint64_t end = r.at + r.len; r.at < end; r.at += r.len, r.pos += r.len) {
		uint32_t off = (uint32_t)(r.pos - l->first), n = off / l->chunk, skip = off - n * l->chunk;

		r.len = end - r.at;
		if (skip)
			r.len = r.len < l->chunk - skip ? r.len : l->chunk - skip;
		else if (r.len > l->chunk)
			r.len -= (uint32_t)r.len % l->chunk;
		if (skip == 0 && r.len >= l->chunk) {
			__builtin_prefetch(&l->digest[n]);
			push_copy(k, (struct copy){ l->bytes + (r.pos - l->lo), r, &l->digest[n], NULL, l->chunk });
		} else if (!is_laid(k, &r)) {
			take_part(k, l, &r, n);
		}
	}
}

static bool is_there(const struct walk *k, const struct vv_warm_lane *l, const struct vv_run *r)
{
	size_t layer = vv_warm_find(k->warm, r->layer);

	return is_cached(k->warm, layer, (uint64_t)(l->bytes - k->warm->file[layer]->get->map) + (r->pos - l->lo), r->len);
}

/* A stretch of one lane. */
static void take(struct walk *k, const struct vv_warm_lane *l, const struct vv_run *r)
{
	k->got += r->len;
	if (!k->begun)
		note_written(k, r->at); /* by others */
	k->begun = true;
	if (k->cold || !l->bytes || !(l->cached || is_there(k, l, r)))
		leave(k, r);
	else if (l->whole && r->len == l->hi - l->lo)
		push_copy(k, (struct copy){ l->bytes, *r, NULL, l->whole, 0 });
	else if (l->digest)
		take_chunks(k, l, *r);
	else
		leave(k, r);
}

/* The pieces of a run, at..end of the region, that begin in the walk's stretch: a piece is never cut, or its digest and the check
 * of its block would be of no use. */
static void walk_run(struct walk *k, const struct vv_run *r, uint64_t at, uint64_t end)
{
	size_t layer = vv_warm_find(k->warm, r->layer);
	struct vv_run piece = { .at = at > k->at ? at : k->at, .layer = r->layer };

	for (; layer < k->warm->n && piece.at < k->end && piece.at < end; piece.at += piece.len) {
		const struct vv_warm_lane *l;

		piece.pos = r->pos + (piece.at - r->at);
		l = find_lane(k, layer, piece.pos, r->len);
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

static void walk_zeros(struct walk *k, uint64_t at, uint64_t end)
{
	if (k->cold)
		leave(k, &(struct vv_run){ .at = at, .len = end - at });
	else
		vv_mem_zero(place(k, at), (size_t)(end - at));
	note_written(k, end);
	k->begun = true;
}

/* The next part of the chunk that the last one was of. */
static inline bool take_known(struct walk *k, const struct vv_run *r, uint64_t at, uint64_t end)
{
	const struct known *c = &k->known;

	if (r->layer != c->layer || r->pos < c->lo || r->pos + r->len > c->hi || !c->layer)
		return false;
	copy_part(place(k, at), c->bytes + (r->pos - c->lo) + (at - r->at), end - at);
	k->got += end - at;
	return true;
}

static void walk(void *arg)
{
	struct walk *k = arg;
	const struct vv_want *w = k->want;
	const struct vv_runs *runs = w->runs;

	for (k->run = vv_run_find(runs, k->at); k->run < runs->n && runs->v[k->run].at < k->end && k->rc == 0; k->run++) {
		const struct vv_run *r = &runs->v[k->run];
		uint64_t at = r->at > w->at ? r->at : w->at;
		uint64_t end = r->at + r->len < w->at + w->len ? r->at + r->len : w->at + w->len;

		if (take_known(k, r, at, end))
			continue;
		if (is_laid(k, r) && r->at >= w->at)
			k->got += end - at;
		else if (r->layer)
			walk_run(k, r, at, end);
		else if (k->zeros)
			walk_zeros(k, at > k->at ? at : k->at, end < k->end ? end : k->end);
	}
	flush(k);
}

/* A mapped file that cannot be read any more raises SIGBUS, memory that is not there SIGSEGV: then it is for those who read in the
 * plain way to say what is wrong. */
int vv_warm_read(const struct vv_warm *w, const struct vv_want *want, uint64_t at, uint64_t end, bool zeros,
		 struct vv_stretches *left, uint64_t *got)
{
	struct walk k = { .warm = w, .want = want, .at = at, .end = end, .zeros = zeros, .left = left };

	if (vv_fence_try(walk, &k) == 0) {
		*got = k.got;
		return k.rc;
	}
	vv_err_clear();
	left->n = 0;
	k = (struct walk){ .warm = w, .want = want, .at = at, .end = end, .zeros = zeros, .cold = true, .left = left };
	walk(&k);
	*got = k.got;
	return k.rc;
}

struct replay {
	struct walk walk;
	struct vv_want part;
	const struct vv_runs *const *table; /* newest first */
	size_t n;
};

/* The oldest first, as any table is read; then what lies over it. What the last table laid down whole may have been written over since. */
static void walk_tables(void *arg)
{
	struct replay *r = arg;
	struct walk *k = &r->walk;

	for (size_t i = r->n; i-- > 0 && !k->left->n && k->rc == 0; k->over = true) {
		r->part.runs = r->table[i];
		k->laid = (struct vv_run){ 0 };
		walk(k);
	}
}

bool vv_warm_replay(const struct vv_warm *w, const struct vv_runs *const *table, size_t n, const struct vv_want *part, uint64_t *got)
{
	struct vv_stretches left = { 0 };
	struct replay r = { .walk = { .warm = w, .at = part->at, .end = part->at + part->len, .zeros = true, .in_a_row = true, .left = &left },
			    .part = *part, .table = table, .n = n };
	int rc;

	r.walk.want = &r.part;
	rc = vv_fence_try(walk_tables, &r);
	vv_err_clear();
	vv_mem_free(left.v);
	*got = r.walk.got;
	return rc == 0 && r.walk.rc == 0 && !left.n;
}
