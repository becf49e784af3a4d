/* The life of an epoch: it is begun, its layer is written, it is committed, and the session continues from it. Or it is abandoned.
 *
 * Invariant: until the commit record is durable nothing in the session changes but the tail of the index, which vv_epoch_abandon cuts
 * off again. Every failure path comes to vv_epoch_abandon. */
#include "engine/session/epoch.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/test_point.h"
#include "engine/write/shared_file.h"
#include "engine/lineage/provenance.h"
#include "engine/memory/capture.h"
#include "engine/write/rank_dedup.h"
#include "engine/grains/grain_sets.h"
#include "engine/memory/layout.h"
#include "engine/memory/store_tiles.h"
#include "engine/session/ask_ranks.h"
#include "engine/grains/grain_runs.h"
#include <inttypes.h>
#include <string.h>

enum {
	RUN_COST = 6,           /* bytes of a run, about */
	CHAIN_SHORT = 32 << 10, /* bytes of a chain that is not worth a look */
	LONG = 1 << 13,         /* entries of a table that takes memory worth a thought */
};

/* ---- beginning ------------------------------------------------------------------------------------------------------- */

/* A delta is cheaper to write, a keyframe cheaper to restart from: as soon as reading the chain would cost more than
 * reading a full table, the next layer is a keyframe. */
static bool choose_keyframe(const struct varve *v)
{
	uint64_t full = v->full_runs * RUN_COST;

	return !v->epoch || v->depth == VV_MAX_DEPTH || v->chain_cost + VV_LAYER_COST >= full;
}

int vv_epoch_new(struct varve *v, struct vv_layer_writer **out)
{
	struct vv_layer_writer *p;

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
	p->open = vv_epoch_open_layer;
	*out = p;
	return 0;
}

void vv_epoch_free(struct vv_layer_writer *p)
{
	if (!p)
		return;
	vv_store_tiles_free(p);
	vv_rank_dedup_end(p);
	vv_block_writer_free(p->flush);
	vv_head_fini(&p->head);
	vv_payload_blocks_fini(&p->blocks);
	vv_payload_digests_fini(&p->digests);
	vv_copies_section_fini(&p->copies);
	vv_mem_free(p->region);
	vv_mem_free(p);
}

/* ---- storing --------------------------------------------------------------------------------------------------------- */

/* On the writing thread. A block's cells are all freed at once, so that who opens ahead finds them all. */
static void stored(void *arg, const struct vv_block_writer_owed *owed, int n)
{
	struct varve *v = arg;
	struct vv_tiles *t = &v->tiles;

	pthread_mutex_lock(&t->lock);
	if (!owed) {
		t->broken = true;
		pthread_cond_broadcast(&t->bell);
		if (v->grains)
			vv_new_data_break(&v->grains->stream);
	}
	for (int i = 0; i < n; i++) {
		struct vv_tile *x = owed[i].tag == VV_NEW_DATA_TAG ? NULL : &t->tile[owed[i].tag];

		if (!x) {
			vv_new_data_stored(&v->grains->stream, owed[i].adds);
			continue;
		}
		x->in_blocks -= owed[i].adds;
		if (x->flags & VV_TILE_PLACED && x->in_blocks == 0)
			vv_tiles_done(t, owed[i].tag);
	}
	pthread_mutex_unlock(&t->lock);
}

int vv_epoch_open_layer(struct vv_layer_writer *p)
{
	struct vv_block_writer_options opt = p->v->coding;

	opt.prompt = p->v->tiles.fencing;
	opt.always = p->v->grains && p->v->grains->stream.asked >= p->paged; /* what is new is little, and small chunks alone are more than coded large ones */
	opt.costs = &p->v->costs;
	p->v->costs.shared = p->v->group != NULL;
	opt.stored = stored;
	opt.arg = p->v;
	p->v->tiles.broken = false;
	return vv_layer_writer_open(p, &opt);
}

