/* The storing of S2's ASYNC_COMMIT: the tiles of an epoch go into its layer.
 *
 * Tiles are hashed ahead on all cores, in the order in which they are expected to be written; this thread sifts them (what is
 * stored already is let go at once) and places the rest into blocks, in the order that core/order.c gives, which changes
 * with what the program's threads do meanwhile. While the sink cannot take more, it goes on sifting. */
#include "base/mem.h"
#include "engine/pass.h"
#include "engine/tiles.h"
#include "track/fence.h"

enum {
	BATCH = 64,         /* tiles, */
	BATCH_CHUNKS = 256, /* or so many chunks, hashed by one task */
	RING_MAX = 256,     /* tasks */
	AHEAD_MIN = 4 << 20, /* bytes of digests of what is not placed yet: this, */
	AHEAD_SHARE = 200,   /* or the memory divided by this */
};

struct batch {
	struct vv_task task;
	struct vv_tiles *tiles;
	struct varve *session;
	size_t n;
	uint32_t tile[BATCH];
	uint64_t held[BATCH]; /* groups that are read from their copies */
	bool reading[BATCH];
	bool done; /* under the tiles' lock */
	int rc;
	struct vv_err_state error;
};

struct work { /* one flush */
	struct vv_pass *p;
	struct vv_tiles *t;
	struct batch *ring[RING_MAX];
	size_t size, begun, sifted; /* batches */
	size_t next;                /* in the tiles' queue */
	size_t ahead_max;
};

/* ---- hashing ------------------------------------------------------------------------------------------------------------ */

static size_t chunks_of(const struct vv_tiles *t, uint64_t groups)
{
	return (size_t)__builtin_popcountll(groups) * t->group_chunks;
}

/* From the lock until it is taken again nothing changes the bytes: they are copies, or fenced, and who would open the fence
 * waits for HASHING. */
static void begin_batch(struct batch *b)
{
	struct vv_tiles *t = b->tiles;

	pthread_mutex_lock(&t->lock);
	for (size_t k = 0; k < b->n; k++) {
		struct vv_tile *x = &t->tile[b->tile[k]];

		while (x->flags & VV_TILE_COPYING)
			pthread_cond_wait(&t->bell, &t->lock);
		b->reading[k] = !(x->flags & (VV_TILE_HASHED | VV_TILE_HASHING));
		if (b->reading[k])
			x->flags |= VV_TILE_HASHING;
		b->held[k] = vv_tiles_held(t, t->region[x->region], b->tile[k]);
	}
	pthread_mutex_unlock(&t->lock);
}

static void hash_tile(struct varve *v, size_t tile, uint64_t held)
{
	struct vv_tiles *t = &v->tiles;
	struct vv_tile *x = &t->tile[tile];
	struct vv_region *r = t->region[x->region];
	size_t first = vv_tiles_group(t, r, tile), loaded = v->history.n_loaded;
	struct vv_digest *d = x->digest;

	x->quiet = v->dedup;
	for (uint64_t left = x->dirty; left; left &= left - 1) {
		size_t k = (size_t)__builtin_ctzll(left), g = first + k, i = vv_tiles_chunk(t, g);
		const uint8_t *p = held >> k & 1 ? vv_tiles_bytes(t, r, g) : r->p + (uint64_t)g * t->group_len;

		for (size_t end = vv_tiles_chunk_end(t, r, g); i < end; i++, d++, p += r->shape.chunk) {
			const struct vv_digest *old = vv_region_digest(v, r, i);

			v->digest(p, vv_region_chunk_len(r, i), d);
			x->quiet = x->quiet && old && vv_digest_equal(old, d) &&
				   (r->was[i] == VV_CHUNK_ZERO || r->was[i] - VV_CHUNK_FIRST >= loaded);
		}
	}
}

static void read_batch(void *arg)
{
	struct batch *b = arg;

	for (size_t k = 0; k < b->n; k++)
		if (b->reading[k])
			hash_tile(b->session, b->tile[k], b->held[k]);
}

static void end_batch(struct batch *b, int rc)
{
	struct vv_tiles *t = b->tiles;

	pthread_mutex_lock(&t->lock);
	for (size_t k = 0; k < b->n; k++) {
		struct vv_tile *x = &t->tile[b->tile[k]];

		if (b->reading[k])
			x->flags = (uint8_t)((x->flags & ~VV_TILE_HASHING) | VV_TILE_HASHED);
	}
	b->done = true;
	b->rc = rc;
	pthread_cond_broadcast(&t->bell);
	if (t->fencing)
		pthread_cond_broadcast(&t->freed);
	pthread_mutex_unlock(&t->lock);
}

