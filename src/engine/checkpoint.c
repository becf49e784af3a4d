/* A checkpoint: hash all chunks on all cores, compare with what they held, look the changed ones up, send the new ones
 * down the flush, lay down the layer, commit.
 *
 * Slabs of chunks are hashed ahead of the caller, who takes them in order: so the layer does not depend on the number of
 * threads. Until the commit record is durable nothing in the session changes but the tail of the index, which a failure
 * cuts off again. */
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/layer.h"
#include "engine/session.h"
#include <inttypes.h>
#include <string.h>

enum {
	SLAB = 256,             /* chunks */
	RING_MAX = 256,         /* slabs hashed ahead */
	RUN_COST = 6,           /* bytes of a run, about */
};

struct slab {
	struct vv_task task;
	struct varve *session;
	const struct vv_region *region;
	size_t first, n;
	struct vv_digest digest[SLAB];
	bool changed[SLAB];
	bool quiet; /* nothing changed, and nothing in it is older than the session */
};

struct pass { /* one checkpoint under way */
	struct varve *v;
	uint64_t epoch, layer;
	size_t old_entries; /* of the index; above it is this epoch's */
	bool keyframe;
	struct vv_put *put;
	struct vv_flush *flush;
	struct vv_head head;
	struct vv_blocks blocks;
	struct vv_digests digests;
	uint64_t pos; /* end of the payload */
	struct varve_stats st;
	uint64_t start_ns;
	struct slab *ring[RING_MAX];
	size_t ring_size;
};

static size_t chunk_len(const struct vv_region *r, size_t i)
{
	uint64_t left = r->shape.len - (uint64_t)i * r->shape.chunk;

	return left < r->shape.chunk ? (size_t)left : r->shape.chunk;
}

static const struct vv_digest *zero_of(const struct vv_region *r, size_t i)
{
	return i + 1 == r->n_chunks ? &r->zero_tail : &r->zero;
}

/* On any thread: only entries below old_entries are read, and those do not move. */
static void hash_slab(struct vv_task *t)
{
	struct slab *s = (struct slab *)t;
	const struct vv_region *r = s->region;
	const struct vv_entry *entry = s->session->history.index.entry;
	size_t loaded = s->session->history.n_loaded;

	s->quiet = true;
	for (size_t k = 0; k < s->n; k++) {
		size_t i = s->first + k;
		uint32_t was = r->was[i];
		const struct vv_digest *old = was >= VV_CHUNK_FIRST ? &entry[was - VV_CHUNK_FIRST].digest :
					      was == VV_CHUNK_ZERO  ? zero_of(r, i) :
								      NULL;

		s->session->digest(r->p + (uint64_t)i * r->shape.chunk, chunk_len(r, i), &s->digest[k]);
		s->changed[k] = !old || !vv_digest_equal(old, &s->digest[k]);
		s->quiet &= !s->changed[k] && (was == VV_CHUNK_ZERO || was - VV_CHUNK_FIRST >= loaded);
	}
}

/* Where a changed chunk's content lives: nowhere (zero), in the index, or now in the payload. */
static int place(struct pass *p, struct vv_region *r, size_t i, const struct vv_digest *d)
{
	struct vv_index *x = &p->v->history.index;
	size_t len = chunk_len(r, i);
	bool gone;
	uint32_t e;
	int rc;

	if (vv_digest_equal(d, zero_of(r, i))) {
		r->now[i] = VV_CHUNK_ZERO;
		p->st.bytes_zero += len;
		return 0;
	}
	e = vv_index_find(x, d);
	gone = e != VV_INDEX_NONE && !vv_trust_entry(&p->v->lineage, &p->v->history, e);
	if (e != VV_INDEX_NONE && !gone) {
		r->now[i] = e + VV_CHUNK_FIRST;
		*(e < p->old_entries ? &p->st.bytes_dup_time : &p->st.bytes_dup_space) += len;
		return 0;
	}
	rc = gone ? vv_index_supersede(x, d, p->layer, p->pos, &e) : vv_index_add(x, d, p->layer, p->pos, &e);
	if (rc == 0)
		rc = vv_payload_digest_add(&p->digests, p->pos, (uint32_t)len, d);
	if (rc == 0)
		rc = vv_flush_add(p->flush, r->p + (uint64_t)i * r->shape.chunk, len);
	r->now[i] = e + VV_CHUNK_FIRST;
	p->pos += len;
	p->st.bytes_new += len;
	return rc;
}

