#include "engine/warm.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "track/fence.h"
#include <string.h>

enum {
	WINDOW = 1 << 20, /* where one page is in the cache its neighbours are, too; if not, touching them reads them */
	CACHED = 1,
	NOT_CACHED = 2,
	LANES = 2,
	DEPTH = 4, /* copies between learning where a digest is and needing it */
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
	return rc;
}

void vv_warm_close(struct vv_warm *w, size_t i)
{
	vv_layerio_close(w->file[i]);
	vv_mem_free(w->window[i]);
	w->file[i] = NULL;
	w->window[i] = NULL;
}

/* A stretch of a layer's payload that is one extent, with digests of one size of chunk: where its bytes and digests are is a matter
 * of adding. Everything else of a layer is out of the cache by the time the next piece of it comes. */
struct lane {
	uint64_t lo, hi;              /* positions */
	const uint8_t *bytes;         /* at lo; NULL: they are to be read in the plain way */
	const struct vv_block *whole; /* the block, if this is all of it */
	const struct vv_digest *digest; /* of the chunk at `first`; NULL: none are known */
	uint64_t first;
	uint32_t chunk;
};

struct copy {
	const uint8_t *from;
	uint8_t *to;
	uint64_t layer, pos;
	uint32_t len, chunk;
	const struct vv_digest *digest;
	const struct vv_block *whole; /* has a check of its own */
};

struct walk {
	const struct vv_warm *warm;
	const struct vv_want *want;
	uint64_t at, end;
	bool zeros;
	bool cold; /* nothing is copied */
	struct vv_stretches *left;
	int rc;
	uint64_t got; /* bytes, copied or left */
	struct copy queue[DEPTH];
	size_t head, tail; /* of the queue, ever rising */
	struct lane lane[VV_WARM_LAYERS][LANES];
};

static void leave(struct walk *k, uint64_t layer, uint64_t pos, uint64_t len, uint8_t *to)
{
	int rc = vv_warm_add(k->left, (struct vv_stretch){ layer, pos, len, to });

	k->rc = k->rc ? k->rc : rc;
}

static bool copy_chunks(const struct copy *c, const uint8_t *after)
{
	const struct vv_digest *want = c->digest;

	for (uint32_t at = 0; at < c->len; at += c->chunk, want++) {
		const uint8_t *next = at + c->chunk < c->len ? c->from + at + c->chunk : after;
		struct vv_digest got;

		vv_digest_xxh3_copy(c->to + at, c->from + at, c->chunk, next, &got);
		if (!vv_digest_equal(&got, want))
			return false;
	}
	return true;
}

