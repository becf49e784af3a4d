/* Tiles are hashed on all cores and deduped, both in the expected order of writes. Chunks that are
 * already stored are released at once. Other chunks become claims if there are other ranks to ask,
 * or wait to be placed. */
#include "engine/memory/hash_tiles.h"
#include "engine/memory/store_tiles.h"
#include "engine/lost_memory.h"
#include "base/clock.h"
#include "base/held.h"
#include "base/mem.h"
#include "track/write_protect.h"
#include "track/memory.h"

enum {
	BATCH = 256,         /* tiles */
	BATCH_CHUNKS = 256,  /* dirty chunks: a task ends at this or BATCH */
	/* Bytes: digests of chunks that are not placed yet take at most this and the next. */
	AHEAD_MIN = 1 << 20,
	AHEAD_SHARE = 4096,  /* the memory divided by this is added */
};

struct vv_batch {
	struct vv_task task;
	struct vv_store_tiles *work;
	size_t n;
	uint32_t tile[BATCH];
	uint64_t held[BATCH]; /* groups that are read from their copies */
	uint64_t copy[BATCH]; /* those that are copied first */
	bool reading[BATCH];
	bool done; /* under the tiles' lock */
	int rc;
	struct vv_err_state error;
	struct vv_region *region; /* the one being read */
};

/* ---- digest slots ---------------------------------------------------------------------------- */

size_t vv_hash_tiles_memory(uint64_t memory, size_t chunk)
{
	uint64_t all = memory / chunk * sizeof(struct vv_digest), most = memory / AHEAD_SHARE + AHEAD_MIN;

	return (size_t)(all < most ? all : most);
}

static int make_digest_slots(struct vv_store_tiles *w, bool all)
{
	struct vv_digest_slots *s = &w->digest_slots;
	size_t n;

	s->chunks = w->t->geometry.tile_groups * w->t->geometry.group_chunks;
	n = vv_hash_tiles_memory(w->p->st.bytes_memory, w->t->geometry.group_len / w->t->geometry.group_chunks) / (s->chunks * sizeof(*s->v));
	n = (n < w->t->plan.n_queue && !all ? n : w->t->plan.n_queue) + 2;
	s->free = vv_mem_new(n, sizeof(*s->free));
	if (!s->free)
		return VV_ENOMEM;
	s->len = n * s->chunks * sizeof(*s->v);
	s->v = vv_mem_map(s->len);
	if (!s->v)
		return VV_ENOMEM;
	for (; s->n_free < n; s->n_free++)
		s->free[s->n_free] = (uint32_t)(n - 1 - s->n_free);
	return 0;
}

static void free_digest_slots(struct vv_digest_slots *s)
{
	vv_mem_unmap(s->v, s->len);
	vv_mem_free(s->free);
}

struct vv_digest *vv_hash_tiles_digests(const struct vv_store_tiles *w, size_t tile)
{
	return w->digest_slots.v + (size_t)(w->t->geometry.tile[tile].digest_slot - 1) * w->digest_slots.chunks;
}

/* One slot is reserved for a tile that is needed out of turn. */
static bool take_digest_slot(struct vv_store_tiles *w, size_t tile, bool out_of_turn)
{
	struct vv_digest_slots *s = &w->digest_slots;

	if (w->t->geometry.tile[tile].digest_slot)
		return true;
	if (s->n_free <= (out_of_turn ? 0 : 1))
		return false;
	w->t->geometry.tile[tile].digest_slot = 1 + s->free[--s->n_free];
	return true;
}

void vv_hash_tiles_release(struct vv_store_tiles *w, size_t tile)
{
	if (w->t->geometry.tile[tile].digest_slot)
		w->digest_slots.free[w->digest_slots.n_free++] = w->t->geometry.tile[tile].digest_slot - 1;
	w->t->geometry.tile[tile].digest_slot = 0;
}

/* ---- hashing --------------------------------------------------------------------------------- */

/* Nothing changes the bytes until end_batch. They are copies or write-protected, and a thread that
 * unprotects them waits until HASHING is cleared. */