static struct vv_run run_of(const struct vv_index *x, const struct vv_region *r, size_t i)
{
	struct vv_run run = { .at = (uint64_t)i * r->shape.chunk, .len = chunk_len(r, i) };

	if (r->now[i] >= VV_CHUNK_FIRST) {
		run.layer = vv_index_layer(x, r->now[i] - VV_CHUNK_FIRST);
		run.pos = vv_index_pos(x, r->now[i] - VV_CHUNK_FIRST);
	}
	return run;
}

/* Unchanged, and what it refers to can be relied on. */
static bool stays(struct pass *p, const struct vv_region *r, size_t i, bool changed)
{
	uint32_t was = r->was[i];

	return !changed && (was < VV_CHUNK_FIRST ||
			    vv_trust_entry(&p->v->lineage, &p->v->history, was - VV_CHUNK_FIRST));
}

/* In order, on the caller's thread. */
static int take_slab(struct pass *p, struct slab *s, struct vv_region *r, struct vv_runs *runs)
{
	const struct vv_index *x = &p->v->history.index;
	int rc = 0;

	if (s->quiet && !p->keyframe && r->parent) {
		memcpy(&r->now[s->first], &r->was[s->first], s->n * sizeof(*r->now));
		p->st.bytes_unchanged += (s->n - 1) * (uint64_t)r->shape.chunk + chunk_len(r, s->first + s->n - 1);
		return 0;
	}
	for (size_t k = 0; k < s->n; k++)
		if (s->changed[k])
			vv_index_prefetch(x, &s->digest[k]);
	for (size_t k = 0; rc == 0 && k < s->n; k++) {
		size_t i = s->first + k;
		bool same = stays(p, r, i, s->changed[k]);

		if (same) {
			r->now[i] = r->was[i];
			p->st.bytes_unchanged += chunk_len(r, i);
		} else {
			rc = place(p, r, i, &s->digest[k]);
		}
		if (rc == 0 && (!same || p->keyframe || !r->parent))
			rc = vv_run_add(runs, run_of(x, r, i));
	}
	return rc;
}

/* The order of slabs over all regions. */
struct cursor {
	size_t region, chunk;
};

static bool next_slab(const struct varve *v, struct cursor *c, struct slab *s)
{
	while (c->region < v->n_regions && c->chunk == v->region[c->region]->n_chunks)
		*c = (struct cursor){ c->region + 1, 0 };
	if (c->region == v->n_regions)
		return false;
	s->region = v->region[c->region];
	s->first = c->chunk;
	s->n = s->region->n_chunks - c->chunk < SLAB ? s->region->n_chunks - c->chunk : SLAB;
	c->chunk += s->n;
	return true;
}

static int make_ring(struct pass *p)
{
	p->ring_size = 8 * (size_t)vv_pool_width(p->v->pool) + 8;
	if (p->ring_size > RING_MAX)
		p->ring_size = RING_MAX;
	for (size_t i = 0; i < p->ring_size; i++) {
		p->ring[i] = vv_mem_new(1, sizeof(struct slab));
		if (!p->ring[i])
			return VV_ENOMEM;
		p->ring[i]->session = p->v;
		p->ring[i]->task.run = hash_slab;
	}
	return 0;
}

/* Hashes everything ahead of the caller, who places slab after slab; waits for all that was begun even on failure. */
static int walk(struct pass *p)
{
	struct cursor ahead = { 0, 0 }, at = { 0, 0 };
	size_t begun = 0, done = 0;
	int rc = make_ring(p);

	while (rc == 0 || done < begun) {
		struct slab *s;

		while (rc == 0 && begun - done < p->ring_size && next_slab(p->v, &ahead, p->ring[begun % p->ring_size]))
			vv_pool_submit(p->v->pool, &p->ring[begun++ % p->ring_size]->task);
		if (done == begun)
			break;
		s = p->ring[done++ % p->ring_size];
		vv_pool_wait(p->v->pool, &s->task);
		while (p->v->region[at.region] != s->region)
			at.region++;
		if (rc == 0)
			rc = take_slab(p, s, p->v->region[at.region], &p->head.region[at.region].runs);
	}
	return rc;
}

/* A delta is cheaper to write, a keyframe cheaper to restart from: as soon as reading the chain would cost more than
 * reading a full table, the next layer is a keyframe. */