/* The content of the regions goes into the layer. */
static int store_memory(struct vv_layer_writer *p)
{
	int rc = 0;

	if (!p->stow)
		rc = p->v->group ? vv_ask_ranks_run(p, 0) : vv_store_tiles_begin(p, false);
	vv_test_point("asked");
	if (rc == 0 && !p->flush)
		rc = vv_epoch_open_layer(p);
	if (rc == 0)
		rc = vv_store_tiles_tiles(p->stow);
	vv_test_point("placed");
	vv_store_tiles_free(p);
	return rc;
}

/* ---- the layer ------------------------------------------------------------------------------------------------------- */

/* What n more entries take, and are coded to, the buffer gives, once everything is stored. */
static void make_room(struct vv_layer_writer *p, size_t n, size_t entry)
{
	p->lent += n * (entry + entry / 2);
	vv_layout_lend_buffer(p->v, p->lent);
}

static int add_run(struct vv_layer_writer *p, struct vv_runs *runs, struct vv_run run)
{
	const struct vv_blocks *blocks;
	size_t before = runs->n;
	int rc = vv_run_add(runs, run);

	if (rc == 0 && runs->n > before && runs->n % LONG == 0) {
		rc = p->flush ? vv_block_writer_drain(p->flush, &blocks) : 0;
		make_room(p, runs->n == LONG ? 2 * LONG : LONG, sizeof(run));
	}
	return rc;
}

/* A layer that continues another says only what is different. */
static int add_runs(struct vv_layer_writer *p, struct vv_region *r, struct vv_head_region *out)
{
	const struct vv_tiles *t = &p->v->tiles;
	bool all = p->keyframe || !out->parent;
	int rc = r->fine ? vv_grain_runs_runs(p, r, all, &out->runs) : 0;

	for (size_t g = 0; rc == 0 && g < r->n_groups; g++) {
		bool looked = vv_tiles_is_dirty(t, r, g);
		size_t end = vv_tiles_chunk_end(t, r, g);

		for (size_t i = vv_tiles_chunk(t, g); rc == 0 && (all || looked) && i < end; i++) {
			uint32_t state = looked ? r->now[i] : r->was[i];

			if (all || state != r->was[i])
				rc = add_run(p, &out->runs, vv_layer_writer_run(&p->v->history.index, r, i, state));
		}
	}
	return rc;
}

static int add_stats(struct vv_layer_writer *p)
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

static void lend_digests(struct vv_layer_writer *p)
{
	if (p->digests.v || !p->digests.n)
		return;
	p->digests.v = vv_layer_writer_new_digests(p);
	p->digests.lent = true;
}

static int finish_layer(struct vv_layer_writer *p, struct vv_digest *head)
{
	struct vv_era own = { p->v->era, p->epoch, p->v->token };
	struct vv_era_table eras = { 0 };
	struct vv_buf tail = { 0 };
	struct vv_layer_gap gap = { 0 };
	struct iovec iov[3];
	uint64_t changed;
	int rc = vv_block_writer_finish(p->flush, &p->blocks);

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
		rc = vv_referenced_layers_learn(p);
	if (rc == 0)
		rc = vv_provenance_list(&p->v->lineage, &own, &p->head, &eras);
	if (rc == 0)
		rc = vv_layer_put_tail(&p->head, &p->blocks, &p->digests, &p->copies, &eras, vv_block_writer_coder(p->flush),
				       p->put->written, &tail, head, &gap);
	vv_era_table_fini(&eras);
	iov[0] = (struct iovec){ tail.p, gap.at };
	iov[1] = (struct iovec){ p->digests.v, gap.n };
	iov[2] = (struct iovec){ tail.p ? tail.p + gap.at : NULL, tail.n - gap.at };
	if (rc == 0)
		rc = vv_index_cache_tie(&p->v->history, p->layer, vv_layer_digests_check(&tail));
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

static int finish(struct vv_layer_writer *p)
{
	struct vv_digest head = { 0 };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < p->n_regions; i++)
		rc = add_runs(p, p->region[i], &p->head.region[i]);
	if (rc == 0)
		rc = finish_layer(p, &head);
	if (rc == 0)
		rc = vv_capture_check(p);
	if (rc == 0)
		rc = vv_referenced_layers_check(p);
	p->record = (struct vv_commit_rank){
		.head = head,
		.file_len = p->st.bytes_layer,
		.payload = p->pos,
		.memory = p->st.bytes_memory,
		.stored = p->st.bytes_stored,
	};
	return rc;
}