/* The program may have unmapped what it had declared: an error, not a crash. */
static void run_batch(struct vv_task *task)
{
	struct batch *b = (struct batch *)task;
	int rc;

	begin_batch(b);
	rc = vv_fence_try(read_batch, b);
	if (rc)
		vv_err_save(rc, &b->error);
	end_batch(b, rc);
}

static int make_digests(struct work *w, size_t tile)
{
	struct vv_tile *x = &w->t->tile[tile];
	size_t n = chunks_of(w->t, x->dirty);

	if (x->digest)
		return 0;
	x->digest = vv_mem_new(n, sizeof(*x->digest));
	if (!x->digest)
		return VV_ENOMEM;
	w->t->ahead += n * sizeof(*x->digest);
	return 0;
}

static void drop_digests(struct work *w, size_t tile)
{
	struct vv_tile *x = &w->t->tile[tile];

	if (!x->digest)
		return;
	vv_mem_free(x->digest);
	x->digest = NULL;
	w->t->ahead -= chunks_of(w->t, x->dirty) * sizeof(*x->digest);
}

static int fill_batch(struct work *w, struct batch *b)
{
	struct vv_tiles *t = w->t;
	size_t chunks = 0;
	int rc = 0;

	b->n = 0;
	b->done = false;
	while (rc == 0 && w->next < t->n_queue && b->n < BATCH && chunks < BATCH_CHUNKS) {
		uint32_t tile = t->queue[w->next++];

		chunks += chunks_of(t, t->tile[tile].dirty);
		if (!t->tile[tile].sifted)
			rc = make_digests(w, tile);
		t->tile[tile].queued = true;
		b->tile[b->n++] = tile;
	}
	return rc;
}

/* Keeps the pool busy with what comes next. */
static int feed(struct work *w)
{
	int rc = 0;

	while (rc == 0 && w->begun - w->sifted < w->size && w->next < w->t->n_queue && w->t->ahead < w->ahead_max) {
		struct batch **b = &w->ring[w->begun % w->size];

		if (!*b)
			*b = vv_mem_new(1, sizeof(**b));
		if (!*b)
			return VV_ENOMEM;
		(*b)->tiles = w->t;
		(*b)->session = w->p->v;
		(*b)->task.run = run_batch;
		rc = fill_batch(w, *b);
		if (rc == 0) {
			w->begun++;
			vv_pool_submit(w->p->v->pool, &(*b)->task);
		}
	}
	return rc;
}

/* ---- sifting -------------------------------------------------------------------------------------------------------------- */

/* The groups of a hashed tile that need not be stored. */
static uint64_t known_groups(struct work *w, size_t tile)
{
	struct vv_tiles *t = w->t;
	struct vv_tile *x = &t->tile[tile];
	struct vv_region *r = t->region[x->region];
	size_t first = vv_tiles_group(t, r, tile);
	const struct vv_digest *d = x->digest;
	uint64_t known = 0;

	for (size_t i = 0; !x->quiet && i < chunks_of(t, x->dirty); i++)
		vv_index_prefetch(&w->p->v->history.index, &d[i]);
	for (uint64_t left = x->dirty; left; left &= left - 1) {
		size_t g = first + (size_t)__builtin_ctzll(left), i = vv_tiles_chunk(t, g);
		bool all = true;

		for (size_t end = vv_tiles_chunk_end(t, r, g); i < end; i++, d++) {
			bool is_known = x->quiet;

			r->now[i] = x->quiet ? r->was[i] : VV_CHUNK_UNKNOWN;
			if (!is_known)
				is_known = vv_pass_known(w->p, r, i, d);
			if (r->now[i] != r->was[i] || !is_known)
				r->changed += vv_region_chunk_len(r, i);
			all = all && is_known;
		}
		if (all)
			known |= left & -left;
	}
	return known;
}

/* What is known is let go: its copies, and the whole tile if nothing else is in it. */
static void sift(struct work *w, size_t tile)
{
	struct vv_tiles *t = w->t;
	struct vv_tile *x = &t->tile[tile];
	struct vv_region *r = t->region[x->region];
	uint64_t known = known_groups(w, tile);

	x->sifted = true;
	pthread_mutex_lock(&t->lock);
	while (x->flags & VV_TILE_COPYING)
		pthread_cond_wait(&t->bell, &t->lock);
	x->todo &= ~known;
	vv_tiles_let_go(t, r, tile, known);
	if (!x->todo) {
		if (t->order.state[tile] == VV_ORDER_SCHEDULED)
			vv_order_release(&t->order, (uint32_t)tile);
		vv_tiles_done(t, tile);
		drop_digests(w, tile);
	} else if (t->waiting) {
		pthread_cond_broadcast(&t->freed);
	}
	pthread_mutex_unlock(&t->lock);
}