static void begin_batch(struct vv_batch *b)
{
	struct vv_tiles *t = b->work->t;

	pthread_mutex_lock(&t->lock);
	for (size_t k = 0; k < b->n; k++) {
		struct vv_tile *x = &t->geometry.tile[b->tile[k]];

		while (x->flags & VV_TILE_COPYING)
			pthread_cond_wait(&t->work_cond, &t->lock);
		b->reading[k] = !(x->flags & (VV_TILE_HASHED | VV_TILE_HASHING));
		if (b->reading[k])
			x->flags |= VV_TILE_HASHING;
		b->held[k] = vv_tiles_copied(t, vv_tiles_region(t, b->tile[k]), b->tile[k]);
	}
	pthread_mutex_unlock(&t->lock);
}

/* next: the bytes to be hashed after these; NULL: the adjacent bytes. */
static void hash_chunk(const struct varve *v, const uint8_t *p, size_t n, const uint8_t *next, struct vv_digest *out)
{
	if (next && v->ctx.digest_kind == VV_DIGEST_XXH3)
		vv_digest_xxh3_then(p, n, next, out);
	else
		v->ctx.digest(p, n, out);
}

/* The bytes of a group: in its cell if `held`, else in the region. */
static const uint8_t *group_bytes(const struct vv_tiles *t, const struct vv_region *r, size_t g, bool held)
{
	return held ? vv_tiles_bytes(t, r, g) : r->p + (uint64_t)g * t->geometry.group_len;
}

void vv_hash_tiles_hash(struct varve *v, size_t tile, uint64_t held, struct vv_digest *d)
{
	struct vv_tiles *t = v->tiles;
	struct vv_region *r = vv_tiles_region(t, tile);
	size_t first = vv_tiles_group(t, r, tile), loaded = v->index_cache->n_loaded;
	bool quiet = v->ctx.dedup;

	for (uint64_t left = vv_tiles_dirty(t, r, tile), rest; left; left = rest) {
		size_t k = (size_t)__builtin_ctzll(left), g = first + k, i = vv_tiles_chunk(t, g);
		const uint8_t *p = group_bytes(t, r, g, held >> k & 1), *next = NULL;

		rest = left & (left - 1);
		if (rest) {
			size_t then = (size_t)__builtin_ctzll(rest);

			next = group_bytes(t, r, first + then, held >> then & 1);
		}
		for (size_t end = vv_tiles_chunk_end(t, r, g); i < end; i++, d++, p += r->shape.chunk) {
			const struct vv_digest *old = vv_index_cache_was(v->index_cache, r, i);

			hash_chunk(v, p, vv_region_chunk_len(r, i), i + 1 < end ? NULL : next, d);
			quiet = quiet && old && vv_digest_equal(old, d) &&
				(r->was[i] == VV_CHUNK_ZERO || r->was[i] - VV_CHUNK_FIRST >= loaded);
		}
	}
	t->geometry.tile[tile].is_unchanged = quiet;
}

static void read_batch(void *arg)
{
	struct vv_batch *b = arg;

	for (size_t k = 0; k < b->n; k++)
		if (b->reading[k]) {
			b->region = vv_tiles_region(b->work->t, b->tile[k]);
			vv_tiles_copy(b->work->t, b->region, b->tile[k], b->copy[k]);
			vv_hash_tiles_hash(b->work->p->v, b->tile[k], b->held[k], vv_hash_tiles_digests(b->work, b->tile[k]));
		}
}

void vv_hash_tiles_note_cost(struct vv_tiles *t, size_t groups, double seconds)
{
	static const double MEMORY = 1 << 18; /* pages */

	VV_HELD(&t->lock);
	t->meters.hashed_s += seconds;
	t->meters.hashed_pages += (double)(groups * t->geometry.group_len) / (double)vv_memory_page();
	if (t->meters.hashed_pages > MEMORY) {
		t->meters.hashed_s /= 2;
		t->meters.hashed_pages /= 2;
	}
}

