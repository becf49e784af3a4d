/* The life of an epoch: it is begun, its layer is written, it is committed, and the session
 * continues from it. Or it is abandoned.
 *
 * Invariant of a single rank: until the commit record is durable, only two parts of the session
 * change. They are the tail of the index and the highest epoch number, which is never used again.
 * vv_epoch_abandon removes that tail. Every failure before vv_epoch_accept leads to
 * vv_epoch_abandon.
 *
 * A rank among many accepts the epoch when its own layer is stored, before all ranks have agreed.
 * If the ranks reject it, commit_ranks.c steps the tip back (vv_tip_step_back). Regions and index
 * are then read again from the store. */
#include "engine/epoch/epoch.h"
#include "engine/epoch/tip.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/test_point.h"
#include "engine/lineage/label.h"
#include "engine/lineage/run_table.h"
#include "engine/write/codec_choice.h"
#include "engine/write/referenced_layers.h"
#include "engine/write/shared_file.h"
#include "engine/lineage/provenance.h"
#include "engine/memory/capture.h"
#include "engine/write/rank_dedup.h"
#include "engine/grains/grain_sets.h"
#include "engine/memory/layout.h"
#include "engine/memory/store_tiles.h"
#include "engine/epoch/ask_ranks.h"
#include "engine/grains/grain_runs.h"
#include <inttypes.h>
#include <string.h>

enum {
	LONG = 1 << 13, /* entries from which the memory of a table matters */
};

/* ---- beginning ------------------------------------------------------------------------------- */

static int open_layer(struct vv_layer_writer *p);

int vv_epoch_new(struct varve *v, struct vv_layer_writer **out)
{
	struct vv_layer_writer *p;

	if (v->tip.highest >= VV_MAX_EPOCH)
		return vv_err_set(VV_EINVAL, "lineage '%s' has used up its epoch numbers: something in store '%s' bears %" PRIu64
				  "; begin another lineage", v->ctx.lineage.name, v->ctx.store->url, v->tip.highest);
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
	p->epoch = vv_tip_next_number(v);
	p->layer = vv_run_layer(p->epoch, v->ctx.rank);
	p->old_entries = v->index_cache->index.n;
	p->keyframe = vv_tip_wants_keyframe(v);
	p->source.open = open_layer;
	v->label.taken = v->label.next;
	v->label.next = (struct vv_label_text){ 0 };
	*out = p;
	return 0;
}

void vv_epoch_free(struct vv_layer_writer *p)
{
	if (!p)
		return;
	vv_store_tiles_free(p);
	vv_rank_dedup_end(p);
	vv_block_writer_free(p->block_writer);
	vv_new_data_leave(p->v); /* the writer may still have read its blocks */
	vv_head_fini(&p->head);
	vv_payload_blocks_fini(&p->blocks);
	vv_payload_digests_fini(&p->digests);
	vv_copies_section_fini(&p->copies);
	vv_mem_free(p->region);
	vv_mem_free(p);
}

/* ---- storing --------------------------------------------------------------------------------- */

/* Called on a thread that writes. The cells of a block are all freed under one lock, so that
 * open_ahead.c finds them together. */
static void stored(void *arg, const struct vv_block_writer_tag_count *owed, int n)
{
	struct varve *v = arg;
	struct vv_tiles *t = v->tiles;

	pthread_mutex_lock(&t->lock);
	if (!owed) {
		t->waiters.broken = true;
		pthread_cond_broadcast(&t->work_cond);
		if (v->grains)
			vv_new_data_fail(&v->grains->new_data);
	}
	for (int i = 0; i < n; i++) {
		struct vv_tile *x = owed[i].tag >= VV_NO_TAG ? NULL : &t->geometry.tile[owed[i].tag];

		if (!x) {
			if (owed[i].tag == VV_NEW_DATA_TAG)
				vv_new_data_stored(&v->grains->new_data, owed[i].adds);
			continue;
		}
		x->in_blocks -= owed[i].adds;
		if (x->flags & VV_TILE_PLACED && x->in_blocks == 0)
			vv_tiles_done(t, owed[i].tag);
	}
	pthread_mutex_unlock(&t->lock);
}

/* Is most new data in grains, and little beside the regions? Small pieces of pages alone take more
 * space than compressed large ones. */
static bool is_little(const struct vv_layer_writer *p)
{
	enum { PART = 32 };
	uint64_t len = p->v->grains ? p->v->grains->new_data.asked : 0, regions = 0;

	for (size_t i = 0; i < p->n_regions; i++)
		regions += p->region[i]->fine ? p->region[i]->shape.len : 0;
	return p->v->grains && len >= p->paged && len <= regions / PART;
}

