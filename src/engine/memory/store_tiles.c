/* The storing of Nicolae and Cappello 2013's ASYNC_COMMIT: the tiles of an epoch are written to its
 * layer. Tiles are hashed and deduped ahead by hash_tiles.c. This thread places the remaining
 * chunks into blocks, in the order of core/plan/write_order.c. The order changes with the writes of
 * the program's threads. While the sink is full, this thread continues to dedup. Tiles that other
 * ranks will refer to are placed first, in the order of memory, since ask_ranks.c has already
 * announced their positions. */
#include "engine/memory/store_tiles.h"
#include "engine/memory/open_ahead.h"
#include "engine/lost_memory.h"
#include "base/held.h"
#include "base/mem.h"
#include "engine/grains/grain_sets.h"
#include "engine/memory/hash_tiles.h"
#include "store/backend/throughput.h"
#include "track/write_protect.h"
#include <string.h>

/* The program cannot write uncopied tiles that are on their way to the sink. So their amount is
 * limited. The limit keeps the sink busy until this thread wakes up and fills the next block. */
enum { FED = 192 << 10 };                  /* bytes, */
static const double UNNOTICED = 2e-4;      /* seconds that a waiting thread may wait longer */
static const double FED_SECONDS = 5e-3;  /* and the bytes that the sink takes in this time */

/* ---- placing --------------------------------------------------------------------------------- */

struct group_copy {
	uint8_t *to;
	const uint8_t *from;
	size_t len;
};

static void copy_group(void *arg)
{
	const struct group_copy *l = arg;

	memcpy(l->to, l->from, l->len);
}

/* Other threads may write an unprotected group at any time. So the group is copied, and the copy is
 * stored. */
static int copy_unprotected(struct vv_store_tiles *w, const struct vv_region *r, size_t group)
{
	size_t len = w->t->geometry.group_len;

	if (!w->unprotected_copy)
		w->unprotected_copy = vv_mem_new(len, 1);
	if (!w->unprotected_copy)
		return VV_ENOMEM;
	return vv_write_protect_try_read(copy_group, &(struct group_copy){ w->unprotected_copy, r->p + (uint64_t)group * len, vv_tiles_group_len(w->t, r, group) }) < 0 ?
		       vv_lost_memory_error(r) : 0;
}

/* The digest of a copied chunk is computed from the copy. An earlier digest may be outdated. */
static enum vv_place_stability hash_copy(const struct vv_store_tiles *w, const struct vv_region *r, size_t i, const uint8_t *p, const struct vv_digest *found,
				struct vv_digest *now)
{
	w->p->v->ctx.digest(p, vv_region_chunk_len(r, i), now);
	return vv_digest_equal(now, found) ? VV_PLACE_VOLATILE : VV_PLACE_CHANGED;
}

static int place_groups(struct vv_store_tiles *w, size_t tile, uint64_t groups, uint64_t unprotected, uint32_t *adds)
{
	struct vv_tiles *t = w->t;
	struct vv_region *r = vv_tiles_region(t, tile);
	size_t first = vv_tiles_group(t, r, tile);
	const struct vv_digest *d = vv_hash_tiles_digests(w, tile);
	int rc = 0;

	for (uint64_t left = vv_tiles_dirty(t, r, tile); rc == 0 && left; left &= left - 1) {
		size_t k = (size_t)__builtin_ctzll(left), g = first + k, i = vv_tiles_chunk(t, g);
		bool is_unprotected = unprotected >> k & 1;
		const uint8_t *p;

		rc = is_unprotected ? copy_unprotected(w, r, g) : 0;
		p = is_unprotected ? w->unprotected_copy : vv_tiles_bytes(t, r, g);
		for (size_t end = vv_tiles_chunk_end(t, r, g); rc == 0 && i < end; i++, d++, p += r->shape.chunk) {
			enum vv_place_stability how = VV_PLACE_STABLE;
			struct vv_digest now = *d;
			bool added = false;

			if (!(groups >> k & 1) || (r->now[i] != VV_CHUNK_UNKNOWN && !vv_rank_dedup_is_claim(w->p, r->now[i])))
				continue;
			if (is_unprotected)
				how = hash_copy(w, r, i, p, d, &now);
			rc = vv_layer_writer_place(w->p, r, i, &now, p, how, (uint32_t)tile, &added);
			*adds += added;
		}
	}
	return rc;
}