static void end_batch(struct vv_batch *b, int rc, double seconds)
{
	struct vv_tiles *t = b->work->t;
	size_t groups = 0;

	pthread_mutex_lock(&t->lock);
	for (size_t k = 0; k < b->n; k++) {
		struct vv_tile *x = &t->geometry.tile[b->tile[k]];

		if (!b->reading[k])
			continue;
		groups += (size_t)__builtin_popcountll(vv_tiles_dirty(t, vv_tiles_region(t, b->tile[k]), b->tile[k]));
		x->flags = (uint8_t)((x->flags & ~VV_TILE_HASHING) | (rc ? 0 : VV_TILE_HASHED));
	}
	vv_hash_tiles_note_cost(t, groups, seconds);
	b->done = true;
	b->rc = rc;
	pthread_cond_broadcast(&t->work_cond);
	if (t->waiters.in_handler) /* tiles may be protected without is_protecting */
		pthread_cond_broadcast(&t->fault_cond);
	pthread_mutex_unlock(&t->lock);
}

/* If the program has unmapped a declared region, the batch fails with an error instead of a
 * crash. */
static void run_batch(struct vv_task *task)
{
	struct vv_batch *b = (struct vv_batch *)task;
	double start;
	int rc;

	begin_batch(b);
	start = vv_clock_own_s();
	rc = vv_write_protect_try_read(read_batch, b);
	if (rc == VV_EINVAL)
		rc = vv_lost_memory_error(b->region);
	if (rc)
		vv_err_save(rc, &b->error);
	end_batch(b, rc, vv_clock_own_s() - start);
}

static size_t dirty_chunks(const struct vv_tiles *t, size_t tile)
{
	return (size_t)__builtin_popcountll(vv_tiles_dirty(t, vv_tiles_region(t, tile), tile)) * t->geometry.group_chunks;
}

/* Takes cells for the tile's copy. False: there will be enough when other tiles are stored. */
static bool take_cells(struct vv_store_tiles *w, size_t tile, uint64_t *copy)
{
	struct vv_tiles *t = w->t;
	struct vv_region *r = vv_tiles_region(t, tile);
	bool later = false;

	pthread_mutex_lock(&t->lock);
	*copy = vv_tiles_todo(t, r, tile) & ~vv_tiles_copied(t, r, tile);
	if (!vv_tiles_take_cells(t, r, tile, *copy)) {
		*copy = 0;
		later = t->copies.n_free < t->copies.n_granted;
	}
	pthread_mutex_unlock(&t->lock);
	return !later;
}

static void fill_batch(struct vv_store_tiles *w, struct vv_batch *b)
{
	struct vv_tiles *t = w->t;
	size_t chunks = 0;

	b->n = 0;
	b->done = false;
	while (w->next < t->plan.n_queue && b->n < BATCH && chunks < BATCH_CHUNKS) {
		uint32_t tile = t->plan.queue[w->next];

		b->copy[b->n] = 0;
		if (!(t->geometry.tile[tile].queue_flags & VV_TILE_DEDUPED) &&
		    (!take_digest_slot(w, tile, false) || (w->copies && !take_cells(w, tile, &b->copy[b->n]))))
			break;
		t->geometry.tile[tile].queue_flags |= VV_TILE_QUEUED;
		chunks += dirty_chunks(t, tile);
		b->tile[b->n++] = tile;
		w->next++;
	}
}

int vv_hash_tiles_feed(struct vv_store_tiles *w)
{
	while (w->begun - w->deduped < w->size && w->next < w->t->plan.n_queue) {
		struct vv_batch **b = &w->ring[w->begun % w->size];

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
		vv_pool_submit(w->p->v->ctx.pool, &(*b)->task);
	}
	return 0;
}

/* ---- dedup ----------------------------------------------------------------------------------- */

/* The number of a chunk, in the order of memory. */
static uint64_t number(const struct vv_tiles *t, const struct vv_region *r, size_t i)
{
	return (uint64_t)r->tracked->first_tile * t->geometry.tile_groups * t->geometry.group_chunks + i;
}

