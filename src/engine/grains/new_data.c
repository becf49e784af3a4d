#include "engine/grains/new_data.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/ranks/group.h"
#include "engine/write/rank_dedup.h"
#include "engine/grains/grain_sets.h"
#include <math.h>
#include <string.h>

enum {
	LEAST = 2 * VV_SINK_ROOMS, /* blocks */
	STEP = 64,  /* pages hashed by one task */
	AHEAD = 8,  /* pages whose digests are prefetched in the index */
	BLOCK_PAGES = VV_NEW_DATA_BLOCK / VV_NEW_DATA_PAGE,
};

void vv_new_data_init(struct vv_new_data *s, const struct varve *v)
{
	static const uint8_t zero[VV_NEW_DATA_PAGE];

	*s = (struct vv_new_data){ .space = vv_space_host() };
	/* Never destroyed: in a child of fork, threads of the parent may seem to wait. */
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->written, NULL);
	pthread_mutex_init(&s->adjust.lock, NULL);
	s->pages.shape.chunk = VV_NEW_DATA_PAGE;
	v->ctx.digest(zero, sizeof(zero), &s->pages.zero);
}

static void trim(struct vv_new_data *s, size_t blocks)
{
	while (s->n_blocks > blocks)
		s->space->give_back(s->device, s->block[--s->n_blocks], VV_NEW_DATA_BLOCK);
}

void vv_new_data_fini(struct vv_new_data *s)
{
	trim(s, 0);
	vv_mem_free(s->block);
	vv_mem_free(s->digest);
	vv_mem_free(s->pages.was);
	vv_mem_free(s->pages.now);
	*s = (struct vv_new_data){ 0 };
}

static int add_block(struct vv_new_data *s)
{
	uint8_t *p;

	if (vv_mem_room(&s->block, s->n_blocks, &s->blocks_cap, sizeof(*s->block)) < 0)
		return VV_ENOMEM;
	p = s->space->rent(s->device, VV_NEW_DATA_BLOCK);
	if (!p)
		return vv_err_set(VV_ENOMEM, "no memory for the new data of this epoch (%llu bytes so far)",
				  (unsigned long long)s->asked);
	s->block[s->n_blocks++] = p;
	return 0;
}

/* Ranks of one machine divide the share. */
static unsigned ranks_here(const struct vv_context *ctx)
{
	unsigned n = 1;

	for (uint32_t r = 0; ctx->group && r < ctx->ranks; r++)
		n += r != ctx->rank && ctx->group->host[r] == ctx->group->host[ctx->rank];
	return n;
}

/* The option `stage` in blocks. The blocks at hand count as available, so that an epoch like the
 * last one finds room again. */
static size_t stage_blocks(const struct vv_new_data *s, const struct vv_context *ctx)
{
	uint64_t memory = vv_mem_available() / ranks_here(ctx) + (uint64_t)s->n_blocks * VV_NEW_DATA_BLOCK;
	uint64_t blocks = vv_conf_share(&ctx->conf, "stage", memory) / VV_NEW_DATA_BLOCK;

	return blocks < LEAST ? LEAST : (size_t)blocks;
}

static size_t at_least(size_t blocks)
{
	return blocks > LEAST ? blocks : LEAST;
}

/* Comes before further steps of vv_new_data_adjust, each of which takes some milliseconds. */
static void lock_blocks(struct vv_new_data *s)
{
	atomic_fetch_add(&s->adjust.awaited, 1);
	pthread_mutex_lock(&s->adjust.lock);
	atomic_fetch_sub(&s->adjust.awaited, 1);
}

void vv_new_data_expect(struct vv_new_data *s, const struct vv_space *space, int device, uint64_t bytes)
{
	lock_blocks(s);
	if (!s->adjust.in_epoch && s->space != space) {
		trim(s, 0);
		s->space = space;
		s->device = device;
	}
	s->adjust.wanted = at_least((size_t)((bytes + VV_NEW_DATA_BLOCK - 1) / VV_NEW_DATA_BLOCK));
	pthread_mutex_unlock(&s->adjust.lock);
}

/* A block that cannot be made is left to the epoch that needs it. While a block of a device is
 * freed, the program's calls of the device wait: so there is a pause after each. */
static double adjust(struct vv_new_data *s, const struct vv_context *ctx)
{
	static const double pause = 0.02;
	size_t most = stage_blocks(s, ctx), wanted = s->adjust.wanted < most ? s->adjust.wanted : most;
	bool less = s->n_blocks > wanted;

	if (less)
		trim(s, s->n_blocks - 1);
	else if (s->n_blocks < wanted && add_block(s) < 0)
		s->adjust.wanted = wanted = s->n_blocks;
	vv_err_clear();
	return s->n_blocks == wanted ? INFINITY : less ? pause : 0;
}

