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
	DEPTH = 4, /* copies of chunks between learning where a digest is and needing it */
	PARTS = 64, /* the same of parts of chunks: all those of a page, in small grains */
	GOOD = 1,
	BAD = 2,
};

int vv_warm_add(struct vv_stretches *p, struct vv_stretch piece)
{
	struct vv_stretch *last = p->n ? &p->v[p->n - 1] : NULL;

	if (last && last->layer == piece.layer && last->pos + last->len == piece.pos && last->to + last->len == piece.to) {
		last->len += piece.len;
		return 0;
	}
	if (vv_mem_room(&p->v, p->n, &p->cap, sizeof(*p->v)) < 0)
		return VV_ENOMEM;
	p->v[p->n++] = piece;
	return 0;
}

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
		rc = w->chunk[i] ? 0 : VV_ENOMEM;
	}
	return rc;
}

void vv_warm_close(struct vv_warm *w, size_t i)
{
	vv_layerio_close(w->file[i]);
	vv_mem_free(w->window[i]);
	vv_mem_free(w->chunk[i]);
	w->file[i] = NULL;
	w->window[i] = NULL;
	w->chunk[i] = NULL;
}

/* A lane, and what this thread knows of it. */
struct lane {
	uint64_t lo, hi;              /* positions */
	const uint8_t *bytes;         /* at lo; NULL: they are to be read in the plain way */
	const struct vv_block *whole; /* the block, if this is all of it */
	const struct vv_digest *digest; /* of the chunk at `first`; NULL: none are known */
	atomic_uchar *state;            /* of the same chunk: GOOD, BAD, or 0: nobody has looked; NULL: it is not kept */
	uint64_t first;
	uint32_t chunk;
	uint64_t laid, laid_at; /* the chunk that was copied whole last, and where it is in the region */
	uint32_t laid_len;      /* 0: none was */
};

struct copy {
	const uint8_t *from;
	uint64_t at; /* in the region */
	uint64_t layer, pos;
	uint32_t len, chunk;
	const struct vv_digest *digest;
	const struct vv_block *whole; /* has a check of its own */
	atomic_uchar *state;          /* of the chunk that this is a part of; NULL: it is whole chunks */
	uint32_t skip;                /* so far into it */
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
	struct vv_stretches *left;
	int rc;
	uint64_t got; /* bytes, copied or left */
	struct copy queue[PARTS];
	size_t head, tail; /* of the queue, ever rising */
	struct lane lane[VV_WARM_LAYERS][LANES];
};

static uint8_t *place(const struct walk *k, uint64_t at)
{
	return k->want->to + (at - k->want->at);
}

static void note_written(struct walk *k, uint64_t end)
{
	k->written = end > k->written ? end : k->written;
}

static void leave(struct walk *k, uint64_t layer, uint64_t pos, uint64_t len, uint64_t at)
{
	int rc = vv_warm_add(k->left, (struct vv_stretch){ layer, pos, len, place(k, at) });

	k->rc = k->rc ? k->rc : rc;
}

static bool copy_chunks(uint8_t *to, const struct copy *c, const uint8_t *after)
{
	const struct vv_digest *want = c->digest;

	for (uint32_t at = 0; at < c->len; at += c->chunk, want++) {
		const uint8_t *next = at + c->chunk < c->len ? c->from + at + c->chunk : after;
		struct vv_digest got;

		vv_digest_xxh3_copy(to + at, c->from + at, c->chunk, next, &got);
		if (!vv_digest_equal(&got, want))
			return false;
	}
	return true;
}

/* A chunk of which others may want other parts is looked at once. */
static bool copy_part(uint8_t *to, const struct copy *c)
{
	unsigned char state = atomic_load_explicit(c->state, memory_order_relaxed);
	struct vv_digest got;

	if (!state) {
		vv_digest_xxh3(c->from - c->skip, c->chunk, &got);
		state = vv_digest_equal(&got, c->digest) ? GOOD : BAD;
		atomic_store_explicit(c->state, state, memory_order_relaxed);
	}
	if (state == GOOD)
		memcpy(to, c->from, c->len);
	return state == GOOD;
}