uint64_t vv_hash_tiles_find_known(struct vv_layer_writer *p, size_t tile, const struct vv_digest *d, int *rc)
{
	struct vv_tiles *t = p->v->tiles;
	struct vv_region *r = vv_tiles_region(t, tile);
	size_t first = vv_tiles_group(t, r, tile);
	bool quiet = t->geometry.tile[tile].is_unchanged;
	uint64_t known = 0;

	for (uint64_t left = vv_tiles_dirty(t, r, tile); left; left &= left - 1) {
		size_t g = first + (size_t)__builtin_ctzll(left), i = vv_tiles_chunk(t, g);
		uint64_t claimed = 0;
		bool all = true;

		for (size_t end = vv_tiles_chunk_end(t, r, g); i < end; i++, d++) {
			bool is_known = quiet;

			r->now[i] = quiet ? r->was[i] : VV_CHUNK_UNKNOWN;
			if (!is_known)
				is_known = vv_layer_writer_known(p, r, i, d);
			if (!is_known && p->claims)
				*rc = *rc ? *rc : vv_rank_dedup_claim(p, r, i, number(t, r, i), d);
			if (r->now[i] != r->was[i] || !is_known)
				r->tracked->changed += vv_region_chunk_len(r, i);
			if (is_known && vv_rank_dedup_is_claim(p, r->now[i]))
				claimed += vv_region_chunk_len(r, i);
			all = all && is_known;
		}
		if (all)
			known |= left & -left;
		else
			/* These are counted when the group is placed, or when other ranks store the
			 * chunks. */
			p->st.bytes_dup_space -= claimed;
	}
	return known;
}

void vv_hash_tiles_drop(struct vv_store_tiles *w, size_t tile, uint64_t todo, uint64_t known)
{
	struct vv_tiles *t = w->t;
	struct vv_region *r = vv_tiles_region(t, tile);

	pthread_mutex_lock(&t->lock);
	while (t->geometry.tile[tile].flags & VV_TILE_COPYING)
		pthread_cond_wait(&t->work_cond, &t->lock);
	vv_tiles_set_todo(t, r, tile, todo & ~known);
	vv_tiles_free_cells(t, r, tile, known);
	if (known == todo) {
		vv_tiles_done(t, tile);
		vv_hash_tiles_release(w, tile);
	} else if (t->waiters.waiting) {
		pthread_cond_broadcast(&t->fault_cond);
	}
	pthread_mutex_unlock(&t->lock);
}

static void drop_known(struct vv_store_tiles *w, size_t tile)
{
	struct vv_tiles *t = w->t;
	uint64_t known = vv_hash_tiles_find_known(w->p, tile, vv_hash_tiles_digests(w, tile), &w->rc);

	t->geometry.tile[tile].queue_flags |= VV_TILE_DEDUPED;
	vv_hash_tiles_drop(w, tile, vv_tiles_dirty(t, vv_tiles_region(t, tile), tile), known);
}

static void prefetch(const struct vv_store_tiles *w, const struct vv_batch *b)
{
	for (size_t k = 0; k < b->n; k++) {
		const struct vv_tile *x = &w->t->geometry.tile[b->tile[k]];

		if (!x->digest_slot || x->is_unchanged)
			continue;
		for (size_t i = 0, n = dirty_chunks(w->t, b->tile[k]); i < n; i++)
			vv_index_prefetch(&w->p->v->index_cache->index, &vv_hash_tiles_digests(w, b->tile[k])[i]);
	}
}

int vv_hash_tiles_step(struct vv_store_tiles *w)
{
	struct vv_tiles *t = w->t;
	struct vv_batch *b = w->ring[w->deduped % w->size];
	bool done;

	pthread_mutex_lock(&t->lock);
	done = b->done;
	pthread_mutex_unlock(&t->lock);
	if (!done && vv_pool_help(w->p->v->ctx.pool))
		return 0;
	pthread_mutex_lock(&t->lock);
	while (!b->done)
		pthread_cond_wait(&t->work_cond, &t->lock);
	pthread_mutex_unlock(&t->lock);
	vv_pool_wait(w->p->v->ctx.pool, &b->task);
	w->deduped++;
	if (b->rc)
		return vv_err_restore(&b->error);
	prefetch(w, b);
	for (size_t k = 0; k < b->n; k++)
		if (!(t->geometry.tile[b->tile[k]].queue_flags & VV_TILE_DEDUPED))
			drop_known(w, b->tile[k]);
	return 0;
}

