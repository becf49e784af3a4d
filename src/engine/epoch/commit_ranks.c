/* The phases of a commit. Each phase begins when the previous one has ended on this rank. REPORTS:
 * all ranks send their results to all. SEALS: if all succeeded, the leader of each file of several
 * layers finishes it and reports. DECISION: rank 0 writes the commit record and reports. If a rank
 * failed, it reports the reason instead of the last two phases. No function waits unless asked to.
 * So a program with one MPI thread completes the commit in any of its calls. */
#include "engine/epoch/commit_ranks.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/test_point.h"
#include "engine/write/codec_choice.h"
#include "engine/write/referenced_layers.h"
#include "engine/write/shared_file.h"
#include "engine/write/rank_dedup.h"
#include "engine/lineage/label.h"
#include "engine/epoch/epoch.h"
#include "engine/epoch/background.h"
#include "engine/ranks/group.h"
#include "engine/epoch/retention.h"
#include "engine/epoch/tip.h"
#include "engine/write/index_limit.h"
#include "store/backend/throughput.h"
#include <inttypes.h>
#include <string.h>

enum { REPORTS = 1, SEALS, DECISION };

int vv_commit_ranks_init(struct varve *v)
{
	struct vv_commit_ranks *d = v->commit;

	d->all = vv_mem_new((size_t)v->ctx.group->size + 1, sizeof(*d->all));
	d->decision = vv_mem_new(1, sizeof(*d->decision));
	return d->all && d->decision ? 0 : VV_ENOMEM;
}

void vv_commit_ranks_fini(struct varve *v)
{
	vv_comm_free(v->ctx.group->side, v->commit->all);
	vv_comm_free(v->ctx.group->side, v->commit->decision);
}

void vv_commit_ranks_begin(struct vv_layer_writer *p, int rc)
{
	struct varve *v = p->v;
	struct vv_commit_ranks *d = v->commit;

	vv_err_save(rc, &d->error);
	d->pending = true;
	d->phase = 0;
	d->epoch = p->epoch;
	d->before = v->tip.epoch;
	d->time_ns = p->head.time_ns;
	d->st = p->st;
	d->st.epoch = p->epoch;
	d->stats_before = v->stats;
	d->own = (struct vv_commit_report){ .rc = rc, .parent = vv_tip_parent(v), .time_ns = p->head.time_ns, .layer = p->record, .lost = v->referenced->lost, .tiers = vv_tiers_ranks_fate(v),
				      .coded_bytes = v->costs->coded_bytes, .coded_ns = v->costs->coded_ns };
	vv_throughput_get(v->ctx.store, &d->own.written_bytes, &d->own.written_ns);
}

/* ---- consequences ---------------------------------------------------------------------------- */

static int put_commit(struct varve *v)
{
	struct vv_commit_ranks *d = v->commit;
	struct vv_commit c = { .epoch = d->epoch, .time_ns = d->all[0].time_ns, .n_ranks = v->ctx.ranks };
	int rc;

	c.rank = vv_mem_new(v->ctx.ranks, sizeof(*c.rank));
	if (!c.rank)
		return VV_ENOMEM;
	for (uint32_t r = 0; r < v->ctx.ranks; r++) {
		c.rank[r] = d->all[r].layer;
		c.rank[r].storage_node = v->ctx.group->has_local_stores ? (uint64_t)v->ctx.group->storage_node[r] + 1 : 0;
		/* A rank that could not read its parent has none. */
		if (d->all[r].parent > c.parent)
			c.parent = d->all[r].parent;
	}
	memcpy(c.lineage, v->ctx.lineage.id, sizeof(c.lineage));
	rc = vv_label_commit(&v->ctx.lineage, &c, v->label.taken.text);
	vv_commit_fini(&c);
	return rc;
}