static bool choose_keyframe(const struct varve *v)
{
	uint64_t full = v->full_runs * RUN_COST;

	return !v->epoch || v->depth == VV_MAX_DEPTH || v->chain_cost + VV_LAYER_COST >= full;
}

static int begin_head(struct pass *p)
{
	struct varve *v = p->v;
	struct vv_head *h = &p->head;

	memcpy(h->lineage, v->lineage.id, sizeof(h->lineage));
	h->epoch = p->epoch;
	h->parent = p->keyframe ? 0 : v->epoch;
	h->depth = p->keyframe ? 0 : (uint8_t)(v->depth + 1);
	h->rank = v->rank;
	h->ranks = v->ranks;
	h->time_ns = vv_clock_wall_ns();
	h->digest_kind = v->digest_kind;
	h->region = vv_mem_new(v->n_regions, sizeof(*h->region));
	if (!h->region)
		return VV_ENOMEM;
	for (; h->n_regions < v->n_regions; h->n_regions++) {
		struct vv_head_region *r = &h->region[h->n_regions];
		const struct vv_region *from = v->region[h->n_regions];

		r->name = vv_mem_strdup(from->name);
		if (!r->name)
			return VV_ENOMEM;
		r->parent = p->keyframe ? 0 : from->parent;
		r->shape = from->shape;
		p->st.bytes_memory += from->shape.len;
	}
	return 0;
}

static int begin(struct pass *p)
{
	struct varve *v = p->v;
	char object[VV_NAME_MAX];
	struct vv_buf header = { 0 };
	struct iovec iov;
	size_t chunks = 0;
	int rc;

	for (size_t i = 0; i < v->n_regions; i++)
		chunks += v->region[i]->n_chunks;
	rc = begin_head(p);
	if (rc == 0)
		rc = vv_index_reserve(&v->history.index, chunks);
	vv_name_layer(object, v->lineage.name, p->epoch, v->rank);
	if (rc == 0)
		rc = vv_store_put_open(v->store, object, p->st.bytes_memory, &p->put);
	if (rc == 0)
		rc = vv_flush_open(v->pool, p->put, &v->coding, &p->flush);
	if (rc)
		return rc;
	vv_layer_put_header(&header);
	iov = (struct iovec){ header.p, header.n };
	rc = vv_buf_check(&header);
	if (rc == 0)
		rc = vv_store_put_write(p->put, &iov, 1);
	vv_buf_fini(&header);
	return rc;
}

static int add_stats(struct pass *p)
{
	const struct {
		const char *name;
		uint64_t value;
	} list[] = {
		{ "bytes.memory", p->st.bytes_memory },       { "bytes.unchanged", p->st.bytes_unchanged },
		{ "bytes.zero", p->st.bytes_zero },           { "bytes.dup_time", p->st.bytes_dup_time },
		{ "bytes.dup_space", p->st.bytes_dup_space }, { "bytes.new", p->st.bytes_new },
		{ "bytes.stored", p->st.bytes_stored },       { "ns.blocked", vv_clock_ns() - p->start_ns },
	};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof(list) / sizeof(list[0]); i++)
		rc = vv_head_add_stat(&p->head, list[i].name, list[i].value);
	return rc;
}

static int finish_layer(struct pass *p, struct vv_digest *head)
{
	struct vv_buf tail = { 0 };
	struct iovec iov;
	int rc = vv_flush_finish(p->flush, &p->blocks);

	if (rc)
		return rc;
	p->st.bytes_stored = p->put->written - VV_LAYER_HEADER;
	p->head.payload = p->pos;
	rc = add_stats(p);
	if (rc == 0)
		rc = vv_layer_put_tail(&p->head, &p->blocks, &p->digests, p->put->written, &tail, head);
	iov = (struct iovec){ tail.p, tail.n };
	if (rc == 0)
		rc = vv_history_tie(&p->v->history, p->layer, vv_layer_digests_check(&tail));
	if (rc == 0)
		rc = vv_store_put_write(p->put, &iov, 1);
	vv_buf_fini(&tail);
	if (rc)
		return rc;
	p->st.bytes_layer = p->put->written;
	rc = vv_store_put_commit(p->put);
	p->put = NULL;
	return rc;
}

