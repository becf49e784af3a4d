/* The tip of the session: the epoch that the next checkpoint continues. No other file assigns
 * v->tip (tests/meta/test_tip.py). vv_epoch_accept makes an epoch the tip by vv_tip_accept. A
 * single rank does that once the epoch is committed, a rank among many once its own part is stored.
 * If the ranks then reject the epoch, vv_tip_step_back undoes that. */
#include "engine/epoch/tip.h"
#include "engine/lineage/catalog.h"
#include "engine/lineage/provenance.h"
#include "engine/lineage/run_table.h"
#include "engine/ranks/group.h"
#include "engine/epoch/parent_chunks.h"
#include "engine/tiers/tiers.h"
#include "engine/tiers/tiers_restart.h"
#include "engine/write/index_cache.h"
#include "engine/write/index_limit.h"
#include "engine/write/referenced_layers.h"

enum {
	/* Bytes read: the cost of one more layer in the chain for a restart. */
	LAYER_COST = 4096,
	RUN_COST = 6,           /* approximate bytes of a run */
	REGION_COST = 8,        /* the same of a region in the list that each layer has */
	/* Bytes: a shorter chain is not examined. */
	CHAIN_SHORT = 32 << 10,
};

static int sweep_folder_of(const struct varve *v, const char *lineage, uint64_t epoch)
{
	char folder[VV_NAME_MAX];

	vv_name_folder(folder, lineage, epoch / VV_NAME_EPOCHS_PER_FOLDER);
	return vv_store_sweep(v->ctx.store, folder);
}

/* Temporary files of a dead writer lie in the folder of the newest epoch, or in that of the next
 * epoch, which was never completed. */
int vv_tip_find_newest(struct varve *v, const char *lineage)
{
	int rc = vv_catalog_newest(&v->ctx.lineage, UINT64_MAX, &v->tip.epoch);

	if (rc == 0)
		rc = vv_catalog_highest(&v->ctx.lineage, &v->tip.highest);
	if (rc == 0)
		rc = sweep_folder_of(v, lineage, v->tip.highest);
	if (rc == 0 && (v->tip.highest + 1) % VV_NAME_EPOCHS_PER_FOLDER == 0)
		rc = sweep_folder_of(v, lineage, v->tip.highest + 1);
	if (vv_tiers_highest(v) > v->tip.highest)
		v->tip.highest = vv_tiers_highest(v);
	return rc;
}

static void forget_failed(struct varve *v, uint64_t epoch)
{
	size_t n = 0;

	for (size_t i = 0; i < v->tip.n_failed; i++)
		if (v->tip.failed[i] != epoch)
			v->tip.failed[n++] = v->tip.failed[i];
	v->tip.n_failed = n;
}

void vv_tip_continue(struct varve *v, uint64_t epoch, struct vv_run_table *table)
{
	vv_run_table_fini(v->view);
	vv_run_table_fini(v->tip.table);
	*v->tip.table = *table;
	*table = (struct vv_run_table){ 0 };
	v->tip.has_table = v->tip.all_read = true;
	v->tip.eras = vv_provenance_serial(&v->ctx.lineage);
	v->tip.written_here = v->tip.compared = false;
	v->tip.epoch = epoch;
	v->newest = epoch;
	v->tip.continued = epoch ? 0 : v->tip.continued;
	forget_failed(v, epoch); /* the session continues it, so its record stays */
	for (size_t i = 0; i < v->n_regions; i++)
		v->region[i]->adopted = v->region[i]->restored = false;
	/* The index entries of other ranks' layers are not ordered, so they cannot be found by
	 * position. */
	if (v->has_index_cache && (v->ctx.group || !vv_index_limit_is_complete(v))) {
		vv_index_cache_fini(v->index_cache);
		v->has_index_cache = false;
	}
}

struct vv_run_table *vv_tip_table(const struct varve *v, uint64_t epoch)
{
	bool has = v->tip.has_table && v->tip.epoch == epoch && v->tip.eras == vv_provenance_serial(&v->ctx.lineage);

