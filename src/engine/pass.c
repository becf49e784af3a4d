/* Where content lives, the run tables, the layer's frame, the commit. Until the commit record is durable nothing in the
 * session changes but the tail of the index, which a failure cuts off again. */
#include "engine/pass.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/annals.h"
#include "engine/collective.h"
#include "engine/grains.h"
#include "engine/tiles.h"
#include <inttypes.h>
#include <string.h>

enum {
	RUN_COST = 6,           /* bytes of a run, about */
	CHAIN_SHORT = 32 << 10, /* bytes of a chain that is not worth a look */
	LONG = 1 << 13,         /* entries of a table that takes memory worth a thought */
};

/* A delta is cheaper to write, a keyframe cheaper to restart from: as soon as reading the chain would cost more than
 * reading a full table, the next layer is a keyframe. */
static bool choose_keyframe(const struct varve *v)
{
	uint64_t full = v->full_runs * RUN_COST;

	return !v->epoch || v->depth == VV_MAX_DEPTH || v->chain_cost + VV_LAYER_COST >= full;
}

int vv_pass_new(struct varve *v, struct vv_pass **out)
{
	struct vv_pass *p;

	if (v->highest >= VV_MAX_EPOCH)
		return vv_err_set(VV_EINVAL, "lineage '%s' has used up its epoch numbers: something in store '%s' bears %" PRIu64
				  "; begin another lineage", v->lineage.name, v->store->url, v->highest);
	p = vv_mem_new(1, sizeof(*p));
	if (!p)
		return VV_ENOMEM;
	p->region = vv_mem_new(v->n_regions, sizeof(struct vv_region *));
	if (!p->region) {
		vv_mem_free(p);
		return VV_ENOMEM;
	}
	if (v->n_regions)
		memcpy(p->region, v->region, v->n_regions * sizeof(struct vv_region *));
	p->n_regions = v->n_regions;
	p->v = v;
	p->start_ns = vv_clock_ns();
	p->head.time_ns = vv_clock_wall_ns();
	p->epoch = ++v->highest;
	p->layer = vv_run_layer(p->epoch, v->rank);
	p->old_entries = v->history.index.n;
	p->keyframe = choose_keyframe(v);
	*out = p;
	return 0;
}

void vv_pass_free(struct vv_pass *p)
{
	if (!p)
		return;
	vv_stow_free(p);
	vv_collective_end(p);
	vv_flush_free(p->flush);
	vv_head_fini(&p->head);
	vv_payload_blocks_fini(&p->blocks);
	vv_payload_digests_fini(&p->digests);
	vv_copies_fini(&p->copies);
	vv_mem_free(p->region);
	vv_mem_free(p);
}

static int begin_head(struct vv_pass *p)
{
	struct varve *v = p->v;
	struct vv_head *h = &p->head;

	memcpy(h->lineage, v->lineage.id, sizeof(h->lineage));
	h->epoch = p->epoch;
	h->parent = p->keyframe ? 0 : v->epoch;
	h->depth = p->keyframe ? 0 : (uint8_t)(v->depth + 1);
	h->rank = v->rank;
	h->ranks = v->ranks;
	h->digest_kind = v->digest_kind;
	h->region = vv_mem_new(p->n_regions, sizeof(*h->region));
	if (!h->region)
		return VV_ENOMEM;
	for (; h->n_regions < p->n_regions; h->n_regions++) {
		struct vv_head_region *r = &h->region[h->n_regions];
		const struct vv_region *from = p->region[h->n_regions];

		r->name = vv_mem_strdup(from->name);
		if (!r->name)
			return VV_ENOMEM;
		r->parent = p->keyframe ? 0 : from->parent;
		r->shape = from->shape;
		p->st.bytes_memory += from->shape.len;
	}
	return 0;
}

int vv_pass_begin(struct vv_pass *p)
{
	int rc = begin_head(p);

	return rc ? rc : vv_index_reserve(&p->v->history.index, p->chunks);
}

