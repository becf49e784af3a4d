/* The storing of S2's ASYNC_COMMIT: the tiles of an epoch go into its layer.
 *
 * Tiles are hashed ahead on all cores, in the order in which they are expected to be written; this thread sifts them (what is
 * stored already is let go at once) and places the rest into blocks, in the order that core/order.c gives, which changes
 * with what the program's threads do meanwhile. While the sink cannot take more, it goes on sifting. */
#include "base/mem.h"
#include "engine/pass.h"
#include "engine/tiles.h"
#include "track/fence.h"
#include <sys/mman.h>

enum {
	BATCH = 64,          /* tiles, */
	BATCH_CHUNKS = 256,  /* or so many chunks, hashed by one task */
	RING_MAX = 256,      /* tasks */
	AHEAD_MIN = 1 << 20, /* bytes of digests of what is not placed yet: this, */
	AHEAD_SHARE = 256,   /* and the memory divided by this */
};

/* Digests of tiles that are hashed and not yet placed: places of one size, for a tile's chunks each. */
struct shelves {
	struct vv_digest *v;
	size_t len;    /* of the mapping */
	size_t chunks; /* per place */
	uint32_t *free;
	size_t n_free;
};

struct batch {
	struct vv_task task;
	struct work *work;
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
	struct shelves shelves;
	struct batch *ring[RING_MAX];
	size_t size, begun, sifted; /* batches */
	size_t next;                /* in the tiles' queue: to be hashed */
};

/* ---- shelves ------------------------------------------------------------------------------------------------------------ */

static int make_shelves(struct work *w)
{
	struct shelves *s = &w->shelves;
	size_t memory = (size_t)w->p->st.bytes_memory, n;

	s->chunks = w->t->tile_groups * w->t->group_chunks;
	n = (memory / AHEAD_SHARE + AHEAD_MIN) / (s->chunks * sizeof(*s->v));
	n = (n < w->t->n_queue ? n : w->t->n_queue) + 2;
	s->free = vv_mem_new(n, sizeof(*s->free));
	if (!s->free)
		return VV_ENOMEM;
	s->len = n * s->chunks * sizeof(*s->v);
	s->v = mmap(NULL, s->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s->v == MAP_FAILED) {
		s->v = NULL;
		return vv_err_set(VV_ENOMEM, "no memory for digests (%zu bytes)", s->len);
	}
	for (; s->n_free < n; s->n_free++)
		s->free[s->n_free] = (uint32_t)(n - 1 - s->n_free);
	return 0;
}

static void drop_shelves(struct shelves *s)
{
	if (s->v)
		munmap(s->v, s->len);
	vv_mem_free(s->free);
}

static struct vv_digest *digests_of(const struct work *w, size_t tile)
{
	return w->shelves.v + (size_t)(w->t->tile[tile].shelf - 1) * w->shelves.chunks;
}

/* One place is kept for a tile that is wanted out of turn. */
static bool take_shelf(struct work *w, size_t tile, bool out_of_turn)
{
	struct shelves *s = &w->shelves;

	if (w->t->tile[tile].shelf)
		return true;
	if (s->n_free <= (out_of_turn ? 0 : 1))
		return false;
	w->t->tile[tile].shelf = 1 + s->free[--s->n_free];
	return true;
}

static void leave_shelf(struct work *w, size_t tile)
{
	if (w->t->tile[tile].shelf)
		w->shelves.free[w->shelves.n_free++] = w->t->tile[tile].shelf - 1;
	w->t->tile[tile].shelf = 0;
}

/* ---- hashing ------------------------------------------------------------------------------------------------------------ */

/* From the lock until it is taken again nothing changes the bytes: they are copies, or fenced, and who would open the fence
 * waits for HASHING. */
static void begin_batch(struct batch *b)
{
	struct vv_tiles *t = b->work->t;

	pthread_mutex_lock(&t->lock);
	for (size_t k = 0; k < b->n; k++) {
		struct vv_tile *x = &t->tile[b->tile[k]];

		while (x->flags & VV_TILE_COPYING)
			pthread_cond_wait(&t->bell, &t->lock);
		b->reading[k] = !(x->flags & (VV_TILE_HASHED | VV_TILE_HASHING));
		if (b->reading[k])
			x->flags |= VV_TILE_HASHING;
		b->held[k] = vv_tiles_held(t, vv_tiles_region(t, b->tile[k]), b->tile[k]);
	}
	pthread_mutex_unlock(&t->lock);
}

