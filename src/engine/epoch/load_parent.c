/* Each rank reads the table of the parent epoch and the digests of its stored content. If ranks
 * have local stores, these may belong to different copies of the lineage, each of which was
 * continued. That happens if some hosts' files were restored from one copy and some from another.
 * Then two ranks have different epochs under one number, and neither may refer to the other's
 * content. So the ranks compare the eras of their epochs before they share content. */
#include "engine/epoch/load_parent.h"
#include "engine/lineage/run_table.h"
#include "engine/epoch/parent_chunks.h"
#include "engine/threads.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/lineage/provenance.h"
#include "engine/lineage/layer_file.h"
#include "engine/ranks/group.h"
#include "engine/context.h"
#include "engine/epoch/tip.h"
#include "engine/write/index_cache.h"
#include "engine/write/index_limit.h"
#include "engine/write/referenced_layers.h"
#include <inttypes.h>
#include <string.h>

/* ---- this rank ------------------------------------------------------------------------------- */

/* The number of ranks that wrote the epoch; 0 if it is unknown. */
static uint32_t stored_ranks(const struct varve *v, uint64_t epoch)
{
	struct vv_commit c = { 0 };
	uint32_t n = vv_catalog_commit(&v->ctx.lineage, epoch, &c) == 0 ? c.n_ranks : 0;

	vv_commit_fini(&c);
	return n;
}

/* If the parent cannot be read, it is skipped. The next layer is then a keyframe, which needs no
 * parent. */
static int load_parent(struct varve *v)
{
	int rc;

	if (v->tip.written_here || !v->tip.epoch)
		return 0;
	if (v->tip.has_table)
		return vv_run_table_merge(v->tip.table, v->ctx.pool);
	if (stored_ranks(v, v->tip.epoch) != v->ctx.ranks) {
		vv_tip_continue_none(v); /* written by another job; a new series begins */
		return 0;
	}
	rc = vv_run_table_load(&v->ctx.lineage, v->tip.epoch, v->ctx.rank, NULL, v->tip.table);
	if (rc == VV_EDAMAGED) {
		vv_log_warn("the next epoch will not continue epoch %" PRIu64 ": %s", v->tip.epoch, vv_err_last());
		vv_tip_continue_none(v);
		return 0;
	}
	if (rc == 0)
		vv_tip_loaded(v);
	return rc;
}

static int load_index(struct varve *v)
{
	int rc = v->has_index_cache ? 0 : vv_index_limit_load(v, v->index_cache);

	v->has_index_cache = rc == 0;
	return rc;
}

/* ---- all ranks ------------------------------------------------------------------------------- */

/* Lists the eras of all layers in the index, including those that a cache has provided. */
static int list_claims(const struct varve *v, struct vv_era_table *out)
{
	const struct vv_index *x = &v->index_cache->index;

	for (size_t i = 0; i < x->n_layers; i++)
		if (vv_run_rank(x->layer[i]) == v->ctx.rank && !vv_provenance_is_known(&v->ctx.lineage, vv_run_epoch(x->layer[i])) &&
		    vv_layer_file_read_eras(&v->ctx.lineage, x->layer[i]) < 0)
			/* An unreadable layer is not referred to. */
			vv_err_clear();
	return vv_provenance_copy_all(&v->ctx.lineage, out);
}

/* *epoch: an epoch that differs between ranks; 0: there is none. */
static int find_conflict(const struct vv_era *all, size_t n, uint64_t *epoch)
{
	struct vv_era_table sum = { 0 };
	int rc = 0;

	*epoch = 0;
	for (size_t i = 0; rc == 0 && i < n; i++)
		if (all[i].token && all[i].first <= all[i].last)
			rc = vv_era_table_add(&sum, &all[i], epoch);
	vv_era_table_fini(&sum);
	return rc == VV_EMISMATCH ? 0 : rc;
}

static int compare(struct varve *v, uint64_t *epoch)
{
	struct vv_group *g = v->ctx.group;
	struct vv_era_table mine = { 0 };
	struct vv_era *out = NULL, *in = NULL;
	int rc = vv_group_agree(g, g->comm, list_claims(v, &mine));
	uint64_t most = mine.n;

	if (rc == 0)
		rc = vv_comm_allreduce(g->comm, &most, 1, VARVE_MAX);
	if (rc == 0) {
		out = vv_mem_new((size_t)most, sizeof(*out));
		in = out ? vv_mem_new((size_t)most * g->size, sizeof(*in)) : NULL;
		rc = vv_group_agree(g, g->comm, in ? 0 : VV_ENOMEM);
	}
	if (rc == 0 && mine.n)
		memcpy(out, mine.v, mine.n * sizeof(*out));
	if (rc == 0 && most)
		rc = vv_comm_allgather(g->comm, out, in, (size_t)most * sizeof(*out));
	if (rc == 0)
		rc = vv_group_agree(g, g->comm, find_conflict(in, (size_t)most * g->size, epoch));
	vv_comm_free(g->comm, out);
	vv_comm_free(g->comm, in);
	vv_era_table_fini(&mine);
	return rc;
}

/* Keeps only the eras that the layers of the table contain. */
static void forget_claims(struct varve *v)
{
	vv_provenance_forget(&v->ctx.lineage);
	vv_provenance_reset(&v->ctx.lineage);
	for (size_t i = 0; v->tip.table->layer && i < v->tip.table->layers; i++)
		if (vv_layer_file_read_eras(&v->ctx.lineage, v->tip.table->layer[i]) < 0)
			vv_err_clear(); /* then the eras of its references are unknown */
}

/* Drops all knowledge except the table that a restart has just read, if any. Each layer of that
 * table was verified. The ranks also share no content from before, since a reference could not
 * identify its owner. */
static int forget_old_layers(struct varve *v, uint64_t epoch)
{
	if (v->ctx.rank == 0)
		vv_log_warn("epoch %" PRIu64 " of '%s' is not the same in the stores of all ranks: some belong to another copy of the lineage than the others, so that few of their bytes can be referred to, and more is stored again",
			    epoch, v->ctx.lineage.name);
	vv_tip_is_mixed(v);
	if (v->tip.written_here || !v->tip.all_read)
		vv_tip_step_back(v, 0);
	v->ctx.group->owners_loaded = true;
	forget_claims(v);
	vv_referenced_layers_fini(v->referenced);
	vv_index_cache_fini(v->index_cache);
	v->has_index_cache = false;
	return load_index(v);
}

static int compare_stores(struct varve *v, int rc)
{
	struct vv_group *g = v->ctx.group;
	uint64_t unsettled = !v->tip.compared, epoch = 0;

	rc = vv_group_sum(g, g->comm, rc, &unsettled, 1);
	if (rc || !unsettled)
		return rc;
	if (!v->tip.mixed)
		rc = compare(v, &epoch);
	if (rc == 0 && epoch)
		rc = vv_group_agree(g, g->comm, forget_old_layers(v, epoch));
	vv_tip_compared(v, rc == 0);
	return rc;
}

int vv_load_parent_run(struct varve *v, int rc)
{
	rc = rc ? rc : vv_threads_start(&v->ctx);
	if (rc == 0)
		rc = load_parent(v);
	if (rc == 0)
		rc = load_index(v);
	if (v->ctx.group && v->ctx.group->has_local_stores)
		rc = compare_stores(v, rc);
	if (rc == 0 && !v->tip.written_here && v->tip.epoch) {
		vv_parent_chunks_adopt(v);
		rc = vv_referenced_layers_load(v);
	}
	return rc;
}