/* The bytes stored on this rank's storage node. */
static uint64_t bytes_here(const struct varve *v)
{
	const struct vv_group *g = v->ctx.group;
	uint64_t sum = 0;

	for (uint32_t r = 0; r < g->size; r++)
		if (g->storage_node[r] == g->storage_node[g->rank])
			sum += v->commit->all[r].layer.file_len;
	return sum;
}

/* Sets one price for all ranks, from the same numbers on each. So equal data is compressed
 * equally. */
static void share_price(struct varve *v)
{
	double written_bytes = 0, written_ns = 0, coded_bytes = 0, coded_ns = 0;

	for (uint32_t r = 0; r < v->ctx.ranks; r++) {
		written_bytes += (double)v->commit->all[r].written_bytes;
		written_ns += (double)v->commit->all[r].written_ns;
		coded_bytes += (double)v->commit->all[r].coded_bytes;
		coded_ns += (double)v->commit->all[r].coded_ns;
	}
	vv_codec_choice_set_price(v->costs, written_bytes, written_ns, coded_bytes, coded_ns);
}

/* The epoch is committed: all its layers and the record on rank 0's storage node are durable. */
static void accept(struct varve *v)
{
	struct vv_commit_ranks *d = v->commit;

	if (v->ctx.rank != 0 && vv_group_leads_storage_node(v->ctx.group) && put_commit(v) < 0)
		vv_log_warn("epoch %" PRIu64 " counts, but this store has no record of it until the next start: %s", d->epoch,
			    vv_err_last());
	vv_tiers_ranks_follow(v, d->epoch, &d->decision->tiers);
	if (vv_group_leads_storage_node(v->ctx.group))
		vv_retention_apply(v, bytes_here(v), d->decision->cutoff, d->decision->every);
	vv_redundancy_note(v, d->epoch);
	vv_rank_dedup_commit(v);
	share_price(v);
	if (d->decision->reclaimed && v->ctx.rank != 0 && vv_retention_prune(v) < 0)
		vv_log_warn("after gc: %s", vv_err_last());
	vv_index_limit_enforce(v);
	d->st.seconds_flush = v->stats.seconds_flush;
	d->st.bandwidth = v->stats.bandwidth;
}

static bool has_lost(const struct varve *v)
{
	for (uint32_t r = 0; r < v->ctx.ranks; r++)
		if (v->commit->all[r].lost)
			return true;
	return false;
}

/* The epoch is discarded: this rank's layer is removed, and the next epoch continues the previous
 * one. If the group has broken, the decision of the other ranks is unknown, and the layer must
 * stay. */
static void reject(struct varve *v, bool known)
{
	struct vv_commit_ranks *d = v->commit;

	vv_epoch_forget_shared(v);
	if (v->stats.epoch == d->epoch)
		v->stats = d->stats_before;
	/* Ranks refer to each other's layers, so all begin again. */
	if (known && has_lost(v))
		vv_tip_begin_era(v);
	else if (v->tip.epoch == d->epoch)
		vv_tip_step_back(v, d->before);
	if (!known)
		return;
	vv_tip_fail(v, d->epoch);
}

static int conclude(struct varve *v, int rc)
{
	struct vv_commit_ranks *d = v->commit;
	struct vv_err_state error;

	vv_test_point("concluded");
	vv_err_save(rc, &error);
	d->pending = false;
	if (rc == 0)
		accept(v);
	else
		reject(v, !v->ctx.group->side->broken);
	vv_err_restore(&error);
	vv_background_finish_epoch(v, d->epoch, d->time_ns, &d->st, rc);
	return 1;
}

/* ---- phases ---------------------------------------------------------------------------------- */

static int begin_gather(struct varve *v, unsigned phase)
{
	struct vv_commit_ranks *d = v->commit;
	struct vv_commit_report *mine = &d->all[v->ctx.group->size];

	*mine = d->own;
	d->phase = phase;
	return vv_comm_begin_allgather(v->ctx.group->side, mine, d->all, sizeof(*mine), &d->op);
}