/* Opens the layer, so that content can be placed. */
static int open_layer(struct vv_layer_writer *p)
{
	struct vv_block_writer_options opt = *p->v->coding;

	opt.low_latency = p->v->tiles->protection.is_protecting;
	opt.always = is_little(p);
	opt.costs = p->v->costs;
	p->v->costs->shared = p->v->ctx.group != NULL;
	opt.stored = stored;
	opt.arg = p->v;
	p->v->tiles->waiters.broken = false;
	return vv_layer_writer_open(p, &opt);
}

/* Stores the content of the regions in the layer. */
static int store_memory(struct vv_layer_writer *p)
{
	int rc = 0;

	if (!p->storing)
		rc = p->v->ctx.group ? vv_ask_ranks_run(p, 0) : vv_store_tiles_begin(p, false);
	vv_test_point("asked");
	if (rc == 0 && !p->block_writer)
		rc = open_layer(p);
	if (rc == 0)
		rc = vv_store_tiles_run(p->storing);
	vv_test_point("placed");
	vv_store_tiles_free(p);
	return rc;
}

/* ---- the layer ------------------------------------------------------------------------------- */

/* Frees memory of the buffer for n more entries and their encoding. Everything must be stored. */
static void make_room(struct vv_layer_writer *p, size_t n, size_t entry)
{
	p->borrowed += n * (entry + entry / 2);
	vv_layout_lend_buffer(p->v, p->borrowed);
}

static int add_run(struct vv_layer_writer *p, struct vv_runs *runs, struct vv_run run)
{
	const struct vv_blocks *blocks;
	size_t before = runs->n;
	int rc = vv_run_add(runs, run);

	if (rc == 0 && runs->n > before && runs->n % LONG == 0) {
		rc = p->block_writer ? vv_block_writer_drain(p->block_writer, &blocks) : 0;
		make_room(p, runs->n == LONG ? 2 * LONG : LONG, sizeof(run));
	}
	return rc;
}