static void hash_tile(struct work *w, size_t tile, uint64_t held)
{
	struct varve *v = w->p->v;
	struct vv_tiles *t = w->t;
	struct vv_region *r = vv_tiles_region(t, tile);
	size_t first = vv_tiles_group(t, r, tile), loaded = v->history.n_loaded;
	struct vv_digest *d = digests_of(w, tile);
	bool quiet = v->dedup;

	for (uint64_t left = vv_tiles_dirty(t, r, tile); left; left &= left - 1) {
		size_t k = (size_t)__builtin_ctzll(left), g = first + k, i = vv_tiles_chunk(t, g);
		const uint8_t *p = held >> k & 1 ? vv_tiles_bytes(t, r, g) : r->p + (uint64_t)g * t->group_len;

		for (size_t end = vv_tiles_chunk_end(t, r, g); i < end; i++, d++, p += r->shape.chunk) {
			const struct vv_digest *old = vv_region_digest(v, r, i);

			v->digest(p, vv_region_chunk_len(r, i), d);
			quiet = quiet && old && vv_digest_equal(old, d) &&
				(r->was[i] == VV_CHUNK_ZERO || r->was[i] - VV_CHUNK_FIRST >= loaded);
		}
	}
	t->tile[tile].quiet = quiet;
}

static void read_batch(void *arg)
{
	struct batch *b = arg;

	for (size_t k = 0; k < b->n; k++)
		if (b->reading[k])
			hash_tile(b->work, b->tile[k], b->held[k]);
}