int vv_pass_open(struct vv_pass *p, const struct vv_flush_options *opt)
{
	struct varve *v = p->v;
	char object[VV_NAME_MAX];
	struct vv_buf header = { 0 };
	struct iovec iov;
	int rc = 0;

	vv_name_layer(object, v->lineage.name, p->epoch, v->rank);
	if (!p->put)
		rc = vv_store_put_open(v->store, object, (uint64_t)p->chunks * vv_conf_number(&v->conf, "chunk"), &p->put);
	if (rc == 0)
		rc = vv_flush_open(v->pool, p->put, opt, &p->flush);
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

/* ---- where a chunk's content lives: as before, nowhere (zero), in the index, or now in the payload ---------------------- */

static bool is_same(struct vv_pass *p, const struct vv_region *r, size_t i, const struct vv_digest *d)
{
	const struct vv_digest *old = vv_region_digest(p->v, r, i);

	return old && vv_digest_equal(old, d) &&
	       (r->was[i] < VV_CHUNK_FIRST || vv_trust_entry(&p->v->lineage, &p->v->history, r->was[i] - VV_CHUNK_FIRST));
}

bool vv_pass_known(struct vv_pass *p, struct vv_region *r, size_t i, const struct vv_digest *d)
{
	size_t len = vv_region_chunk_len(r, i);
	uint32_t e;

	if (!p->v->dedup) { /* but not twice in one epoch: a thousand entries of one digest make an index slow */
		e = vv_index_find(&p->v->history.index, d);
		if (e == VV_INDEX_NONE || e < p->old_entries)
			return false;
		r->now[i] = e + VV_CHUNK_FIRST;
		p->st.bytes_dup_space += len;
		return true;
	}
	if (is_same(p, r, i, d)) {
		r->now[i] = r->was[i];
		return true;
	}
	if (vv_digest_equal(d, vv_region_zero(r, i))) {
		r->now[i] = VV_CHUNK_ZERO;
		p->st.bytes_zero += len;
		return true;
	}
	e = vv_index_find(&p->v->history.index, d);
	if (e == VV_INDEX_NONE || !vv_trust_entry(&p->v->lineage, &p->v->history, e))
		return false;
	r->now[i] = e + VV_CHUNK_FIRST;
	if (vv_collective_is_claim(p, r->now[i]))
		p->claims->shared[vv_collective_number(p, r->now[i])] = true;
	*(e < p->old_entries ? &p->st.bytes_dup_time : &p->st.bytes_dup_space) += len;
	return true;
}

/* What becomes known in the order of its places is in the index in that order: there is no need to have it twice. */
static struct vv_digest *new_digests(const struct vv_pass *p)
{
	return p->v->history.index.digest + p->old_entries;
}

int vv_pass_note(struct vv_pass *p, const struct vv_digest *d, uint32_t len, uint32_t entry)
{
	int rc;

	if (!p->digests.v && entry == p->old_entries + p->digests.n)
		return vv_payload_digest_count(&p->digests, p->pos, len);
	rc = vv_payload_digests_keep(&p->digests, new_digests(p));
	return rc ? rc : vv_payload_digest_add(&p->digests, p->pos, len, d);
}

static void lend_digests(struct vv_pass *p)
{
	if (p->digests.v || !p->digests.n)
		return;
	p->digests.v = new_digests(p);
	p->digests.lent = true;
}

static int append(struct vv_pass *p, const struct vv_region *r, const struct vv_digest *d, uint32_t entry, const void *bytes, size_t len,
		  enum vv_place how, uint32_t tag)
{
	struct vv_form form = vv_recipe_form(r->shape.type, false, r->shape.ndim, r->shape.dim);
	int rc = vv_pass_note(p, d, (uint32_t)len, entry);

	if (rc == 0)
		rc = vv_flush_add(p->flush, bytes, len, &form, tag, how != VV_PLACE_LYING);
	if (rc)
		return rc;
	p->pos += len;
	p->st.bytes_new += len;
	return 0;
}

/* Others refer to what is not there any more: where ranks are asked, that is settled before anything is placed. */
static int is_overwritten(const struct vv_region *r, size_t i)
{
	return vv_err_set(VV_EMISMATCH,
			  "region '%s' was written by another thread during varve_checkpoint, at or before offset %" PRIu64 ", and what it held "
			  "there was to stand for the same elsewhere: the epoch does not count (collective=none does without)",
			  r->name, (uint64_t)i * r->shape.chunk);
}

/* The index has an entry for it, which gets its place now. What others refer to was promised a place, and comes to lie there because
 * it is placed in the order of the promises. Of what has changed since, what it was is as good where that is stored; else it is stored as it is now, if
 * nobody else relies on the entry. */
static int place_claim(struct vv_pass *p, const struct vv_region *r, size_t i, const struct vv_digest *d, const void *bytes,
		       enum vv_place how, uint32_t tag, bool *added)
{
	size_t len = vv_region_chunk_len(r, i), k = vv_collective_number(p, r->now[i]);
	uint32_t e = r->now[i] - VV_CHUNK_FIRST;
	uint8_t *state = &p->claims->state[k];
	uint64_t source = 0;
	int rc;

	*added = false;
	if (*state == VV_CLAIM_REFERRED)
		return 0;
	if (*state == VV_CLAIM_PLACED) {
		p->st.bytes_dup_space += len;
		return 0;
	}
	if (how == VV_PLACE_CHANGED && (*state == VV_CLAIM_LENT || p->claims->shared[k]))
		return is_overwritten(r, i);
	if (*state == VV_CLAIM_LENT && p->claims->pos[k] != p->pos)
		return vv_err_set(VV_EINVAL, "a chunk was promised position %" PRIu64 " and comes to %" PRIu64, p->claims->pos[k],
				  p->pos);
	rc = vv_index_source(&p->v->history.index, p->layer, &source);
	if (rc == 0)
		rc = append(p, r, d, VV_INDEX_NONE, bytes, len, how, tag);
	if (rc)
		return rc;
	if (how == VV_PLACE_CHANGED)
		vv_index_rename(&p->v->history.index, e, d);
	vv_index_move(&p->v->history.index, e, source, p->pos - len);
	*state = VV_CLAIM_PLACED;
	*added = true;
	return 0;
}

int vv_pass_place(struct vv_pass *p, struct vv_region *r, size_t i, const struct vv_digest *d, const void *bytes,
		  enum vv_place how, uint32_t tag, bool *added)
{
	struct vv_index *x = &p->v->history.index;
	size_t len = vv_region_chunk_len(r, i);
	uint32_t e;
	int rc;

	if (vv_collective_is_claim(p, r->now[i]))
		return place_claim(p, r, i, d, bytes, how, tag, added);
	*added = !vv_pass_known(p, r, i, d);
	if (!*added)
		return 0;
	if (vv_index_find(x, d) != VV_INDEX_NONE) /* there, but not to be used */
		rc = vv_index_supersede(x, d, p->layer, p->pos, &e);
	else
		rc = vv_index_add(x, d, p->layer, p->pos, &e);
	if (rc == 0)
		rc = append(p, r, d, e, bytes, len, how, tag);
	if (rc == 0)
		r->now[i] = e + VV_CHUNK_FIRST;
	return rc;
}

/* ---- the layer ------------------------------------------------------------------------------------------------------ */

struct vv_run vv_pass_run(const struct vv_index *x, const struct vv_region *r, size_t i, uint32_t state)
{
	struct vv_run run = { .at = (uint64_t)i * r->shape.chunk, .len = vv_region_chunk_len(r, i) };

	if (state >= VV_CHUNK_FIRST) {
		run.layer = vv_index_layer(x, state - VV_CHUNK_FIRST);
		run.pos = vv_index_pos(x, state - VV_CHUNK_FIRST);
	}
	return run;
}

/* What n more entries take, and are coded to, the buffer gives, once everything is stored. */
static void make_room(struct vv_pass *p, size_t n, size_t entry)
{
	p->lent += n * (entry + entry / 2);
	vv_layout_lend_buffer(p->v, p->lent);
}

static int add_run(struct vv_pass *p, struct vv_runs *runs, struct vv_run run)
{
	const struct vv_blocks *blocks;
	size_t before = runs->n;
	int rc = vv_run_add(runs, run);

	if (rc == 0 && runs->n > before && runs->n % LONG == 0) {
		rc = p->flush ? vv_flush_drain(p->flush, &blocks) : 0;
		make_room(p, runs->n == LONG ? 2 * LONG : LONG, sizeof(run));
	}
	return rc;
}

/* A layer that continues another says only what is different. */
static int add_runs(struct vv_pass *p, struct vv_region *r, struct vv_head_region *out)
{
	const struct vv_tiles *t = &p->v->tiles;
	bool all = p->keyframe || !out->parent;
	int rc = r->fine ? vv_weave_runs(p, r, all, &out->runs) : 0;

	for (size_t g = 0; rc == 0 && g < r->n_groups; g++) {
		bool looked = vv_tiles_is_dirty(t, r, g);
		size_t end = vv_tiles_chunk_end(t, r, g);

		for (size_t i = vv_tiles_chunk(t, g); rc == 0 && (all || looked) && i < end; i++) {
			uint32_t state = looked ? r->now[i] : r->was[i];

			if (all || state != r->was[i])
				rc = add_run(p, &out->runs, vv_pass_run(&p->v->history.index, r, i, state));
		}
	}
	return rc;
}

static int add_stats(struct vv_pass *p)
{
	const struct varve_stats *s = &p->st, *before = &p->v->stats;
	const struct {
		const char *name;
		uint64_t value;
	} list[] = {
		{ "bytes.memory", s->bytes_memory },       { "bytes.unchanged", s->bytes_unchanged },
		{ "bytes.zero", s->bytes_zero },           { "bytes.dup_time", s->bytes_dup_time },
		{ "bytes.dup_space", s->bytes_dup_space }, { "bytes.dup_ranks", s->bytes_dup_ranks },
		{ "bytes.lent", s->bytes_lent },           { "bytes.new", s->bytes_new },
		{ "bytes.stored", s->bytes_stored },       { "bytes.dirty", s->bytes_dirty },
		{ "bytes.copied", s->bytes_copied },       { "bytes.wait", s->wait.bytes },
		{ "bytes.cow", s->cow.bytes },             { "bytes.avoided", s->avoided.bytes },
		{ "bytes.after", s->after.bytes },         { "n.wait", s->wait.pages },
		{ "n.cow", s->cow.pages },                 { "n.avoided", s->avoided.pages },
		{ "n.after", s->after.pages },             { "ns.blocked", (uint64_t)(s->seconds_blocked * 1e9) },
		{ "ns.faults", (uint64_t)(s->seconds_faults * 1e9) }, { "ns.waits", (uint64_t)(s->seconds_waits * 1e9) },
		{ "ns.ranks", (uint64_t)(s->seconds_ranks * 1e9) }, { "ns.flush", vv_clock_ns() - p->start_ns },
		{ "ns.before", before->epoch == p->v->epoch ? (uint64_t)(before->seconds_flush * 1e9) : 0 },
	};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof(list) / sizeof(list[0]); i++)
		rc = vv_head_add_stat(&p->head, list[i].name, list[i].value);
	return rc;
}