static int commit(struct pass *p, const struct vv_digest *head)
{
	struct vv_commit_rank rank = {
		.head = *head,
		.file_len = p->st.bytes_layer,
		.payload = p->pos,
		.memory = p->st.bytes_memory,
		.stored = p->st.bytes_stored,
	};
	struct vv_commit c = {
		.epoch = p->epoch,
		.parent = p->v->epoch,
		.time_ns = p->head.time_ns,
		.n_ranks = 1,
		.rank = &rank,
	};
	char object[VV_NAME_MAX];
	struct vv_buf b = { 0 };
	int rc;

	memcpy(c.lineage, p->v->lineage.id, sizeof(c.lineage));
	vv_commit_put(&c, &b);
	vv_name_commit(object, p->v->lineage.name, p->epoch);
	rc = vv_buf_check(&b);
	if (rc == 0)
		rc = vv_store_put(p->v->store, object, b.p, b.n);
	vv_buf_fini(&b);
	return rc;
}

/* The epoch counts: the regions now know what it holds. */
static void accept(struct pass *p)
{
	struct varve *v = p->v;
	uint64_t runs = 0;

	for (size_t i = 0; i < v->n_regions; i++) {
		struct vv_region *r = v->region[i];
		uint32_t *t = r->was;

		r->was = r->now;
		r->now = t;
		r->parent = (uint32_t)i + 1;
		r->adopted = true;
		runs += p->head.region[i].runs.n;
	}
	v->full_runs = p->keyframe ? runs : v->full_runs + 2 * runs;
	v->chain_cost = p->keyframe ? 0 : v->chain_cost + VV_LAYER_COST + runs * RUN_COST;
	v->depth = p->head.depth;
	v->epoch = p->epoch;
	v->failed = 0; /* what could not be removed by now stays: whole, and older than this one */
	v->own = true;
	v->has_table = false;
	vv_table_fini(&v->table);
	p->st.epoch = p->epoch;
	v->stats = p->st;
	vv_history_save(&v->lineage, v->rank, v->digest_kind, p->epoch, &v->history);
}

/* Nothing of a failed epoch may be seen: the commit record goes first, then the layer. What the store does not let go of
 * now is tried again before the next checkpoint. */
static void remove_failed(struct varve *v)
{
	char object[VV_NAME_MAX];

	for (; v->failed && v->failed <= v->highest; v->failed++) {
		vv_name_commit(object, v->lineage.name, v->failed);
		if (vv_store_remove(v->store, object) < 0)
			return;
		vv_name_layer(object, v->lineage.name, v->failed, v->rank);
		vv_store_remove(v->store, object);
	}
	v->failed = 0;
}

static void retract(struct pass *p)
{
	struct vv_err_state error;

	vv_err_save(0, &error);
	vv_store_put_abort(p->put);
	if (!p->v->failed)
		p->v->failed = p->epoch;
	remove_failed(p->v);
	vv_index_truncate(&p->v->history.index, p->old_entries);
	vv_err_restore(&error);
}

static void pass_fini(struct pass *p)
{
	vv_flush_free(p->flush);
	vv_head_fini(&p->head);
	vv_payload_blocks_fini(&p->blocks);
	vv_payload_digests_fini(&p->digests);
	for (size_t i = 0; i < p->ring_size; i++)
		vv_mem_free(p->ring[i]);
	vv_mem_free(p);
}

static int run(struct pass *p)
{
	struct vv_digest head = { 0 };
	int rc = begin(p);

	if (rc == 0)
		rc = walk(p);
	if (rc == 0)
		rc = finish_layer(p, &head);
	if (rc == 0)
		rc = commit(p, &head);
	return rc;
}

int vv_checkpoint_run(struct varve *v)
{
	uint64_t start_ns = vv_clock_ns();
	int rc = vv_session_prepare(v);
	struct pass *p = rc == 0 ? vv_mem_new(1, sizeof(*p)) : NULL;

	if (!p)
		return rc ? rc : VV_ENOMEM;
	if (v->highest >= VV_MAX_EPOCH) {
		vv_mem_free(p);
		return vv_err_set(VV_EINVAL, "lineage '%s' has used up its epoch numbers", v->lineage.name);
	}
	p->v = v;
	p->start_ns = start_ns;
	remove_failed(v);
	p->epoch = ++v->highest;
	p->layer = vv_run_layer(p->epoch, v->rank);
	p->old_entries = v->history.index.n;
	p->keyframe = choose_keyframe(v);
	rc = run(p);
	if (rc == 0)
		accept(p);
	else
		retract(p);
	pass_fini(p);
	return rc;
}