/* ---- the commit, and what follows for the session -------------------------------------------------------------------- */

static int commit(struct vv_layer_writer *p)
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

/* Memory that could not be read may have been freed since the call: then the error says so. It is logged as well, since programs that
 * free their memory before they close seldom look at the result of varve_close. */
static int explain(struct vv_layer_writer *p, int rc)
{
	struct vv_err_state error;

	vv_err_save(rc, &error);
	if (vv_capture_check(p) != VV_EINVAL)
		return vv_err_restore(&error);
	vv_log_warn("%s", vv_err_last());
	return VV_EINVAL;
}

int vv_epoch_store(struct vv_layer_writer *p)
{
	int rc = p->load ? p->load(p) : store_memory(p);

	if (rc == 0)
		rc = finish(p);
	if ((rc == VV_EINVAL || rc == VV_EIO) && !p->load)
		rc = explain(p, rc);
	vv_test_point("stored");
	return rc == 0 && !p->v->group ? commit(p) : rc;
}

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
			struct vv_run run = vv_layer_writer_run(&v->history.index, r, i, r->was[i]);

			*n += i == 0 || run.layer != last.layer || (run.layer && run.pos != last.pos + last.len);
			last = run;
		}
	}
	return true;
}

/* Of a run at most three become of an old one and a new one. How many there are in the end is counted when the chain has become twice as long as when they were last. */
static void weigh_chain(const struct vv_layer_writer *p, uint64_t runs)
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

void vv_epoch_accept(struct vv_layer_writer *p)
{
	struct varve *v = p->v;
	uint64_t runs = 0;

	for (size_t i = 0; i < p->n_regions; i++) {
		p->region[i]->parent = (uint32_t)i + 1;
		p->region[i]->adopted = true;
		runs += p->head.region[i].runs.n;
	}
	vv_tiles_accept(v);
	vv_grain_runs_accept(p);
	vv_referenced_layers_accept(p);
	weigh_chain(p, runs);
	v->depth = p->head.depth;
	v->epoch = p->epoch;
	v->failed = 0; /* what could not be removed by now stays: whole, and older than this one */
	v->own = true;
	v->has_table = false;
	vv_run_table_fini(&v->table);
	p->st.epoch = p->epoch;
	p->st.seconds_flush = (double)(vv_clock_ns() - p->start_ns) / 1e9;
	if (!v->async)
		p->st.seconds_blocked = p->st.seconds_flush;
	p->st.bandwidth = p->st.seconds_flush > 0 ? (double)p->st.bytes_stored / p->st.seconds_flush : 0;
	v->stats = p->st;
	if (p->captured) {
		vv_tiles_end(v, true);
		vv_layout_judge(v, &p->st);
	}
	p->captured = false;
}

/* The commit record goes first, then the layer. What the store does not let go of now is tried again before the next
 * checkpoint. */
void vv_epoch_sweep(struct varve *v)
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

void vv_epoch_abandon(struct vv_layer_writer *p)
{
	struct varve *v = p->v;
	struct vv_err_state error;

	vv_err_save(0, &error);
	vv_store_tiles_free(p);
	vv_block_writer_free(p->flush);
	p->flush = NULL;
	if (p->captured)
		vv_tiles_end(v, false);
	p->captured = false;
	if (p->opened || p->put) {
		vv_store_put_abort(p->put);
		p->put = NULL;
		if (!v->failed)
			v->failed = p->epoch;
		vv_epoch_sweep(v);
	}
	vv_index_truncate(&v->history.index, p->old_entries);
	vv_grain_runs_retract(p);
	vv_err_restore(&error);
}

void vv_epoch_forget_shared(struct varve *v)
{
	vv_rank_dedup_forget(v);
	vv_shared_file_drop(v);
}