/* What comes after it is fetched meanwhile. */
static void copy_next(struct walk *k)
{
	const struct copy *c = &k->queue[k->head++ % DEPTH];
	const uint8_t *after = k->head < k->tail ? k->queue[k->head % DEPTH].from : c->from;
	bool ok;

	if (c->whole)
		ok = vv_digest_check_copy(c->to, c->from, c->len) == c->whole->check;
	else
		ok = copy_chunks(c, after);
	if (!ok)
		leave(k, c->layer, c->pos, c->len, c->to);
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

static struct lane lay(const struct vv_warm *w, size_t layer, const struct vv_payload_cursor *c, uint64_t pos)
{
	const struct vv_layerio *f = w->file[layer];
	const struct vv_block *b = &f->blocks.v[c->block];
	const struct vv_extent *x = &f->blocks.extent.v[c->extent];
	const struct vv_digests *d = &f->digests;
	size_t k = vv_layerio_group(f, pos);
	const struct vv_digest_group *g = k < d->n_groups ? &d->group[k] : NULL, *last = k ? &d->group[k - 1] : NULL;
	struct lane l = { .lo = x->pos, .hi = x->pos + x->len };

	if (g && g->pos <= pos) {
		l.digest = &f->digests.v[g->digest];
		l.first = g->pos;
		l.chunk = g->chunk;
		l.lo = l.lo > g->pos ? l.lo : g->pos;
		l.hi = l.hi < g->pos + g->count * g->chunk ? l.hi : g->pos + g->count * g->chunk;
	} else { /* gc has kept a part of a chunk, whose digest went: it lies between those that have theirs */
		l.lo = last && l.lo < last->pos + last->count * last->chunk ? last->pos + last->count * last->chunk : l.lo;
		l.hi = g && g->pos < l.hi ? g->pos : l.hi;
	}
	if (l.hi - l.lo == b->raw_len)
		l.whole = b;
	if (b->codec == 0 && w->window[layer] && is_cached(w, layer, b->off + c->before + (l.lo - x->pos), l.hi - l.lo))
		l.bytes = f->get->map + b->off + c->before + (l.lo - x->pos);
	return l;
}

/* The lane that holds pos; NULL if no block does. Payloads are mostly laid down in one or two sweeps over the memory. */
static const struct lane *find_lane(struct walk *k, size_t layer, uint64_t pos)
{
	struct lane *l = k->lane[layer];
	struct vv_payload_cursor c = { 0 };

	for (int i = 0; i < LANES; i++)
		if (pos >= l[i].lo && pos < l[i].hi)
			return &l[i];
	if (!vv_payload_locate(&k->warm->file[layer]->blocks, pos, &c))
		return NULL;
	memmove(l + 1, l, (LANES - 1) * sizeof(*l));
	l[0] = lay(k->warm, layer, &c, pos);
	return &l[0];
}

/* A stretch of one lane. */
static void take(struct walk *k, const struct lane *l, uint64_t layer, uint64_t pos, uint64_t len, uint8_t *to)
{
	struct copy c = { .to = to, .layer = layer, .pos = pos, .len = (uint32_t)len, .chunk = l->chunk };

	k->got += len;
	if (l->whole && len == l->hi - l->lo)
		c.whole = l->whole;
	else if (l->digest && (pos - l->first) % l->chunk == 0 && len % l->chunk == 0)
		c.digest = l->digest + (pos - l->first) / l->chunk;
	if (k->cold || !l->bytes || (!c.whole && !c.digest)) {
		leave(k, layer, pos, len, to);
		return;
	}
	c.from = l->bytes + (pos - l->lo);
	__builtin_prefetch(c.digest);
	k->queue[k->tail++ % DEPTH] = c;
	if (k->tail - k->head == DEPTH)
		copy_next(k);
}

/* The pieces of a run, at..end of the region, that begin in the walk's stretch: a piece is never cut, or its digest and the check
 * of its block would be of no use. */
static void walk_run(struct walk *k, const struct vv_run *r, uint64_t at, uint64_t end)
{
	const struct vv_want *want = k->want;
	size_t layer = vv_warm_find(k->warm, r->layer);
	uint64_t here = at > k->at ? at : k->at, len;

	for (; layer < k->warm->n && here < k->end && here < end; here += len) {
		uint64_t pos = r->pos + (here - r->at);
		const struct lane *l = find_lane(k, layer, pos);

		if (!l) {
			leave(k, r->layer, pos, 1, want->to + (here - want->at)); /* is refused there */
			return;
		}
		len = l->hi - pos < end - here ? l->hi - pos : end - here;
		if (here == at || pos == l->lo) /* else it begins before the stretch */
			take(k, l, r->layer, pos, len, want->to + (here - want->at));
	}
}

static void walk(void *arg)
{
	struct walk *k = arg;
	const struct vv_want *w = k->want;
	const struct vv_runs *runs = w->runs;

	for (size_t i = vv_run_find(runs, k->at); i < runs->n && runs->v[i].at < k->end && k->rc == 0; i++) {
		const struct vv_run *r = &runs->v[i];
		uint64_t at = r->at > w->at ? r->at : w->at;
		uint64_t end = r->at + r->len < w->at + w->len ? r->at + r->len : w->at + w->len;

		if (r->layer) {
			walk_run(k, r, at, end);
		} else if (k->zeros) {
			at = at > k->at ? at : k->at;
			end = end < k->end ? end : k->end;
			if (k->cold)
				leave(k, 0, 0, end - at, w->to + (at - w->at));
			else
				vv_mem_zero(w->to + (at - w->at), (size_t)(end - at));
		}
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