	return has && !v->ctx.group && !vv_tiers_restart_is_reading(v) ? v->tip.table : NULL;
}

bool vv_tip_take_table(struct varve *v, uint64_t epoch, struct vv_run_table *out)
{
	struct vv_run_table *t = vv_tip_table(v, epoch);

	if (!t)
		return false;
	*out = *t;
	*t = (struct vv_run_table){ 0 };
	v->tip.has_table = v->tip.all_read = false;
	return true;
}

void vv_tip_step_back(struct varve *v, uint64_t epoch)
{
	struct vv_run_table none = { 0 };
	uint64_t newest = v->newest;

	vv_tip_continue(v, epoch, &none);
	/* The failed epoch, as long as callers may ask for it. */
	v->newest = newest;
	v->tip.has_table = v->tip.all_read = false;
	vv_parent_chunks_forget(v);
}

void vv_tip_begin_after(struct varve *v, uint64_t epoch)
{
	vv_tip_step_back(v, 0);
	forget_failed(v, epoch);
	v->tip.continued = epoch;
	v->newest = epoch;
}

uint64_t vv_tip_parent(const struct varve *v)
{
	return v->tip.epoch ? v->tip.epoch : v->tip.continued;
}

void vv_tip_begin_era(struct varve *v)
{
	vv_referenced_layers_fini(v->referenced);
	vv_provenance_forget(&v->ctx.lineage);
	vv_provenance_reset(&v->ctx.lineage);
	vv_tip_new_era(v);
	vv_tip_step_back(v, 0);
	v->tip.continued = 0;
}

void vv_tip_new_era(struct varve *v)
{
	uint64_t from[2] = { v->tip.token, v->tip.highest };

	v->tip.era = v->tip.highest + 1;
	v->tip.token = vv_digest_check(from, sizeof(from));
}

static uint64_t layer_cost(const struct varve *v)
{
	return LAYER_COST + v->n_regions * (uint64_t)REGION_COST;
}

/* A delta is cheaper to write, a keyframe cheaper to restart from. The next layer is a keyframe as
 * soon as reading the chain would cost more than reading a full table. With thousands of small
 * regions each layer is one: its list of regions is longer than a full table. */
bool vv_tip_wants_keyframe(const struct varve *v)
{
	uint64_t full = v->tip.full_runs * RUN_COST;

	return !v->tip.epoch || v->tip.depth == VV_MAX_DEPTH || v->tip.chain_cost + layer_cost(v) >= full;
}

/* Counts the runs of a full table. Returns false if there are regions in grains, whose runs are not
 * counted here. */
static bool count_runs(const struct varve *v, uint64_t *n)
{
	*n = 0;
	for (size_t k = 0; k < v->n_regions; k++) {
		const struct vv_region *r = v->region[k];
		struct vv_run last = { 0 };

		if (r->fine)
			return false;
		for (size_t i = 0; i < r->n_chunks; i++) {
			struct vv_run run = vv_layer_writer_run(&v->index_cache->index, r, i, r->was[i]);

			*n += i == 0 || run.layer != last.layer || (run.layer && run.pos != last.pos + last.len);
			last = run;
		}
	}
	return true;
}

/* A new run splits an old run into at most three. The exact number is counted again when the chain
 * has doubled since the last count. */
static void update_chain_cost(const struct vv_layer_writer *p, uint64_t runs)
{
	struct varve *v = p->v;
	uint64_t n;

	v->tip.full_runs = p->keyframe ? runs : v->tip.full_runs + 2 * runs;
	v->tip.chain_cost = p->keyframe ? 0 : v->tip.chain_cost + layer_cost(v) + runs * RUN_COST;
	if (p->keyframe)
		v->tip.chain_counted = CHAIN_SHORT;
	if (v->tip.chain_cost < 2 * v->tip.chain_counted || !count_runs(v, &n))
		return;
	v->tip.full_runs = n;
	v->tip.chain_counted = v->tip.chain_cost;
}