/* A step towards sifting the oldest batch: helps with hashing if it is not ready, waits if nothing else is to be done. */
static int sift_batch(struct work *w)
{
	struct vv_tiles *t = w->t;
	struct batch *b = w->ring[w->sifted % w->size];
	bool done;

	pthread_mutex_lock(&t->lock);
	done = b->done;
	pthread_mutex_unlock(&t->lock);
	if (!done && vv_pool_help(w->p->v->pool))
		return 0;
	pthread_mutex_lock(&t->lock);
	while (!b->done)
		pthread_cond_wait(&t->bell, &t->lock);
	pthread_mutex_unlock(&t->lock);
	vv_pool_wait(w->p->v->pool, &b->task);
	w->sifted++;
	if (b->rc)
		return vv_err_restore(&b->error);
	for (size_t k = 0; k < b->n; k++)
		if (!t->tile[b->tile[k]].sifted)
			sift(w, b->tile[k]);
	return 0;
}

/* ---- placing -------------------------------------------------------------------------------------------------------------- */

/* Its turn comes with its batch; a tile that somebody waits for is hashed here, unless a task has begun with it. */
static int make_sifted(struct work *w, size_t tile, bool urgent)
{
	struct vv_tiles *t = w->t;
	struct vv_tile *x = &t->tile[tile];
	struct batch own = { .tiles = t, .session = w->p->v, .n = 1, .tile = { (uint32_t)tile } };
	int rc = 0;

	while (rc == 0 && !x->sifted && !urgent && x->queued && w->sifted < w->begun)
		rc = sift_batch(w);
	if (rc == 0 && x->sifted)
		return 0;
	if (rc == 0)
		rc = make_digests(w, tile);
	if (rc)
		return rc;
	run_batch(&own.task);
	if (own.rc)
		return vv_err_restore(&own.error);
	pthread_mutex_lock(&t->lock);
	while (x->flags & VV_TILE_HASHING)
		pthread_cond_wait(&t->bell, &t->lock);
	pthread_mutex_unlock(&t->lock);
	sift(w, tile);
	return 0;
}

static int place_groups(struct work *w, size_t tile, uint64_t groups, uint32_t *adds)
{
	struct vv_tiles *t = w->t;
	struct vv_tile *x = &t->tile[tile];
	struct vv_region *r = t->region[x->region];
	size_t first = vv_tiles_group(t, r, tile);
	const struct vv_digest *d = x->digest;
	int rc = 0;

	for (uint64_t left = x->dirty; rc == 0 && left; left &= left - 1) {
		size_t k = (size_t)__builtin_ctzll(left), g = first + k, i = vv_tiles_chunk(t, g);
		const uint8_t *p = vv_tiles_bytes(t, r, g);

		for (size_t end = vv_tiles_chunk_end(t, r, g); rc == 0 && i < end; i++, d++, p += r->shape.chunk) {
			bool added = false;

			if (groups >> k & 1 && r->now[i] == VV_CHUNK_UNKNOWN)
				rc = vv_pass_place(w->p, r, i, d, p, (uint32_t)tile, &added);
			*adds += added;
		}
	}
	return rc;
}

/* The tile's content goes into blocks; from now on only `stored` ends it. */
static int place(struct work *w, size_t tile, bool urgent)
{
	struct vv_tiles *t = w->t;
	struct vv_tile *x = &t->tile[tile];
	uint64_t held, todo;
	uint32_t adds = 0;
	int rc = make_sifted(w, tile, urgent);

	pthread_mutex_lock(&t->lock);
	while (x->flags & VV_TILE_COPYING)
		pthread_cond_wait(&t->bell, &t->lock);
	todo = x->todo;
	held = vv_tiles_held(t, t->region[x->region], tile);
	if (todo & ~held)
		x->flags |= VV_TILE_MEMORY;
	t->cells_in_blocks += (size_t)__builtin_popcountll(todo & held);
	pthread_mutex_unlock(&t->lock);
	if (rc || !todo)
		return rc;
	rc = place_groups(w, tile, todo, &adds);
	if (rc)
		return rc;
	pthread_mutex_lock(&t->lock);
	drop_digests(w, tile);
	x->flags |= VV_TILE_PLACED;
	x->in_blocks += adds;
	if (x->in_blocks == 0)
		vv_tiles_done(t, tile);
	pthread_mutex_unlock(&t->lock);
	return 0;
}