static int finish_layer(struct vv_pass *p, struct vv_digest *head)
{
	struct vv_era own = { p->v->era, p->epoch, p->v->token };
	struct vv_eras eras = { 0 };
	struct vv_buf tail = { 0 };
	struct vv_layer_gap gap = { 0 };
	struct iovec iov[3];
	uint64_t changed;
	int rc = vv_flush_finish(p->flush, &p->blocks);

	if (rc)
		return rc;
	if (p->blocks.n >= LONG)
		make_room(p, p->blocks.n, sizeof(struct vv_block));
	p->st.bytes_stored = p->put->written - VV_LAYER_HEADER;
	changed = p->st.bytes_zero + p->st.bytes_dup_time + p->st.bytes_dup_space + p->st.bytes_dup_ranks + p->st.bytes_new;
	p->st.bytes_unchanged = p->st.bytes_memory > changed ? p->st.bytes_memory - changed : 0; /* some may be stored in vain */
	p->head.payload = p->pos;
	lend_digests(p);
	vv_tiles_sum(p->v, &p->st);
	if (!p->v->async) /* the call lasts; what comes after this is not much */
		p->st.seconds_blocked = (double)(vv_clock_ns() - p->start_ns) / 1e9;
	rc = add_stats(p);
	if (rc == 0)
		rc = vv_footing_learn(p);
	if (rc == 0)
		rc = vv_annals_list(&p->v->lineage, &own, &p->head, &eras);
	if (rc == 0)
		rc = vv_layer_put_tail(&p->head, &p->blocks, &p->digests, &p->copies, &eras, vv_flush_coder(p->flush),
				       p->put->written, &tail, head, &gap);
	vv_eras_fini(&eras);
	iov[0] = (struct iovec){ tail.p, gap.at };
	iov[1] = (struct iovec){ p->digests.v, gap.n };
	iov[2] = (struct iovec){ tail.p ? tail.p + gap.at : NULL, tail.n - gap.at };
	if (rc == 0)
		rc = vv_history_tie(&p->v->history, p->layer, vv_layer_digests_check(&tail));
	if (rc == 0)
		rc = vv_store_put_write(p->put, iov, 3);
	vv_buf_fini(&tail);
	vv_payload_digests_fini(&p->digests); /* memory for what comes after the epoch */
	if (rc)
		return rc;
	p->st.bytes_layer = p->put->written;
	rc = vv_store_put_commit(p->put);
	p->put = NULL;
	return rc;
}

