/* With several ranks, all tiles are first hashed and deduped. Then the other ranks are asked for
 * the remaining content. Content that other ranks will refer to gets its position before anything
 * is placed. */
#include "engine/epoch/ask_ranks.h"
#include "engine/memory/hash_tiles.h"
#include "engine/memory/store_tiles.h"
#include "base/mem.h"
#include "engine/write/shared_file.h"
#include "engine/grains/grain_sets.h"
#include "engine/ranks/group.h"

static bool is_state(const struct vv_layer_writer *p, uint32_t now, enum vv_claim_state state)
{
	return vv_rank_dedup_is_claim(p, now) && p->claims->state[vv_rank_dedup_number(p, now)] == state;
}

static bool has_shared(const struct vv_store_tiles *w, const struct vv_region *r, size_t tile, uint64_t groups)
{
	size_t first = vv_tiles_group(w->t, r, tile);

	for (; groups; groups &= groups - 1) {
		size_t g = first + (size_t)__builtin_ctzll(groups);

		for (size_t i = vv_tiles_chunk(w->t, g); i < vv_tiles_chunk_end(w->t, r, g); i++)
			if (is_state(w->p, r->now[i], VV_CLAIM_SHARED))
				return true;
	}
	return false;
}

/* Assigns the positions that the tile's content will get when it is placed. */
static void assign_tile(struct vv_store_tiles *w, const struct vv_region *r, size_t tile, uint64_t groups, uint64_t *pos)
{
	struct vv_claims *c = w->p->claims;
	size_t first = vv_tiles_group(w->t, r, tile);

	for (; groups; groups &= groups - 1) {
		size_t g = first + (size_t)__builtin_ctzll(groups);

		for (size_t i = vv_tiles_chunk(w->t, g); i < vv_tiles_chunk_end(w->t, r, g); i++) {
			size_t k = vv_rank_dedup_number(w->p, r->now[i]);

			if (!vv_rank_dedup_is_claim(w->p, r->now[i]) || c->state[k] == VV_CLAIM_REMOTE || c->pos[k] != UINT64_MAX)
				continue;
			c->pos[k] = *pos;
			*pos += vv_region_chunk_len(r, i);
		}
	}
}

static int assign_positions(struct vv_layer_writer *p)
{
	struct vv_store_tiles *w = p->storing;
	struct vv_tiles *t = w->t;
	uint64_t pos = 0;

	w->shared_tiles = vv_mem_new(t->plan.n_queue, sizeof(*w->shared_tiles));
	if (!w->shared_tiles)
		return VV_ENOMEM;
	vv_new_data_assign_positions(p, &pos);
	for (size_t i = 0; i < t->geometry.n_regions; i++) {
		const struct vv_region *r = t->geometry.region[i];

		for (size_t tile = r->tracked->first_tile; tile < r->tracked->first_tile + r->tracked->n_tiles; tile++) {
			uint64_t todo = vv_tiles_todo(t, r, tile);

			if (!todo || !has_shared(w, r, tile, todo))
				continue;
			w->shared_tiles[w->n_shared_tiles++] = (uint32_t)tile;
			assign_tile(w, r, tile, todo, &pos);
		}
	}
	return 0;
}

/* Releases content that other ranks store. */
static void drop_remote(struct vv_store_tiles *w, size_t tile)
{
	struct vv_tiles *t = w->t;
	struct vv_region *r = vv_tiles_region(t, tile);
	uint64_t todo = vv_tiles_todo(t, r, tile), known = 0;
	size_t first = vv_tiles_group(t, r, tile);

	for (uint64_t left = todo; left; left &= left - 1) {
		size_t g = first + (size_t)__builtin_ctzll(left);
		bool all = true;

		for (size_t i = vv_tiles_chunk(t, g); i < vv_tiles_chunk_end(t, r, g); i++) {
			if (is_state(w->p, r->now[i], VV_CLAIM_REMOTE))
				w->p->st.bytes_dup_ranks += vv_region_chunk_len(r, i);
			else
				all = all && !vv_rank_dedup_is_claim(w->p, r->now[i]);
		}
		known |= all ? left & -left : 0;
	}
	if (known)
		vv_hash_tiles_drop(w, tile, todo, known);
}

static int hash_all(struct vv_store_tiles *w)
{
	int rc = 0;

	while (rc == 0 && (w->next < w->t->plan.n_queue || w->deduped < w->begun)) {
		rc = vv_hash_tiles_feed(w);
		if (rc == 0)
			rc = vv_hash_tiles_step(w);
	}
	return rc ? rc : w->rc;
}

static void set_asking_ranks(struct vv_tiles *t, bool on)
{
	pthread_mutex_lock(&t->lock);
	t->waiters.asking_ranks = on;
	pthread_mutex_unlock(&t->lock);
}

void vv_ask_ranks_expect(struct varve *v, bool coming)
{
	set_asking_ranks(v->tiles, coming);
}

int vv_ask_ranks_run(struct vv_layer_writer *p, int rc)
{
	if (rc == 0)
		rc = vv_rank_dedup_begin(p);
	if (rc == 0)
		rc = vv_store_tiles_begin(p, p->claims != NULL);
	if (rc == 0 && p->claims)
		rc = vv_new_data_drop_known(p, vv_tiles_end_number(p->v->tiles));
	if (rc == 0 && p->claims)
		rc = hash_all(p->storing);
	rc = vv_rank_dedup_exchange(p, rc, assign_positions);
	if (rc == 0)
		vv_new_data_after_exchange(p);
	for (size_t k = 0; rc == 0 && p->claims && k < p->storing->t->plan.n_queue; k++)
		drop_remote(p->storing, p->storing->t->plan.queue[k]);
	if (rc == 0 && p->v->ctx.group->aggregate != 1)
		rc = vv_shared_file_begin(p, vv_rank_dedup_comm(p->v));
	set_asking_ranks(p->v->tiles, false);
	return rc;
}