/* What comes after it is fetched meanwhile. */
static void copy_next(struct walk *k)
{
	const struct copy *c = &k->queue[k->head++ % PARTS];
	const uint8_t *after = k->head < k->tail ? k->queue[k->head % PARTS].from : c->from;
	uint8_t *to = place(k, c->at);
	bool ok;

	if (c->whole)
		ok = vv_digest_check_copy(to, c->from, c->len) == c->whole->check;
	else if (c->state)
		ok = copy_part(to, c);
	else
		ok = copy_chunks(to, c, after);
	note_written(k, c->at + c->len);
	if (!ok)
		leave(k, c->layer, c->pos, c->len, c->at);
}

/* What stands behind the queue's end is in it now. All but the last few are copied: fewer than `depth` wait. */
static void push(struct walk *k, size_t depth)
{
	k->tail++;
	while (k->tail - k->head >= depth)
		copy_next(k);
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

static struct lane lay(const struct vv_warm *w, size_t layer, const struct vv_lane *at)
{
	const struct vv_layerio *f = w->file[layer];
	struct lane l = { .lo = at->lo, .hi = at->hi, .digest = at->digest, .first = at->first, .chunk = at->chunk };

	if (l.digest && w->chunk[layer]) /* digests may have been read since */
		l.state = w->chunk[layer] + (l.digest - f->digests.v);
	if (l.hi - l.lo == at->block->raw_len)
		l.whole = at->block;
	if (at->block->codec == 0 && w->window[layer] && is_cached(w, layer, at->off, l.hi - l.lo))
		l.bytes = f->get->map + at->off;
	return l;
}

/* The lane that holds pos; NULL if no block does. Payloads are mostly laid down in one or two sweeps over the memory. */
static struct lane *find_lane(struct walk *k, size_t layer, uint64_t pos)
{
	struct lane *l = k->lane[layer];
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

/* Do the runs fill at..at+len of the region, most of it with what the layer has from pos on? */
static bool mostly(const struct walk *k, uint64_t at, uint32_t len, uint64_t layer, uint64_t pos)
{
	const struct vv_run *v = k->want->runs->v;
	uint64_t done = at, ours = 0;
	size_t i = k->run;

	while (i > 0 && v[i].at > at)
		i--;
	for (; done < at + len; i++) {
		uint64_t end = i < k->want->runs->n ? v[i].at + v[i].len : 0;

		if (end <= done || v[i].at > done)
			return false;
		end = end < at + len ? end : at + len;
		if (v[i].layer == layer && v[i].pos - v[i].at == pos - at)
			ours += end - done;
		done = end;
	}
	return 2 * ours > len;
}

/* A chunk that is wanted but for a few grains is copied whole and hashed on the way, and the grains come over it: nothing of them
 * has been written yet. */
static bool lay_whole(struct walk *k, struct lane *l, const struct copy *c)
{
	uint64_t pos = c->pos - c->skip, at = c->at - c->skip;
	const uint8_t *from = c->from - c->skip;
	struct vv_digest got;
	bool ok;

	if (!k->warm->all || c->at < k->written + c->skip || at + c->chunk > k->end || !mostly(k, at, c->chunk, c->layer, pos))
		return false;
	vv_digest_xxh3_copy(place(k, at), from, c->chunk, from + c->chunk, &got);
	ok = vv_digest_equal(&got, c->digest);
	atomic_store_explicit(c->state, ok ? GOOD : BAD, memory_order_relaxed);
	note_written(k, at + c->chunk);
	if (ok) {
		l->laid = pos;
		l->laid_at = at;
		l->laid_len = c->chunk;
	}
	return ok;
}

static void take_part(struct walk *k, struct lane *l, struct copy *c)
{
	uint64_t n = (c->pos - l->first) / l->chunk, begin = l->first + n * l->chunk;

	if (!l->state || begin < l->lo || begin + l->chunk > l->hi) { /* the rest of the chunk is elsewhere, or nowhere */
		leave(k, c->layer, c->pos, c->len, c->at);
		return;
	}
	c->skip = (uint32_t)(c->pos - begin);
	c->digest = l->digest + n;
	c->state = l->state + n;
	if (!atomic_load_explicit(c->state, memory_order_relaxed) && lay_whole(k, l, c))
		return;
	__builtin_prefetch(c->from);
	push(k, PARTS);
}

/* Whole chunks, and what there is of one before and after them. */
static void take_chunks(struct walk *k, struct lane *l, uint64_t layer, uint64_t pos, uint64_t len, uint64_t at)
{
	for (uint64_t end = pos + len; pos < end; pos += len, at += len) {
		struct copy *c = &k->queue[k->tail % PARTS];
		uint64_t skip = (pos - l->first) % l->chunk;

		len = end - pos;
		if (skip)
			len = len < l->chunk - skip ? len : l->chunk - skip;
		else if (len > l->chunk)
			len -= len % l->chunk;
		c->from = l->bytes + (pos - l->lo);
		c->at = at;
		c->layer = layer;
		c->pos = pos;
		c->len = (uint32_t)len;
		c->chunk = l->chunk;
		c->whole = NULL;
		c->state = NULL;
		if (len % l->chunk) {
			take_part(k, l, c);
		} else {
			c->digest = l->digest + (pos - l->first) / l->chunk;
			__builtin_prefetch(c->digest);
			push(k, DEPTH);
		}
	}
}

/* A stretch of one lane. */
static void take(struct walk *k, struct lane *l, uint64_t layer, uint64_t pos, uint64_t len, uint64_t at)
{
	k->got += len;
	if (pos >= l->laid && pos + len <= l->laid + l->laid_len && at - pos == l->laid_at - l->laid)
		return;
	if (!k->begun)
		note_written(k, at); /* by others */
	k->begun = true;
	if (k->cold || !l->bytes) {
		leave(k, layer, pos, len, at);
	} else if (l->whole && len == l->hi - l->lo) {
		k->queue[k->tail % PARTS] = (struct copy){
			.from = l->bytes, .at = at, .layer = layer, .pos = pos, .len = (uint32_t)len, .whole = l->whole,
		};
		push(k, DEPTH);
	} else if (l->digest) {
		take_chunks(k, l, layer, pos, len, at);
	} else {
		leave(k, layer, pos, len, at);
	}
}

/* The pieces of a run, at..end of the region, that begin in the walk's stretch: a piece is never cut, or its digest and the check
 * of its block would be of no use. */
static void walk_run(struct walk *k, const struct vv_run *r, uint64_t at, uint64_t end)
{
	size_t layer = vv_warm_find(k->warm, r->layer);
	uint64_t here = at > k->at ? at : k->at, len;

	for (; layer < k->warm->n && here < k->end && here < end; here += len) {
		uint64_t pos = r->pos + (here - r->at);
		struct lane *l = find_lane(k, layer, pos);

		if (!l) {
			leave(k, r->layer, pos, 1, here); /* is refused there */
			return;
		}
		len = l->hi - pos < end - here ? l->hi - pos : end - here;
		if (here == at || pos == l->lo) /* else it begins before the stretch */
			take(k, l, r->layer, pos, len, here);
	}
}

static void walk_zeros(struct walk *k, uint64_t at, uint64_t end)
{
	if (k->cold)
		leave(k, 0, 0, end - at, at);
	else
		vv_mem_zero(place(k, at), (size_t)(end - at));
	note_written(k, end);
	k->begun = true;
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

		if (r->layer)
			walk_run(k, r, at, end);
		else if (k->zeros)
			walk_zeros(k, at > k->at ? at : k->at, end < k->end ? end : k->end);
	}
	while (k->head < k->tail)
		copy_next(k);
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