double vv_new_data_adjust(struct varve *v)
{
	static const double give_way = 0.001;
	struct vv_new_data *s = v->grains ? &v->grains->new_data : NULL;
	double next = INFINITY;

	if (!s)
		return next;
	if (atomic_load(&s->adjust.awaited))
		return give_way;
	pthread_mutex_lock(&s->adjust.lock);
	s->adjust.is_run = true;
	if (!s->adjust.in_epoch && s->adjust.wanted)
		next = adjust(s, &v->ctx);
	pthread_mutex_unlock(&s->adjust.lock);
	return next;
}

void vv_new_data_pause(struct varve *v)
{
	if (v->grains)
		atomic_fetch_add(&v->grains->new_data.adjust.awaited, 1);
}

void vv_new_data_resume(struct varve *v)
{
	if (v->grains)
		atomic_fetch_sub(&v->grains->new_data.adjust.awaited, 1);
}

/* New blocks for a device take long to make. So of those that the epoch did not need, few are
 * freed. */
static void leave(struct vv_new_data *s)
{
	enum { PART = 32 };
	size_t used = at_least(s->used);

	s->adjust.wanted = used < s->adjust.wanted ? s->adjust.wanted - (s->adjust.wanted - used + PART - 1) / PART : used;
	s->adjust.in_epoch = false;
	if (!s->adjust.is_run)
		trim(s, s->adjust.wanted);
}

void vv_new_data_leave(struct varve *v)
{
	struct vv_new_data *s = v->grains ? &v->grains->new_data : NULL;

	if (!s)
		return;
	lock_blocks(s);
	if (s->adjust.in_epoch)
		leave(s);
	pthread_mutex_unlock(&s->adjust.lock);
}

int vv_new_data_begin(struct vv_layer_writer *p, const struct vv_space *space, int device)
{
	struct vv_new_data *s = &p->v->grains->new_data;

	lock_blocks(s);
	s->adjust.in_epoch = true;
	pthread_mutex_unlock(&s->adjust.lock);
	if (space != s->space) {
		trim(s, 0);
		s->device = device;
	}
	s->most = p->v->ctx.group ? 0 : stage_blocks(s, &p->v->ctx);
	trim(s, s->most ? s->most : s->n_blocks);
	s->space = space;
	s->used = 0;
	s->writer = p;
	s->len = s->asked = s->recycled = 0;
	s->placed = s->in_blocks = 0;
	s->deduped = s->broken = false;
	return vv_new_data_end(s);
}

/* ---- pages ----------------------------------------------------------------------------------- */

static const uint8_t *page_bytes(const struct vv_new_data *s, size_t i)
{
	size_t block = i / BLOCK_PAGES;

	return s->block[s->most ? block % s->most : block] + i % BLOCK_PAGES * VV_NEW_DATA_PAGE;
}

static int make_pages(struct vv_new_data *s, size_t n)
{
	struct vv_region *r = &s->pages;
	size_t cap = n + n / 4 + 16;
	uint32_t *was, *now;
	struct vv_digest *digest;

	if (n <= s->pages_cap)
		return 0;
	was = vv_mem_grow(r->was, cap, sizeof(*was));
	r->was = was ? was : r->was;
	now = vv_mem_grow(r->now, cap, sizeof(*now));
	r->now = now ? now : r->now;
	digest = vv_mem_grow(s->digest, cap, sizeof(*digest));
	s->digest = digest ? digest : s->digest;
	if (!was || !now || !digest)
		return VV_ENOMEM;
	memset(was, 0, cap * sizeof(*was)); /* VV_CHUNK_UNKNOWN */
	s->pages_cap = cap;
	return 0;
}

int vv_new_data_end(struct vv_new_data *s)
{
	struct vv_region *r = &s->pages;

	r->shape.len = s->len;
	r->n_chunks = (size_t)((s->len + VV_NEW_DATA_PAGE - 1) / VV_NEW_DATA_PAGE);
	return make_pages(s, r->n_chunks);
}

static void hash_step(void *arg, size_t step)
{
	struct varve *v = arg;
	struct vv_new_data *s = &v->grains->new_data;
	size_t i = s->placed + step * STEP, end = i + STEP < s->pages.n_chunks ? i + STEP : s->pages.n_chunks;

	for (; i < end; i++)
		v->ctx.digest(page_bytes(s, i), vv_region_chunk_len(&s->pages, i), &s->digest[i]);
}