/* Places the tile's content into blocks. From now on only its storing ends the tile. */
static int place(struct vv_store_tiles *w, size_t tile, bool urgent)
{
	struct vv_tiles *t = w->t;
	struct vv_tile *x = &t->geometry.tile[tile];
	struct vv_region *r = vv_tiles_region(t, tile);
	uint64_t held, todo, unprotected;
	uint32_t adds = 0;
	int rc = vv_hash_tiles_tile(w, tile, urgent);

	if (rc)
		return rc;
	pthread_mutex_lock(&t->lock);
	while (x->flags & VV_TILE_COPYING)
		pthread_cond_wait(&t->work_cond, &t->lock);
	todo = vv_tiles_todo(t, r, tile);
	held = vv_tiles_copied(t, r, tile);
	unprotected = todo & ~held & (x->flags & VV_TILE_OPEN ? UINT64_MAX : vv_tiles_unprotectable(t, r, tile));
	if (todo & ~held & ~unprotected)
		x->flags |= VV_TILE_READ_IN_PLACE;
	t->waiters.cells_in_blocks += (size_t)__builtin_popcountll(todo & held);
	t->waiters.groups_in_blocks += (size_t)__builtin_popcountll(todo);
	pthread_mutex_unlock(&t->lock);
	if (!todo)
		return 0;
	rc = place_groups(w, tile, todo, unprotected, &adds);
	if (rc)
		return rc;
	vv_hash_tiles_release(w, tile);
	pthread_mutex_lock(&t->lock);
	x->flags |= VV_TILE_PLACED;
	x->in_blocks += adds;
	if (x->in_blocks == 0)
		vv_tiles_done(t, tile);
	pthread_mutex_unlock(&t->lock);
	return 0;
}

/* ---- the flush ------------------------------------------------------------------------------- */

/* Places the tiles that the caller of the checkpoint waits for. They come first. */
static int place_waited(struct vv_store_tiles *w)
{
	struct vv_tiles *t = w->t;
	bool any = t->waiters.caller_waits_for;
	int rc = 0;

	for (size_t k = 0; rc == 0 && any && k < t->plan.n_queue; k++) {
		size_t tile = t->plan.queue[k];
		bool must;

		pthread_mutex_lock(&t->lock);
		must = t->geometry.tile[tile].flags & VV_TILE_CALLER_WAITS && t->plan.order.state[tile] == VV_WRITE_ORDER_SCHEDULED;
		if (must) {
			/* Taken from the order, but not to be unprotected yet. */
			t->geometry.tile[tile].flags |= VV_TILE_READ_IN_PLACE;
			vv_write_order_release(&t->plan.order, (uint32_t)tile);
		}
		pthread_mutex_unlock(&t->lock);
		if (must)
			rc = place(w, tile, true);
	}
	return rc == 0 && any ? vv_block_writer_push(w->p->block_writer) : rc;
}

/* A waiting thread takes the next free cells. If cells are on their way to the store, they become
 * free sooner than a tile placed now. So blocks that are being filled are pushed. This thread waits
 * only if the sink is full: later waits need free cells, too. */
static int serve_waiting(struct vv_store_tiles *w, bool *go_on)
{
	struct vv_tiles *t = w->t;
	int rc = w->p->pos ? vv_block_writer_push(w->p->block_writer) : 0;
	bool room = vv_block_writer_has_room(w->p->block_writer, 0);

	pthread_mutex_lock(&t->lock);
	*go_on = room || !(t->waiters.waiting && t->waiters.copy_when_freed && t->waiters.cells_in_blocks && !t->waiters.broken);
	if (rc == 0 && !*go_on)
		pthread_cond_wait(&t->work_cond, &t->lock);
	pthread_mutex_unlock(&t->lock);
	return rc;
}

static int place_one(struct vv_store_tiles *w, bool waiting, bool *placed)
{
	struct vv_tiles *t = w->t;
	uint32_t tile;

	pthread_mutex_lock(&t->lock);
	tile = vv_write_order_next(&t->plan.order);
	pthread_mutex_unlock(&t->lock);
	*placed = tile != VV_WRITE_ORDER_NONE;
	return *placed ? place(w, tile, waiting) : 0;
}

/* A thread that waits for a tile hardly notices the time for a few more in the same block. Without
 * them a fast store would get many small writes. */
static int place_next(struct vv_store_tiles *w, bool waiting)
{
	uint64_t enough = w->p->pos + (uint64_t)(waiting ? vv_throughput_rate(w->p->put->store) * UNNOTICED : 0);
	bool placed;
	int rc;

	do
		rc = place_one(w, waiting, &placed);
	while (rc == 0 && placed && w->p->pos < enough && vv_block_writer_has_room(w->p->block_writer, 0));
	return rc == 0 && waiting ? vv_block_writer_push(w->p->block_writer) : rc;
}