/* The rank that decides: the lowest rank that failed, or rank 0. */
static uint32_t ruler(const struct varve *v)
{
	for (uint32_t r = 0; r < v->ctx.ranks; r++)
		if (v->commit->all[r].rc)
			return r;
	return 0;
}

/* Rank 0 commits the epoch and may drop old ones. That happens before any rank can refer to content
 * of dropped epochs. */
static void rule(struct varve *v)
{
	struct vv_commit_ranks *d = v->commit;
	struct vv_tiers_fate tiers = { 0 };
	int rc = put_commit(v);

	for (uint32_t r = 0; r < v->ctx.ranks; r++) {
		tiers.failed |= d->all[r].tiers.failed;
		tiers.busy |= d->all[r].tiers.busy;
	}
	if (rc == 0 && v->ctx.group->has_local_stores) {
		vv_tiers_ranks_plan(v, d->epoch, &tiers, &d->decision->tiers);
		vv_retention_decide(v, bytes_here(v), &d->decision->cutoff, &d->decision->every);
	} else if (rc == 0) {
		d->decision->reclaimed = vv_retention_run(v, bytes_here(v));
	}
	vv_err_save(rc, &d->decision->error);
}

static int begin_decision(struct varve *v)
{
	struct vv_commit_ranks *d = v->commit;
	uint32_t who = ruler(v);

	vv_test_point("reported");
	memset(d->decision, 0, sizeof(*d->decision));
	if (who == v->ctx.rank && d->own.rc)
		d->decision->error = d->error;
	else if (who == v->ctx.rank)
		rule(v);
	vv_test_point("ruled");
	d->phase = DECISION;
	return vv_comm_begin_bcast(v->ctx.group->side, d->decision, sizeof(*d->decision), who, &d->op);
}

static int read_ruling(struct varve *v)
{
	struct vv_commit_ranks *d = v->commit;
	struct vv_err_state *e = &d->decision->error;
	uint32_t who = ruler(v);

	if (e->code == 0)
		return 0;
	if (d->own.rc) /* its own failure is more informative */
		return vv_err_restore(&d->error);
	return who == v->ctx.rank ? vv_err_restore(e) : vv_group_adopt_error(v->ctx.group, who, e);
}

static bool all_well(const struct varve *v)
{
	for (uint32_t r = 0; r < v->ctx.ranks; r++)
		if (v->commit->all[r].rc)
			return false;
	return true;
}

/* The leaders finish the files of several layers. */
static int begin_seals(struct varve *v)
{
	struct vv_commit_ranks *d = v->commit;

	for (uint32_t r = 0; r < v->ctx.ranks; r++)
		v->ctx.group->bundle.len[r] = d->all[r].layer.file_len;
	d->own.rc = vv_shared_file_seal(&v->ctx);
	vv_err_save((int)d->own.rc, &d->error);
	vv_test_point("sealed");
	return begin_gather(v, SEALS);
}

static int next_phase(struct varve *v)
{
	if (v->commit->phase == REPORTS && v->ctx.group->aggregate != 1 && all_well(v))
		return begin_seals(v);
	return v->commit->phase == DECISION ? conclude(v, read_ruling(v)) : begin_decision(v);
}

int vv_commit_ranks_step(struct varve *v, bool wait)
{
	struct vv_commit_ranks *d = v->commit;
	int rc = 0;

	if (!d->pending)
		return 1;
	if (d->phase == 0)
		rc = begin_gather(v, REPORTS);
	while (rc == 0) {
		rc = vv_comm_look(v->ctx.group->side, &d->op, wait);
		if (rc == 0)
			return 0;
		if (rc < 0)
			break;
		rc = next_phase(v);
	}
	if (rc < 0)
		conclude(v, vv_err_context(rc, "it is unknown whether epoch %" PRIu64 " counts; a restart will tell", d->epoch));
	return 1;
}

void vv_commit_ranks_follow_up(struct varve *v)
{
	vv_redundancy_run(v);
	vv_tiers_ranks_assign(v);
}