/* Hashes the pages that are not placed yet. */
static void hash_pages(struct varve *v)
{
	static const uint8_t zero[VV_NEW_DATA_PAGE];
	struct vv_new_data *s = &v->grains->new_data;
	struct vv_region *r = &s->pages;

	if (r->n_chunks)
		v->ctx.digest(zero, vv_region_chunk_len(r, r->n_chunks - 1), &r->zero_tail);
	vv_pool_each(v->ctx.pool, (r->n_chunks - s->placed + STEP - 1) / STEP, hash_step, v);
}

/* A page of one set's data is compressed by the type of its elements. */
static uint8_t type_of(const struct vv_grain_sets *g, uint64_t at, uint64_t end)
{
	for (size_t i = 0; i < g->n; i++)
		if (at >= g->set[i]->now.data && end <= g->set[i]->now.data_end)
			return g->set[i]->now.type;
	return VV_TYPE_BYTES;
}

static void count_in_blocks(struct vv_new_data *s, int change)
{
	pthread_mutex_lock(&s->lock);
	s->in_blocks += (size_t)change;
	if (s->in_blocks == 0)
		pthread_cond_broadcast(&s->written);
	pthread_mutex_unlock(&s->lock);
}

static int place_page(struct vv_layer_writer *p, size_t i)
{
	struct vv_new_data *s = &p->v->grains->new_data;
	uint64_t at = (uint64_t)i * VV_NEW_DATA_PAGE;
	bool added = false;
	int rc;

	s->pages.shape.type = type_of(p->v->grains, at, at + vv_region_chunk_len(&s->pages, i));
	if (!p->claims)
		s->pages.now[i] = VV_CHUNK_UNKNOWN;
	else if (s->pages.now[i] != VV_CHUNK_UNKNOWN && !vv_rank_dedup_is_claim(p, s->pages.now[i]))
		return 0;
	count_in_blocks(s, 1);
	rc = vv_layer_writer_place(p, &s->pages, i, &s->digest[i], page_bytes(s, i), VV_PLACE_STABLE, VV_NEW_DATA_TAG, &added);
	if (!added)
		count_in_blocks(s, -1);
	return rc;
}

static int place_pages(struct vv_layer_writer *p)
{
	struct vv_new_data *s = &p->v->grains->new_data;
	int rc = 0;

	for (; rc == 0 && s->placed < s->pages.n_chunks; s->placed++) {
		if (s->placed + AHEAD < s->pages.n_chunks)
			vv_index_prefetch(&p->v->index_cache->index, &s->digest[s->placed + AHEAD]);
		rc = place_page(p, s->placed);
	}
	return rc;
}

void vv_new_data_stored(struct vv_new_data *s, uint32_t adds)
{
	count_in_blocks(s, -(int)adds);
}

void vv_new_data_fail(struct vv_new_data *s)
{
	pthread_mutex_lock(&s->lock);
	s->broken = true;
	pthread_cond_broadcast(&s->written);
	pthread_mutex_unlock(&s->lock);
}

/* ---- room ------------------------------------------------------------------------------------ */

static int wait_stored(struct vv_layer_writer *p)
{
	struct vv_new_data *s = &p->v->grains->new_data;
	int rc = vv_block_writer_push(p->block_writer);

	pthread_mutex_lock(&s->lock);
	while (rc == 0 && s->in_blocks && !s->broken)
		pthread_cond_wait(&s->written, &s->lock);
	pthread_mutex_unlock(&s->lock);
	return rc ? rc : vv_block_writer_push(p->block_writer); /* reports the error, if any */
}

/* Stores the filled blocks now, so that they can be used again. The program waits, so they are not
 * compressed. */
static int drain(struct vv_new_data *s)
{
	struct vv_layer_writer *p = s->writer;
	uint64_t len = s->len;
	int rc = 0;

	s->len = len / VV_NEW_DATA_BLOCK * VV_NEW_DATA_BLOCK;
	if (s->len <= s->recycled)
		rc = vv_err_set(VV_EINVAL, "no new data has arrived yet, and the stage is full: raise the option stage");
	if (rc == 0)
		rc = vv_new_data_end(s);
	if (rc == 0)
		rc = vv_index_reserve(&p->v->index_cache->index, s->pages.n_chunks - s->placed);
	if (rc == 0 && !p->block_writer)
		rc = p->source.open(p);
	if (rc == 0)
		rc = vv_block_writer_set_plain(p->block_writer, true);
	if (rc == 0) {
		hash_pages(p->v);
		rc = place_pages(p);
	}
	if (rc == 0)
		rc = wait_stored(p);
	if (rc == 0)
		rc = vv_block_writer_set_plain(p->block_writer, false);
	s->recycled = s->len;
	s->len = len;
	return rc;
}