/* Places tiles that other ranks refer to, at the announced positions. */
static int place_shared_tiles(struct vv_store_tiles *w)
{
	int rc = 0;

	for (size_t k = 0; rc == 0 && k < w->n_shared_tiles; k++) {
		bool mine;

		vv_open_ahead_step(w->t);
		pthread_mutex_lock(&w->t->lock);
		mine = vv_write_order_take(&w->t->plan.order, w->shared_tiles[k]);
		pthread_mutex_unlock(&w->t->lock);
		if (mine)
			rc = place(w, w->shared_tiles[k], false);
	}
	if (w->p->claims)
		w->p->claims->kept_promises = true;
	return rc;
}

/* Storing comes before unprotecting ahead if the sink has room, there are copies to store, and no
 * thread waits. It does not come before copying: a tile stored in place cannot be written
 * meanwhile. */
static bool should_store_first(struct vv_store_tiles *w, size_t len)
{
	struct vv_tiles *t = w->t;
	bool copies;

	pthread_mutex_lock(&t->lock);
	copies = !t->waiters.waiting && vv_write_order_copies_first(&t->plan.order);
	pthread_mutex_unlock(&t->lock);
	return copies && vv_block_writer_has_room(w->p->block_writer, len);
}

/* Has the sink so much to do that more would only block the program's writes? Copies do no harm:
 * there the cells are the bottleneck. Called with the lock held. */
static bool is_fed(struct vv_store_tiles *w)
{
	struct vv_tiles *t = w->t;
	double bytes = (double)t->waiters.groups_in_blocks * (double)t->geometry.group_len, rate = t->protection.is_protecting ? vv_throughput_rate(w->p->put->store) : 0;

	VV_HELD(&w->t->lock);
	return rate > 0 && bytes >= FED && bytes >= FED_SECONDS * rate && !t->waiters.waiting && !t->waiters.broken && !vv_write_order_copies_first(&t->plan.order);
}

/* Waits until a block is written or a thread waits at a write fault. All placed tiles are on their
 * way, so one of these will happen. */
static int wait_for_store(struct vv_store_tiles *w)
{
	struct vv_tiles *t = w->t;
	int rc = vv_block_writer_push(w->p->block_writer);

	pthread_mutex_lock(&t->lock);
	if (rc == 0 && is_fed(w))
		pthread_cond_wait(&t->work_cond, &t->lock);
	pthread_mutex_unlock(&t->lock);
	return rc;
}

int vv_store_tiles_run(struct vv_store_tiles *w)
{
	struct vv_tiles *t = w->t;
	size_t len = t->geometry.tile_groups * t->geometry.group_len;
	int rc = vv_new_data_place(w->p);

	if (rc == 0)
		rc = place_shared_tiles(w);
	if (rc == 0)
		rc = place_waited(w);
	while (rc == 0) {
		bool waiting, left, fed, go_on = true;

		rc = vv_hash_tiles_feed(w);
		if (!should_store_first(w, len))
			vv_open_ahead_step(t);
		pthread_mutex_lock(&t->lock);
		waiting = t->waiters.waiting;
		left = t->plan.order.left;
		fed = is_fed(w);
		pthread_mutex_unlock(&t->lock);
		if (rc || !left)
			break;
		if (waiting)
			rc = serve_waiting(w, &go_on);
		if (rc || !go_on)
			continue;
		if (!waiting && w->deduped < w->begun && (fed || !vv_block_writer_has_room(w->p->block_writer, len)))
			rc = vv_hash_tiles_step(w);
		else if (fed)
			rc = wait_for_store(w);
		else
			rc = place_next(w, waiting);
	}
	return rc;
}

int vv_store_tiles_begin(struct vv_layer_writer *p, bool all)
{
	struct vv_store_tiles *w = vv_mem_new(1, sizeof(*w));
	int rc;

	if (!w)
		return VV_ENOMEM;
	p->storing = w;
	w->p = p;
	w->t = p->v->tiles;
	rc = vv_layer_writer_begin(p);
	return rc ? rc : vv_hash_tiles_open(w, all);
}

void vv_store_tiles_free(struct vv_layer_writer *p)
{
	struct vv_store_tiles *w = p->storing;

	if (!w)
		return;
	vv_hash_tiles_close(w);
	vv_mem_free(w->unprotected_copy);
	vv_mem_free(w->shared_tiles);
	vv_mem_free(w);
	p->storing = NULL;
}