static int remove_record(const struct varve *v, uint64_t epoch)
{
	char object[VV_NAME_MAX];

	vv_name_commit(object, v->ctx.lineage.name, epoch);
	return vv_store_remove(v->ctx.store, object);
}

/* The layers stay, since content that is known by now may lie in them. gc takes their space
 * back. */
void vv_tip_sweep(struct varve *v)
{
	size_t n = 0;

	for (size_t i = 0; i < v->tip.n_failed; i++)
		if (remove_record(v, v->tip.failed[i]) != 0)
			v->tip.failed[n++] = v->tip.failed[i];
	v->tip.n_failed = n;
}

void vv_tip_accept(const struct vv_layer_writer *p)
{
	struct varve *v = p->v;
	uint64_t runs = 0;

	for (size_t i = 0; i < p->n_regions; i++)
		runs += p->head.region[i].runs.n;
	update_chain_cost(p, runs);
	v->tip.depth = p->head.depth;
	v->tip.epoch = p->epoch;
	v->tip.written_here = true;
	v->tip.has_table = false;
	vv_run_table_fini(v->tip.table);
}

/* The commit record is removed first, then the layer. A record without the layers of the other
 * ranks is one of a damaged epoch. So a removal that the store refuses is tried again. */
void vv_tip_fail(struct varve *v, uint64_t epoch)
{
	char object[VV_NAME_MAX];

	forget_failed(v, epoch); /* several steps of one epoch may fail */
	if (remove_record(v, epoch) == 0) {
		vv_name_layer(object, v->ctx.lineage.name, epoch, v->ctx.rank);
		vv_store_remove(v->ctx.store, object);
		return;
	}
	if (v->tip.n_failed == VV_TIP_FAILED)
		forget_failed(v, v->tip.failed[0]);
	v->tip.failed[v->tip.n_failed++] = epoch;
}

bool vv_tip_has_failed(const struct varve *v, uint64_t epoch)
{
	for (size_t i = 0; i < v->tip.n_failed; i++)
		if (v->tip.failed[i] == epoch)
			return true;
	return false;
}

uint64_t vv_tip_next_number(struct varve *v)
{
	return ++v->tip.highest;
}

int vv_tip_agree_on_numbers(struct varve *v)
{
	return v->ctx.group ? vv_comm_allreduce(v->ctx.group->comm, &v->tip.highest, 1, VARVE_MAX) : 0;
}

void vv_tip_open(struct varve *v)
{
	v->tip.highest_at_open = v->tip.highest;
	v->tip.era = v->tip.highest + 1;
}

void vv_tip_agree(struct varve *v, uint64_t epoch, uint64_t highest)
{
	v->tip.epoch = epoch;
	v->tip.highest = highest;
}

void vv_tip_set_token(struct varve *v, uint64_t token)
{
	v->tip.token = token;
}

void vv_tip_continue_none(struct varve *v)
{
	v->tip.continued = 0;
	v->tip.epoch = 0;
}

void vv_tip_loaded(struct varve *v)
{
	v->tip.has_table = true;
	v->tip.all_read = false;
}

void vv_tip_adopt(struct varve *v)
{
	const struct vv_run_table *t = v->tip.table;

	v->tip.depth = t->depth;
	v->tip.full_runs = 0;
	v->tip.chain_cost = v->tip.depth * layer_cost(v);
	for (size_t i = 0; i < t->n; i++)
		v->tip.full_runs += t->region[i].runs.n;
}

void vv_tip_compared(struct varve *v, bool done)
{
	v->tip.compared = done;
}

void vv_tip_is_mixed(struct varve *v)
{
	v->tip.mixed = true;
}

void vv_tip_refer_from(struct varve *v, uint64_t epoch)
{
	v->tip.oldest = epoch;
}