uint8_t *vv_new_data_room(struct vv_new_data *s, size_t want, size_t *got)
{
	size_t block = (size_t)(s->asked / VV_NEW_DATA_BLOCK), off = (size_t)(s->asked % VV_NEW_DATA_BLOCK);

	if (s->most && s->asked - s->recycled == (uint64_t)s->most * VV_NEW_DATA_BLOCK) {
		s->failed = drain(s);
		if (s->failed)
			return NULL;
	}
	block = s->most ? block % s->most : block;
	if (block == s->n_blocks) {
		s->failed = add_block(s);
		if (s->failed)
			return NULL;
	}
	s->used = block + 1 > s->used ? block + 1 : s->used;
	*got = want < VV_NEW_DATA_BLOCK - off ? want : VV_NEW_DATA_BLOCK - off;
	s->asked += *got;
	return s->block[block] + off;
}

void vv_new_data_filled(struct vv_new_data *s, size_t len)
{
	s->len += len;
}

int vv_new_data_append(struct vv_new_data *s, const void *p, size_t len)
{
	const uint8_t *from = p;

	while (len) {
		size_t got;
		uint8_t *to = vv_new_data_room(s, len, &got);

		if (!to)
			return s->failed;
		memcpy(to, from, got);
		vv_new_data_filled(s, got);
		from += got;
		len -= got;
	}
	return 0;
}

void vv_new_data_rewind(struct vv_new_data *s, uint64_t len)
{
	s->len = s->asked = len > s->recycled ? len : s->recycled;
}

/* ---- with other ranks ------------------------------------------------------------------------ */

int vv_new_data_drop_known(struct vv_layer_writer *p, uint64_t first)
{
	struct vv_new_data *s = p->v->grains ? &p->v->grains->new_data : NULL;
	int rc = 0;

	if (!s || s->deduped)
		return 0;
	hash_pages(p->v);
	for (size_t i = 0; p->claims && rc == 0 && i < s->pages.n_chunks; i++) {
		s->pages.now[i] = VV_CHUNK_UNKNOWN;
		if (!vv_layer_writer_known(p, &s->pages, i, &s->digest[i]))
			rc = vv_rank_dedup_claim(p, &s->pages, i, first + i, &s->digest[i]);
		else if (vv_rank_dedup_is_claim(p, s->pages.now[i]))
			/* The page is counted when it is placed, or when other ranks store it. */
			p->st.bytes_dup_space -= vv_region_chunk_len(&s->pages, i);
	}
	s->deduped = rc == 0;
	return rc;
}

void vv_new_data_after_exchange(struct vv_layer_writer *p)
{
	struct vv_region *r = p->v->grains ? &p->v->grains->new_data.pages : NULL;

	for (size_t i = 0; r && p->claims && i < r->n_chunks; i++)
		if (vv_rank_dedup_is_claim(p, r->now[i]) &&
		    p->claims->state[vv_rank_dedup_number(p, r->now[i])] == VV_CLAIM_REMOTE)
			p->st.bytes_dup_ranks += vv_region_chunk_len(r, i);
}

void vv_new_data_assign_positions(struct vv_layer_writer *p, uint64_t *pos)
{
	struct vv_region *r = p->v->grains ? &p->v->grains->new_data.pages : NULL;
	struct vv_claims *c = p->claims;

	for (size_t i = 0; r && i < r->n_chunks; i++) {
		size_t k = vv_rank_dedup_number(p, r->now[i]);

		if (!vv_rank_dedup_is_claim(p, r->now[i]) || c->state[k] == VV_CLAIM_REMOTE || c->pos[k] != UINT64_MAX)
			continue;
		c->pos[k] = *pos;
		*pos += vv_region_chunk_len(r, i);
	}
}

/* ---- placing --------------------------------------------------------------------------------- */

int vv_new_data_place(struct vv_layer_writer *p)
{
	int rc = vv_new_data_drop_known(p, 0);

	return rc || !p->v->grains ? rc : place_pages(p);
}

int vv_new_data_runs(const struct vv_layer_writer *p, uint64_t at, uint64_t end, struct vv_runs *out)
{
	const struct vv_region *r = &p->v->grains->new_data.pages;
	int rc = 0;

	for (size_t i = (size_t)(at / VV_NEW_DATA_PAGE); rc == 0 && at < end; i++) {
		struct vv_run run = vv_layer_writer_run(&p->v->index_cache->index, r, i, r->now[i]);
		uint64_t to = run.at + run.len < end ? run.at + run.len : end;

		run.pos += run.layer ? at - run.at : 0;
		run.at = at;
		run.len = to - at;
		rc = vv_run_add(out, run);
		at = to;
	}
	return rc;
}