/* On the writing thread. */
static void stored(void *arg, uint32_t tile, uint32_t adds)
{
	struct vv_tiles *t = arg;
	struct vv_tile *x;

	pthread_mutex_lock(&t->lock);
	if (tile == VV_FLUSH_FAILED) {
		t->broken = true;
		pthread_cond_broadcast(&t->bell);
		pthread_mutex_unlock(&t->lock);
		return;
	}
	x = &t->tile[tile];
	x->in_blocks -= adds;
	if (x->flags & VV_TILE_PLACED && x->in_blocks == 0)
		vv_tiles_done(t, tile);
	pthread_mutex_unlock(&t->lock);
}

/* What the caller of the checkpoint waits for goes first. */
static int place_must(struct work *w)
{
	struct vv_tiles *t = w->t;
	bool any = t->must;
	int rc = 0;

	for (size_t k = 0; rc == 0 && any && k < t->n_queue; k++) {
		size_t tile = t->queue[k];
		bool must;

		pthread_mutex_lock(&t->lock);
		must = t->tile[tile].flags & VV_TILE_MUST && t->order.state[tile] == VV_ORDER_SCHEDULED;
		if (must) {
			t->tile[tile].flags |= VV_TILE_MEMORY; /* out of the order's hands, but not to be opened yet */
			vv_order_release(&t->order, (uint32_t)tile);
		}
		pthread_mutex_unlock(&t->lock);
		if (must)
			rc = place(w, tile, true);
	}
	return rc == 0 && any ? vv_flush_push(w->p->flush) : rc;
}

/* A thread that waits takes the next cells that are freed: as long as some are on their way to the store, and none in a block
 * that is still being filled, that is sooner than anything placed now. Is somebody still waiting after that? */
static bool wait_for_cells(struct vv_tiles *t)
{
	while (t->waiting && t->rescue && t->cells_in_blocks && !t->broken)
		pthread_cond_wait(&t->bell, &t->lock);
	return t->waiting;
}

static int store_tiles(struct work *w)
{
	struct vv_tiles *t = w->t;
	size_t len = t->tile_groups * t->group_len;
	int rc = place_must(w);

	while (rc == 0) {
		uint32_t tile = VV_ORDER_NONE;
		bool waiting, left;

		rc = feed(w);
		pthread_mutex_lock(&t->lock);
		waiting = t->waiting;
		left = t->order.left;
		pthread_mutex_unlock(&t->lock);
		if (rc || !left)
			break;
		if (!waiting && w->sifted < w->begun && !vv_flush_room(w->p->flush, len)) {
			rc = sift_batch(w);
			continue;
		}
		if (waiting && w->p->pos)
			rc = vv_flush_push(w->p->flush); /* what is freed by it may be what they wait for */
		pthread_mutex_lock(&t->lock);
		waiting = waiting && wait_for_cells(t);
		tile = vv_order_next(&t->order);
		pthread_mutex_unlock(&t->lock);
		if (rc == 0 && tile != VV_ORDER_NONE)
			rc = place(w, tile, waiting);
		if (rc == 0 && waiting)
			rc = vv_flush_push(w->p->flush);
	}
	return rc;
}

/* Waits for every task that was begun, even on failure. */
static void end_work(struct work *w)
{
	for (; w->sifted < w->begun; w->sifted++)
		vv_pool_wait(w->p->v->pool, &w->ring[w->sifted % w->size]->task);
	for (size_t i = 0; i < w->size; i++)
		vv_mem_free(w->ring[i]);
}

int vv_stow_run(struct vv_pass *p)
{
	struct varve *v = p->v;
	struct vv_flush_options opt = v->coding;
	struct work w = { .p = p, .t = &v->tiles };
	uint64_t memory = 0;
	int rc;

	opt.stored = stored;
	opt.arg = &v->tiles;
	for (size_t i = 0; i < p->n_regions; i++)
		memory += p->region[i]->shape.len;
	w.ahead_max = (size_t)(memory / AHEAD_SHARE) + AHEAD_MIN;
	w.size = 8 * (size_t)vv_pool_width(v->pool) + 8;
	w.size = w.size < RING_MAX ? w.size : RING_MAX;
	rc = vv_pass_begin(p, &opt);
	if (rc == 0)
		rc = store_tiles(&w);
	end_work(&w);
	return rc == 0 ? vv_pass_finish(p) : rc;
}