static void end_batch(struct batch *b, int rc)
{
	struct vv_tiles *t = b->work->t;

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

static void fill_batch(struct work *w, struct batch *b)
{
	struct vv_tiles *t = w->t;
	size_t chunks = 0;

	b->n = 0;
	b->done = false;
	while (w->next < t->n_queue && b->n < BATCH && chunks < BATCH_CHUNKS) {
		uint32_t tile = t->queue[w->next];

		if (!(t->tile[tile].own & VV_TILE_SIFTED) && !take_shelf(w, tile, false))
			break;
		t->tile[tile].own |= VV_TILE_QUEUED;
		chunks += w->shelves.chunks;
		b->tile[b->n++] = tile;
		w->next++;
	}
}

/* Keeps the pool busy with what comes next. */
static int feed(struct work *w)
{
	while (w->begun - w->sifted < w->size && w->next < w->t->n_queue) {
		struct batch **b = &w->ring[w->begun % w->size];

		if (!*b)
			*b = vv_mem_new(1, sizeof(**b));
		if (!*b)
			return VV_ENOMEM;
		(*b)->work = w;
		(*b)->task.run = run_batch;
		fill_batch(w, *b);
		if ((*b)->n == 0)
			break;
		w->begun++;
		vv_pool_submit(w->p->v->pool, &(*b)->task);
	}
	return 0;
}

/* ---- sifting -------------------------------------------------------------------------------------------------------------- */

/* The groups of a hashed tile that need not be stored. */
static uint64_t known_groups(struct work *w, size_t tile, uint64_t dirty)
{
	struct vv_tiles *t = w->t;
	struct vv_region *r = vv_tiles_region(t, tile);
	size_t first = vv_tiles_group(t, r, tile);
	const struct vv_digest *d = digests_of(w, tile);
	bool quiet = t->tile[tile].quiet;
	uint64_t known = 0;

	for (uint64_t left = dirty; left; left &= left - 1) {
		size_t g = first + (size_t)__builtin_ctzll(left), i = vv_tiles_chunk(t, g);
		bool all = true;

		for (size_t end = vv_tiles_chunk_end(t, r, g); i < end; i++, d++) {
			bool is_known = quiet;

			r->now[i] = quiet ? r->was[i] : VV_CHUNK_UNKNOWN;
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
	struct vv_region *r = vv_tiles_region(t, tile);
	uint64_t dirty = vv_tiles_dirty(t, r, tile), known = known_groups(w, tile, dirty);

	x->own |= VV_TILE_SIFTED;
	pthread_mutex_lock(&t->lock);
	while (x->flags & VV_TILE_COPYING)
		pthread_cond_wait(&t->bell, &t->lock);
	vv_tiles_set_todo(t, r, tile, dirty & ~known);
	vv_tiles_let_go(t, r, tile, known);
	if (known == dirty) {
		vv_tiles_done(t, tile);
		leave_shelf(w, tile);
	} else if (t->waiting) {
		pthread_cond_broadcast(&t->freed);
	}
	pthread_mutex_unlock(&t->lock);
}

static void prefetch(const struct work *w, const struct batch *b)
{
	for (size_t k = 0; k < b->n; k++) {
		const struct vv_tile *x = &w->t->tile[b->tile[k]];

		if (!x->shelf || x->quiet)
			continue;
		for (size_t i = 0; i < w->shelves.chunks; i++)
			vv_index_prefetch(&w->p->v->history.index, &digests_of(w, b->tile[k])[i]);
	}
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
	prefetch(w, b);
	for (size_t k = 0; k < b->n; k++)
		if (!(t->tile[b->tile[k]].own & VV_TILE_SIFTED))
			sift(w, b->tile[k]);
	return 0;
}

/* ---- placing -------------------------------------------------------------------------------------------------------------- */

/* Its turn comes with its batch; a tile that somebody waits for is hashed here, unless a task has begun with it. */
static int make_sifted(struct work *w, size_t tile, bool urgent)
{
	struct vv_tiles *t = w->t;
	struct vv_tile *x = &t->tile[tile];
	struct batch own = { .work = w, .n = 1, .tile = { (uint32_t)tile } };
	int rc = 0;

	while (rc == 0 && !(x->own & VV_TILE_SIFTED) && !urgent && x->own & VV_TILE_QUEUED && w->sifted < w->begun)
		rc = sift_batch(w);
	if (rc || x->own & VV_TILE_SIFTED)
		return rc;
	take_shelf(w, tile, true); /* placing it gives it back, so that there always is one */
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
	struct vv_region *r = vv_tiles_region(t, tile);
	size_t first = vv_tiles_group(t, r, tile);
	const struct vv_digest *d = digests_of(w, tile);
	int rc = 0;

	for (uint64_t left = vv_tiles_dirty(t, r, tile); rc == 0 && left; left &= left - 1) {
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
	struct vv_region *r = vv_tiles_region(t, tile);
	uint64_t held, todo;
	uint32_t adds = 0;
	int rc = make_sifted(w, tile, urgent);

	if (rc)
		return rc;
	pthread_mutex_lock(&t->lock);
	while (x->flags & VV_TILE_COPYING)
		pthread_cond_wait(&t->bell, &t->lock);
	todo = vv_tiles_todo(t, r, tile);
	held = vv_tiles_held(t, r, tile);
	if (todo & ~held)
		x->flags |= VV_TILE_MEMORY;
	t->cells_in_blocks += (size_t)__builtin_popcountll(todo & held);
	pthread_mutex_unlock(&t->lock);
	if (!todo)
		return 0;
	rc = place_groups(w, tile, todo, &adds);
	if (rc)
		return rc;
	leave_shelf(w, tile);
	pthread_mutex_lock(&t->lock);
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

	pthread_mutex_lock(&t->lock);
	if (tile == VV_FLUSH_FAILED) {
		t->broken = true;
		pthread_cond_broadcast(&t->bell);
	} else {
		t->tile[tile].in_blocks -= adds;
		if (t->tile[tile].flags & VV_TILE_PLACED && t->tile[tile].in_blocks == 0)
			vv_tiles_done(t, tile);
	}
	pthread_mutex_unlock(&t->lock);
}

/* ---- all of it -------------------------------------------------------------------------------------------------------------- */

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
 * that is still being filled, that is sooner than anything placed now. */
static int serve_waiting(struct work *w, bool *go_on)
{
	struct vv_tiles *t = w->t;
	int rc = w->p->pos ? vv_flush_push(w->p->flush) : 0;

	pthread_mutex_lock(&t->lock);
	*go_on = !(t->waiting && t->rescue && t->cells_in_blocks && !t->broken);
	if (rc == 0 && !*go_on)
		pthread_cond_wait(&t->bell, &t->lock);
	pthread_mutex_unlock(&t->lock);
	return rc;
}

static int place_next(struct work *w, bool waiting)
{
	struct vv_tiles *t = w->t;
	uint32_t tile;
	int rc = 0;

	pthread_mutex_lock(&t->lock);
	tile = vv_order_next(&t->order);
	pthread_mutex_unlock(&t->lock);
	if (tile != VV_ORDER_NONE)
		rc = place(w, tile, waiting);
	return rc == 0 && waiting ? vv_flush_push(w->p->flush) : rc;
}

static int store_tiles(struct work *w)
{
	struct vv_tiles *t = w->t;
	size_t len = t->tile_groups * t->group_len;
	int rc = place_must(w);

	while (rc == 0) {
		bool waiting, left, go_on = true;

		rc = feed(w);
		vv_ahead_step(t);
		pthread_mutex_lock(&t->lock);
		waiting = t->waiting;
		left = t->order.left;
		pthread_mutex_unlock(&t->lock);
		if (rc || !left)
			break;
		if (waiting)
			rc = serve_waiting(w, &go_on);
		if (rc || !go_on)
			continue;
		if (!waiting && w->sifted < w->begun && !vv_flush_room(w->p->flush, len))
			rc = sift_batch(w);
		else
			rc = place_next(w, waiting);
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
	drop_shelves(&w->shelves);
}

int vv_stow_run(struct vv_pass *p)
{
	struct varve *v = p->v;
	struct vv_flush_options opt = v->coding;
	struct work w = { .p = p, .t = &v->tiles };
	int rc;

	opt.prompt = v->tiles.fencing;
	opt.stored = stored;
	opt.arg = &v->tiles;
	w.size = 8 * (size_t)vv_pool_width(v->pool) + 8;
	w.size = w.size < RING_MAX ? w.size : RING_MAX;
	rc = vv_pass_begin(p, &opt);
	if (rc == 0)
		rc = make_shelves(&w);
	if (rc == 0)
		rc = store_tiles(&w);
	end_work(&w);
	return rc == 0 ? vv_pass_finish(p) : rc;
}