int vv_pass_commit(struct vv_pass *p)
{
	struct vv_commit c = {
		.epoch = p->epoch,
		.parent = p->v->epoch,
		.time_ns = p->head.time_ns,
		.n_ranks = 1,
		.rank = &p->record,
	};

	memcpy(c.lineage, p->v->lineage.id, sizeof(c.lineage));
	return vv_catalog_put_commit(&p->v->lineage, &c);
}

int vv_pass_finish(struct vv_pass *p)
{
	struct vv_digest head = { 0 };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < p->n_regions; i++)
		rc = add_runs(p, p->region[i], &p->head.region[i]);
	if (rc == 0)
		rc = finish_layer(p, &head);
	if (rc == 0)
		rc = vv_capture_check(p->v);
	if (rc == 0)
		rc = vv_footing_check(p);
	p->record = (struct vv_commit_rank){
		.head = head,
		.file_len = p->st.bytes_layer,
		.payload = p->pos,
		.memory = p->st.bytes_memory,
		.stored = p->st.bytes_stored,
	};
	return rc;
}

/* ---- what it means for the session ------------------------------------------------------------------------------------ */

/* The runs of a full table; of regions in grains, whose tables nobody has at hand, only that there are some: false. */
static bool count_runs(const struct varve *v, uint64_t *n)
{
	*n = 0;
	for (size_t k = 0; k < v->n_regions; k++) {
		const struct vv_region *r = v->region[k];
		struct vv_run last = { 0 };

		if (r->fine)
			return false;
		for (size_t i = 0; i < r->n_chunks; i++) {
			struct vv_run run = vv_pass_run(&v->history.index, r, i, r->was[i]);

			*n += i == 0 || run.layer != last.layer || (run.layer && run.pos != last.pos + last.len);
			last = run;
		}
	}
	return true;
}