/* A delta layer contains only the differences to its parent. */
static int add_runs(struct vv_layer_writer *p, struct vv_region *r, struct vv_head_region *out)
{
	const struct vv_tiles *t = p->v->tiles;
	bool all = p->keyframe || !out->parent;
	int rc = 0;

	for (size_t g = all ? 0 : vv_tiles_next_dirty(t, r, 0); rc == 0 && g < r->tracked->n_groups; g = all ? g + 1 : vv_tiles_next_dirty(t, r, g + 1)) {
		bool looked = vv_tiles_is_dirty(t, r, g);
		size_t end = vv_tiles_chunk_end(t, r, g);

		for (size_t i = vv_tiles_chunk(t, g); rc == 0 && i < end; i++) {
			uint32_t state = looked ? r->now[i] : r->was[i];

			if (all || state != r->was[i])
				rc = add_run(p, &out->runs, vv_layer_writer_run(&p->v->index_cache->index, r, i, state));
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
		{ "ns.before", before->epoch == p->v->tip.epoch ? (uint64_t)(before->seconds_flush * 1e9) : 0 },
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
	struct vv_era own = { p->v->tip.era, p->epoch, p->v->tip.token };
	struct vv_era_table eras = { 0 };
	struct vv_buf tail = { 0 };
	struct vv_layer_gap gap = { 0 };
	struct iovec iov[3];
	uint64_t changed;
	int rc = vv_block_writer_finish(p->block_writer, &p->blocks);

	if (rc)
		return rc;
	if (p->blocks.n >= LONG)
		make_room(p, p->blocks.n, sizeof(struct vv_block));
	p->st.bytes_stored = p->put->written - VV_LAYER_HEADER;
	changed = p->st.bytes_zero + p->st.bytes_dup_time + p->st.bytes_dup_space + p->st.bytes_dup_ranks + p->st.bytes_new;
	/* Some content may be stored in vain, so `changed` may be the larger one. */
	p->st.bytes_unchanged = p->st.bytes_memory > changed ? p->st.bytes_memory - changed : 0;
	p->head.payload = p->pos;
	lend_digests(p);
	vv_tiles_sum(p->v, &p->st);
	if (!p->v->ctx.async) /* the call has not ended, but little remains to be done */
		p->st.seconds_blocked = (double)(vv_clock_ns() - p->start_ns) / 1e9;
	rc = add_stats(p);
	if (rc == 0)
		rc = vv_referenced_layers_read_eras(p);
	if (rc == 0)
		rc = vv_provenance_list(&p->v->ctx.lineage, &own, &p->head, &p->blocks.bases, &eras);
	if (rc == 0)
		rc = vv_layer_put_tail(&p->head, &p->blocks, &p->digests, &p->copies, &eras, vv_block_writer_coder(p->block_writer),
				       p->put->written, &tail, head, &gap);
	vv_era_table_fini(&eras);
	iov[0] = (struct iovec){ tail.p, gap.at };
	iov[1] = (struct iovec){ p->digests.v, gap.n };
	iov[2] = (struct iovec){ tail.p ? tail.p + gap.at : NULL, tail.n - gap.at };
	if (rc == 0)
		rc = vv_index_cache_set_check(p->v->index_cache, p->layer, vv_layer_digests_check(&tail));
	if (rc == 0)
		rc = vv_store_put_write(p->put, iov, 3);
	vv_buf_fini(&tail);
	vv_payload_digests_fini(&p->digests); /* memory for the steps after the epoch */
	if (rc)
		return rc;
	p->st.bytes_layer = p->put->written;
	rc = vv_store_put_commit(p->put);
	p->put = NULL;
	return rc;
}

/* A delta that covers every byte is a full table. Without its parent the layer keeps no older layer
 * in the store, so gc can remove the parent as soon as its epoch is dropped. */
static void leave_parent(struct vv_layer_writer *p)
{
	for (size_t i = 0; i < p->n_regions; i++) {
		const struct vv_runs *runs = &p->head.region[i].runs;
		uint64_t covered = 0;

		for (size_t k = 0; k < runs->n; k++)
			covered += runs->v[k].len;
		if (p->region[i]->fine || covered != p->region[i]->shape.len)
			return;
	}
	p->keyframe = true;
	p->head.parent = p->head.depth = 0;
	for (size_t i = 0; i < p->n_regions; i++)
		p->head.region[i].parent = 0;
}

static int finish(struct vv_layer_writer *p)
{
	struct vv_digest head = { 0 };
	int rc = vv_grain_runs_add(p);

	for (size_t i = 0; rc == 0 && i < p->n_regions; i++)
		rc = add_runs(p, p->region[i], &p->head.region[i]);
	if (rc == 0 && !p->keyframe)
		leave_parent(p);
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

/* ---- the commit and its effect on the session ------------------------------------------------ */

static int commit(struct vv_layer_writer *p)
{
	struct vv_commit c = {
		.epoch = p->epoch,
		.parent = vv_tip_parent(p->v),
		.time_ns = p->head.time_ns,
		.n_ranks = 1,
		.rank = &p->record,
	};

	memcpy(c.lineage, p->v->ctx.lineage.id, sizeof(c.lineage));
	return vv_label_commit(&p->v->ctx.lineage, &c, p->v->label.taken.text);
}

/* If memory could not be read, the program may have freed it after the call. Then the error reports
 * that. The error is also logged, since programs that free their memory before varve_close seldom
 * check its result. */
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
	int rc = p->source.load ? p->source.load(p) : store_memory(p);

	if (rc == 0)
		rc = finish(p);
	if ((rc == VV_EINVAL || rc == VV_EIO) && !p->source.load)
		rc = explain(p, rc);
	vv_test_point("stored");
	return rc == 0 && !p->v->ctx.group ? commit(p) : rc;
}

void vv_epoch_accept(struct vv_layer_writer *p)
{
	struct varve *v = p->v;

	for (size_t i = 0; i < p->n_regions; i++) {
		p->region[i]->parent = (uint32_t)i + 1;
		p->region[i]->adopted = true;
	}
	vv_tiles_accept(v);
	vv_grain_runs_accept(p);
	vv_referenced_layers_accept(p);
	vv_tip_accept(p);
	p->st.epoch = p->epoch;
	p->st.seconds_flush = (double)(vv_clock_ns() - p->start_ns) / 1e9;
	if (!v->ctx.async)
		p->st.seconds_blocked = p->st.seconds_flush;
	p->st.bandwidth = p->st.seconds_flush > 0 ? (double)p->st.bytes_stored / p->st.seconds_flush : 0;
	v->stats = p->st;
	if (p->captured) {
		vv_tiles_end(v, true);
		vv_layout_choose_tile_size(v, &p->st);
	}
	p->captured = false;
}

void vv_epoch_abandon(struct vv_layer_writer *p)
{
	struct varve *v = p->v;
	struct vv_err_state error;

	vv_err_save(0, &error);
	vv_store_tiles_free(p);
	vv_block_writer_free(p->block_writer);
	p->block_writer = NULL;
	if (p->captured)
		vv_tiles_end(v, false);
	p->captured = false;
	if (p->opened || p->put) {
		vv_store_put_abort(p->put);
		p->put = NULL;
		vv_tip_fail(v, p->epoch);
	}
	vv_index_truncate(&v->index_cache->index, p->old_entries);
	vv_grain_runs_abandon(p);
	vv_err_restore(&error);
}

void vv_epoch_forget_shared(struct varve *v)
{
	vv_rank_dedup_discard(v);
	vv_shared_file_drop(&v->ctx);
}