/* Waits until a tile is stored and its cells are free. False: no tile has cells that will be. */
static bool await_cells(struct vv_store_tiles *w, int *rc)
{
	struct vv_tiles *t = w->t;
	size_t before;
	bool some;

	pthread_mutex_lock(&t->lock);
	before = t->copies.n_free;
	pthread_mutex_unlock(&t->lock);
	*rc = vv_block_writer_push(w->p->block_writer);
	pthread_mutex_lock(&t->lock);
	some = t->waiters.cells_in_blocks != 0;
	while (*rc == 0 && t->waiters.cells_in_blocks && t->copies.n_free == before && !t->waiters.broken)
		pthread_cond_wait(&t->work_cond, &t->lock);
	pthread_mutex_unlock(&t->lock);
	return some;
}

int vv_hash_tiles_tile(struct vv_store_tiles *w, size_t tile, bool urgent)
{
	struct vv_tiles *t = w->t;
	struct vv_tile *x = &t->geometry.tile[tile];
	struct vv_batch own = { .work = w, .n = 1, .tile = { (uint32_t)tile } };
	int rc = 0;

	while (rc == 0 && w->copies && !(x->queue_flags & (VV_TILE_DEDUPED | VV_TILE_QUEUED)) && await_cells(w, &rc))
		rc = rc ? rc : vv_hash_tiles_feed(w);
	while (rc == 0 && !(x->queue_flags & VV_TILE_DEDUPED) && !urgent && x->queue_flags & VV_TILE_QUEUED && w->deduped < w->begun)
		rc = vv_hash_tiles_step(w);
	if (rc || x->queue_flags & VV_TILE_DEDUPED)
		return rc;
	/* Always succeeds, since placing the tile frees the slot. */
	take_digest_slot(w, tile, true);
	for (bool hashed = false; !hashed;) { /* another batch with this tile may fail */
		run_batch(&own.task);
		if (own.rc)
			return vv_err_restore(&own.error);
		pthread_mutex_lock(&t->lock);
		while (x->flags & VV_TILE_HASHING)
			pthread_cond_wait(&t->work_cond, &t->lock);
		hashed = x->flags & VV_TILE_HASHED;
		pthread_mutex_unlock(&t->lock);
	}
	drop_known(w, tile);
	return 0;
}

/* With mode=sync most trackers write-protect nothing. Bytes that other threads may write are copied
 * before they are stored, and hashed after that. So new bytes are better copied first, on all
 * cores, and hashed once. Where pages are protected, a thread may wait for a tile whose cells are
 * still empty. */
static bool should_copy(const struct vv_store_tiles *w)
{
	const struct varve *v = w->p->v;

	return !v->ctx.async && v->tracking.tracker != VV_BY_WRITE_PROTECT && !w->p->claims && w->t->copies.n_granted &&
		2 * v->stats.bytes_new >= v->stats.bytes_dirty;
}

int vv_hash_tiles_open(struct vv_store_tiles *w, bool all)
{
	w->copies = should_copy(w);
	w->size = 8 * (size_t)vv_pool_width(w->p->v->ctx.pool) + 8;
	w->size = w->size < VV_STORE_TILES_RING ? w->size : VV_STORE_TILES_RING;
	return make_digest_slots(w, all);
}

void vv_hash_tiles_close(struct vv_store_tiles *w)
{
	for (; w->deduped < w->begun; w->deduped++)
		vv_pool_wait(w->p->v->ctx.pool, &w->ring[w->deduped % w->size]->task);
	for (size_t i = 0; i < w->size; i++)
		vv_mem_free(w->ring[i]);
	free_digest_slots(&w->digest_slots);
}