/* Of a run at most three become of an old one and a new one. How many there are in the end is counted when the chain has become twice as long as when they were last. */
static void weigh_chain(const struct vv_pass *p, uint64_t runs)
{
	struct varve *v = p->v;
	uint64_t n;

	v->full_runs = p->keyframe ? runs : v->full_runs + 2 * runs;
	v->chain_cost = p->keyframe ? 0 : v->chain_cost + VV_LAYER_COST + runs * RUN_COST;
	if (p->keyframe)
		v->chain_weighed = CHAIN_SHORT;
	if (v->chain_cost < 2 * v->chain_weighed || !count_runs(v, &n))
		return;
	v->full_runs = n;
	v->chain_weighed = v->chain_cost;
}

void vv_pass_accept(struct vv_pass *p)
{
	struct varve *v = p->v;
	uint64_t runs = 0;

	for (size_t i = 0; i < p->n_regions; i++) {
		p->region[i]->parent = (uint32_t)i + 1;
		p->region[i]->adopted = true;
		runs += p->head.region[i].runs.n;
	}
	vv_tiles_accept(v);
	vv_weave_accept(p);
	vv_footing_accept(p);
	weigh_chain(p, runs);
	v->depth = p->head.depth;
	v->epoch = p->epoch;
	v->failed = 0; /* what could not be removed by now stays: whole, and older than this one */
	v->own = true;
	v->has_table = false;
	vv_table_fini(&v->table);
	p->st.epoch = p->epoch;
	p->st.seconds_flush = (double)(vv_clock_ns() - p->start_ns) / 1e9;
	if (!v->async)
		p->st.seconds_blocked = p->st.seconds_flush;
	p->st.bandwidth = p->st.seconds_flush > 0 ? (double)p->st.bytes_stored / p->st.seconds_flush : 0;
	v->stats = p->st;
}

/* The commit record goes first, then the layer. What the store does not let go of now is tried again before the next
 * checkpoint. */
void vv_pass_sweep(struct varve *v)
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

void vv_pass_retract(struct vv_pass *p)
{
	struct vv_err_state error;

	vv_err_save(0, &error);
	vv_flush_free(p->flush);
	p->flush = NULL;
	vv_store_put_abort(p->put);
	p->put = NULL;
	if (!p->v->failed)
		p->v->failed = p->epoch;
	vv_pass_sweep(p->v);
	vv_index_truncate(&p->v->history.index, p->old_entries);
	vv_weave_retract(p);
	vv_err_restore(&error);
}
