/* Hashes some tiles that do not fit the buffer before the call returns, where that is cheaper than
 * write-protecting them. Protecting a few scattered pages also covers all pages between them. The
 * kernel then takes several times as long as hashing those pages. So sparse tiles are hashed at
 * once if little was new in the last epoch. The caller waits for tiles that cannot be protected, so
 * these are hashed at once as well. A tile without new content is done, without a copy and without
 * protection. Other tiles are left as they were. */
#include "engine/memory/early_hash.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/held.h"
#include "base/mem.h"
#include "engine/memory/hash_tiles.h"
#include "engine/memory/store_tiles.h"
#include "engine/lost_memory.h"
#include "engine/memory/tiles.h"
#include "track/write_protect.h"
#include <stdatomic.h>

enum {
	/* Tiles per round. The yield so far decides whether another round follows. */
	ROUND = 256,
	STEP = 8,    /* tiles hashed by one thread in one step */
	/* At most one group in so many of a tile is dirty; a dense tile is protected as fast as
	 * hashed. */
	FEW = 2,
	RARE = 16,   /* at most one byte in so many was new */
	DIGESTS = 16 << 10, /* of a round, at most */
};

struct early_hash {
	struct varve *v;
	struct vv_digest *digest; /* of a round */
	size_t chunks;            /* of a tile */
	size_t n, room;
	uint32_t tile[ROUND];
	_Atomic(struct vv_region *) gone; /* a region whose memory could not be read */
	_Atomic uint64_t hashed_ns;
};

struct early_hash_step {
	struct early_hash *all;
	size_t first;
	struct vv_region *region; /* the current one */
};

static struct vv_digest *digests_of(const struct early_hash *g, size_t k)
{
	return g->digest + k * g->chunks;
}

static void hash_tiles(void *arg)
{
	struct early_hash_step *s = arg;
	struct early_hash *g = s->all;

	for (size_t k = s->first; k < g->n && k < s->first + STEP; k++) {
		s->region = vv_tiles_region(g->v->tiles, g->tile[k]);
		vv_hash_tiles_hash(g->v, g->tile[k], 0, digests_of(g, k));
	}
}

static void hash_step(void *arg, size_t i)
{
	struct early_hash_step s = { arg, i * STEP, NULL };
	double start = vv_clock_own_s();

	if (vv_write_protect_try_read(hash_tiles, &s) < 0)
		atomic_store(&s.all->gone, s.region);
	atomic_fetch_add(&s.all->hashed_ns, (uint64_t)((vv_clock_own_s() - start) * 1e9));
}

/* A tile without new content is done, and the result is true. Otherwise the tile is unchanged. */
static bool is_known(struct vv_layer_writer *p, size_t tile, const struct vv_digest *d)
{
	struct vv_tiles *t = p->v->tiles;
	struct vv_region *r = vv_tiles_region(t, tile);
	struct varve_stats st = p->st;
	uint64_t changed = r->tracked->changed;
	int ignored = 0; /* there are no claims yet */

	if (vv_hash_tiles_find_known(p, tile, d, &ignored) != vv_tiles_dirty(t, r, tile)) {
		p->st = st;
		r->tracked->changed = changed;
		return false;
	}
	t->geometry.tile[tile].flags |= VV_TILE_HASHED;
	t->geometry.tile[tile].queue_flags |= VV_TILE_DEDUPED;
	vv_tiles_set_todo(t, r, tile, 0);
	vv_tiles_done(t, tile);
	return true;
}

/* The position at which the queue no longer fits the buffer. */
static size_t overflow(const struct vv_tiles *t)
{
	size_t k = 0, room = t->copies.n_free;

	for (; k < t->plan.n_queue; k++) {
		size_t need = (size_t)__builtin_popcountll(vv_tiles_dirty(t, vv_tiles_region(t, t->plan.queue[k]), t->plan.queue[k]));

		if (need > room)
			break;
		room -= need;
	}
	return k;
}

static bool is_wanted(const struct vv_tiles *t, size_t tile)
{
	const struct vv_region *r = vv_tiles_region(t, tile);

	if (vv_tiles_todo(t, r, tile) & vv_tiles_unprotectable(t, r, tile))
		return true;
	return r->tracked->method != VV_BY_WRITE_PROTECT &&
	       FEW * __builtin_popcountll(vv_tiles_dirty(t, r, tile)) <= __builtin_popcountll(vv_tiles_groups(t, r, tile));
}

/* Fills a round from *k on, and advances *k. */
static void fill_round(struct early_hash *g, size_t *k)
{
	const struct vv_tiles *t = g->v->tiles;

	for (g->n = 0; *k < t->plan.n_queue && g->n < g->room; ++*k)
		if (is_wanted(t, t->plan.queue[*k]))
			g->tile[g->n++] = t->plan.queue[*k];
}

static int hash_round(struct early_hash *g)
{
	struct vv_tiles *t = g->v->tiles;
	struct vv_region *gone;
	size_t groups = 0;

	vv_pool_each(g->v->ctx.pool, (g->n + STEP - 1) / STEP, hash_step, g);
	for (size_t k = 0; k < g->n; k++)
		groups += (size_t)__builtin_popcountll(vv_tiles_dirty(t, vv_tiles_region(t, g->tile[k]), g->tile[k]));
	vv_hash_tiles_note_cost(t, groups, (double)atomic_exchange(&g->hashed_ns, 0) * 1e-9);
	gone = atomic_load(&g->gone);
	return gone ? vv_lost_memory_error(gone) : 0;
}

/* Moves finished tiles to the end of the queue. The other tiles keep their order. */
static void put_behind(struct vv_tiles *t)
{
	size_t kept = 0;

	for (size_t k = 0; k < t->plan.n_queue; k++) {
		uint32_t tile = t->plan.queue[k];

		if (t->plan.order.state[tile] != VV_WRITE_ORDER_SCHEDULED)
			continue;
		t->plan.queue[k] = t->plan.queue[kept];
		t->plan.queue[kept++] = tile;
	}
	for (size_t k = 0; k < t->plan.n_queue; k++)
		t->plan.queue_position[t->plan.queue[k]] = (uint32_t)k;
}

static bool is_worth_it(const struct varve *v)
{
	return v->ctx.dedup && v->tiles->waiters.copy_when_freed && v->stats.bytes_dirty > 0 && RARE * v->stats.bytes_new <= v->stats.bytes_dirty;
}

int vv_early_hash_run(struct vv_layer_writer *p)
{
	struct vv_tiles *t = p->v->tiles;
	struct early_hash g = { .v = p->v, .chunks = t->geometry.tile_groups * t->geometry.group_chunks };
	size_t k = overflow(t), known = 0, looked = 0;
	int rc = 0;

	VV_HELD(&t->lock);
	if (k == t->plan.n_queue || !is_worth_it(p->v))
		return 0;
	g.room = DIGESTS / g.chunks < ROUND ? DIGESTS / g.chunks : ROUND;
	g.digest = g.room ? vv_mem_new(g.room * g.chunks, sizeof(*g.digest)) : NULL;
	if (!g.digest) { /* the tiles are write-protected instead */
		vv_err_clear();
		return 0;
	}
	do {
		fill_round(&g, &k);
		rc = hash_round(&g);
		for (size_t i = 0; rc == 0 && i < g.n; i++)
			known += is_known(p, g.tile[i], digests_of(&g, i));
		looked += g.n;
	} while (rc == 0 && g.n && 2 * known > looked);
	vv_mem_free(g.digest);
	put_behind(t);
	return rc;
}
