/* Restart: restores the regions from the newest intact epoch or a given one. Also reads single
 * regions of an epoch. */
#include "base/copy_sized.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/lineage/provenance.h"
#include "engine/session/enter.h"
#include "engine/epoch/background.h"
#include "engine/grains/rehash.h"
#include "engine/threads.h"
#include "engine/lost_memory.h"
#include "engine/read/device_restore.h"
#include "engine/ranks/remote_read.h"
#include "engine/ranks/remote_table.h"
#include "engine/grains/grain_sets.h"
#include "engine/ranks/group.h"
#include "engine/epoch/load_parent.h"
#include "engine/session/redistribute.h"
#include "engine/epoch/redundancy.h"
#include "engine/epoch/parent_chunks.h"
#include "engine/session/rehearse.h"
#include "engine/epoch/retention.h"
#include "engine/tiers/tiers_restart.h"
#include "engine/read/layer_by_layer.h"
#include "engine/read/restore.h"
#include "engine/memory/tiles.h"
#include "engine/epoch/tip.h"
#include "engine/write/index_cache.h"
#include "engine/write/referenced_layers.h"
#include "track/write_protect.h"
#include <inttypes.h>
#include <string.h>

static int add_want(const struct vv_lineage *lin, const struct vv_run_table *t, const struct vv_region *r,
		    struct vv_want *out)
{
	const struct vv_run_table_region *from = NULL;
	int rc = vv_run_table_region(lin, t, r->name, &from);

	if (rc)
		return rc;
	if (from->shape.len != r->shape.len)
		return vv_err_set(VV_EMISMATCH,
				  "region '%s' has %" PRIu64 " bytes, in epoch %" PRIu64 " it has %" PRIu64
				  " bytes; declare it with that size, or read it with varve_restart_region",
				  r->name, r->shape.len, t->epoch, from->shape.len);
	if (r->shape.record && from->shape.record && r->shape.record != from->shape.record)
		return vv_err_set(VV_EMISMATCH, "region '%s': the fields of its records differ from those in epoch %" PRIu64
				  " ('varve show' lists them); declare the same fields, or read the region with varve_restart_region", r->name, t->epoch);
	if (!vv_head_types_agree(r->shape.type, from->shape.type))
		return vv_err_set(VV_EMISMATCH, "region '%s' is declared as %s, in epoch %" PRIu64 " it is %s", r->name,
				  vv_head_type_name(r->shape.type), t->epoch, vv_head_type_name(from->shape.type));
	*out = (struct vv_want){ &from->runs, 0, r->shape.len, r->p, r->name };
	return 0;
}

/* The number of ranks that wrote the epoch. It is the same in all stores, or some belong to another
 * copy of the lineage. */
static int read_ranks(struct varve *v, uint64_t epoch, uint32_t *ranks)
{
	struct vv_commit c = { 0 };
	int rc = vv_catalog_commit(&v->ctx.lineage, epoch, &c);
	uint64_t most[2] = { c.n_ranks, ~(uint64_t)c.n_ranks };

	*ranks = c.n_ranks;
	vv_commit_fini(&c);
	if (!v->ctx.group)
		return rc;
	rc = vv_group_agree(v->ctx.group, v->ctx.group->comm, rc);
	if (rc == 0)
		rc = vv_comm_allreduce(v->ctx.group->comm, most, 2, VARVE_MAX);
	if (rc == 0 && most[0] != ~most[1])
		rc = vv_err_set(VV_EDAMAGED, "epoch %" PRIu64 " of '%s' has not the same number of ranks in all stores: some belong to another copy of the lineage than the others",
				epoch, v->ctx.lineage.name);
	return rc;
}

/* The content that this rank shares with other ranks' layers must be found now, before the program
 * changes it. */
static int adopt_now(struct varve *v)
{
	int rc = vv_load_parent_run(v, 0);

	return rc ? rc : vv_parent_chunks_adopt_foreign(v);
}

/* Do all ranks that know the epoch have the same era for it? */
static int agree_on_era(struct varve *v, uint64_t epoch, uint64_t *era)
{
	uint64_t token = vv_provenance_token(&v->ctx.lineage, epoch), most[2] = { token, token ? ~token : 0 };
	int rc = vv_comm_allreduce(v->ctx.group->comm, most, 2, VARVE_MAX);

	if (rc == 0 && most[0] != ~most[1] && most[0])
		rc = vv_err_set(VV_EDAMAGED, "epoch %" PRIu64 " of '%s' is not the same in the stores of all ranks: some belong to another copy of the lineage than the others", epoch,
				v->ctx.lineage.name);
	*era = most[0];
	return rc;
}

/* The session may continue from an epoch that has replaced the one it had written or read. Then it
 * may refer only to content that it has found since. If the epoch's number lies in the session's
 * own era but the epoch does not belong to it, another era begins. */
static void forget_replaced(struct varve *v, uint64_t epoch, uint64_t token)
{
	if (epoch >= v->tip.era && token && token != v->tip.token)
		vv_tip_new_era(v);
	if (!vv_provenance_was_replaced(&v->ctx.lineage))
		return;
	vv_provenance_reset(&v->ctx.lineage);
	vv_referenced_layers_fini(v->referenced);
	vv_parent_chunks_forget(v);
}

/* Is there a thread that can hash regions in grains after the return? */
static bool has_thread(struct varve *v)
{
	int rc = v->grains ? vv_background_ready(v->background) : VV_ENOENT;

	if (rc && v->grains)
		vv_err_clear();
	return rc == 0;
}

/* The session continues from the restored epoch. A region that was read from a copy is compared
 * again, since a new epoch must not refer to damaged content. */
static int go_on(struct varve *v, uint64_t epoch, uint64_t era, struct vv_run_table *t, const bool *copied)
{
	int rc = 0;

	if (vv_tiers_restart_is_reading(v)) /* no epoch may refer to layers of another store */
		return 0;
	forget_replaced(v, epoch, era);
	vv_tip_continue(v, epoch, t);
	for (size_t i = 0; i < v->n_regions; i++)
		v->region[i]->restored = !copied[i];
	if (v->ctx.group)
		rc = vv_redundancy_ask(v, epoch);
	if (v->ctx.group && rc == 0)
		rc = adopt_now(v);
	return rc ? rc : vv_rehash_begin(v, has_thread(v));
}

/* Call it before any allocation on a device. The allocation may reuse addresses of the program's
 * freed memory. */
static int check_there(const struct varve *v)
{
	for (size_t i = 0; i < v->n_regions; i++)
		if (vv_lost_memory_on_device(v->region[i]))
			return vv_lost_memory_error(v->region[i]);
	return 0;
}

static int plan(struct varve *v, const struct vv_run_table *t, struct vv_want *want)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < v->n_regions; i++)
		rc = add_want(&v->ctx.lineage, t, v->region[i], &want[i]);
	return rc ? rc : vv_threads_start(&v->ctx);
}

/* The next checkpoint stores complete tables, since no layer of this epoch has this rank's
 * parts. */
static int read_parts(struct varve *v, uint64_t epoch, uint32_t ranks)
{
	uint64_t era = 0;
	int rc = vv_redistribute_read(v, epoch, ranks);

	if (rc == 0 && v->ctx.group)
		rc = agree_on_era(v, epoch, &era);
	else if (rc == 0)
		era = vv_provenance_token(&v->ctx.lineage, epoch);
	if (rc)
		return rc;
	forget_replaced(v, epoch, era);
	vv_tip_begin_after(v, epoch);
	return 0;
}

/* An epoch that is damaged for one rank is damaged for all. */
static int read_together(struct varve *v, int rc, uint64_t epoch, struct vv_run_table *t, struct vv_want *want, bool *copied)
{
	struct vv_device_restore host_copies = { 0 };
	struct vv_make_writable writable = { 0 };
	uint64_t era = 0, moved;
	uint32_t ranks;

	rc = vv_group_agree(v->ctx.group, v->ctx.group->comm, rc ? rc : check_there(v));
	if (rc == 0 && v->ctx.group->has_local_stores)
		rc = vv_group_spread_commit(&v->ctx, epoch);
	if (rc == 0)
		rc = read_ranks(v, epoch, &ranks);
	if (rc == 0 && ranks != v->ctx.ranks)
		return read_parts(v, epoch, ranks);
	if (rc == 0)
		rc = vv_remote_table_table(&v->ctx, 0, epoch, t);
	if (rc)
		return rc;
	moved = vv_redistribute_has_moved(v, t);
	rc = vv_group_sum(v->ctx.group, v->ctx.group->comm, 0, &moved, 1);
	if (rc == 0 && moved)
		return read_parts(v, epoch, ranks);
	if (rc == 0)
		rc = agree_on_era(v, epoch, &era);
	if (rc)
		return rc;
	rc = plan(v, t, want);
	if (rc == 0)
		rc = vv_device_restore_begin(&host_copies, want, v->n_regions);
	if (rc == 0)
		rc = vv_restore_make_writable(want, v->n_regions, &writable);
	rc = vv_device_restore_end(&host_copies, vv_remote_read_read(&v->ctx, rc, want, v->n_regions, copied));
	rc = vv_group_agree(v->ctx.group, v->ctx.group->comm, rc);
	if (rc)
		return vv_restore_protect_again(&writable, rc);
	return vv_group_agree(v->ctx.group, v->ctx.group->comm, vv_restore_protect_again(&writable, go_on(v, epoch, era, t, copied)));
}

/* Empties the session's device buffers, or creates them. */
static int clear_buffers(struct varve *v)
{
	if (v->device_buffers)
		vv_device_buffers_finish_close(v->device_buffers);
	else
		v->device_buffers = vv_mem_new(1, sizeof(*v->device_buffers));
	return v->device_buffers ? 0 : VV_ENOMEM;
}

/* Reads layer by layer where that is faster. Then the table is built when it is needed, mostly
 * after the return. */
static int read_wants(struct varve *v, struct vv_device_buffers *buffers, struct vv_run_table *t, const struct vv_want *want, size_t n)
{
	bool host = true;
	int rc, device;

	for (size_t i = 0; host && i < n; i++)
		host = !vv_device_restore_space(want[i].to, (size_t)want[i].len, &device);
	rc = host ? vv_run_table_load_rest(t, v->ctx.pool) : 0;
	if (rc == 0 && host && vv_layer_by_layer_pays(t, want, n) && vv_layer_by_layer_read(&v->ctx.lineage, v->ctx.pool, t, want, n))
		return 0;
	return rc ? rc : vv_device_restore_read(&v->ctx, buffers, t, want, n);
}

/* Device resources are acquired while the table is being read, and released while the program
 * continues. */
static int read_alone(struct varve *v, int rc, uint64_t epoch, struct vv_run_table *t, struct vv_want *want, bool *copied)
{
	uint32_t ranks = 0;

	rc = rc ? rc : clear_buffers(v);
	if (rc == 0)
		rc = check_there(v);
	if (rc == 0)
		rc = read_ranks(v, epoch, &ranks);
	if (rc == 0 && ranks != v->ctx.ranks)
		return read_parts(v, epoch, ranks);
	if (rc == 0)
		rc = vv_threads_start(&v->ctx);
	if (rc == 0 && !t->epoch) {
		struct vv_run_table_how how = { .pool = v->ctx.pool };

		vv_device_restore_expect(&v->ctx, v->device_buffers, v->region, v->n_regions);
		how.runs = v->device_buffers->len ? VV_RUN_TABLE_BEGUN : VV_RUN_TABLE_LATE;
		rc = vv_run_table_load(&v->ctx.lineage, epoch, v->ctx.rank, &how, t);
	}
	if (rc == 0 && vv_redistribute_has_moved(v, t)) {
		vv_device_buffers_begin_close(v->device_buffers);
		return read_parts(v, epoch, ranks);
	}
	if (rc == 0)
		rc = plan(v, t, want);
	if (rc == 0)
		rc = read_wants(v, v->device_buffers, t, want, v->n_regions);
	/* The index must be compared with the table at once. */
	if (rc == 0 && v->has_index_cache)
		rc = vv_run_table_merge(t, v->ctx.pool);
	rc = rc ? rc : go_on(v, epoch, vv_provenance_token(&v->ctx.lineage, epoch), t, copied);
	if (v->device_buffers)
		vv_device_buffers_begin_close(v->device_buffers);
	return rc;
}

static int restart_epoch(struct varve *v, uint64_t epoch)
{
	struct vv_want *want = vv_mem_new(v->n_regions, sizeof(*want));
	bool *copied = vv_mem_new(v->n_regions, sizeof(*copied));
	struct vv_run_table t = { 0 };
	int rc = want && copied ? 0 : VV_ENOMEM;

	vv_run_table_fini(v->view); /* it belongs to forgotten state */
	/* A program may restart twice: first to find the epoch, then with its regions declared. A
	 * head never changes, so the table and the eras of its layers stay valid. */
	if (!vv_tip_take_table(v, epoch, &t))
		vv_provenance_forget(&v->ctx.lineage);
	if (rc == 0 && v->rehearse->last)
		rc = vv_rehearse_poison(v);
	rc = (v->ctx.group ? read_together : read_alone)(v, rc, epoch, &t, want, copied);
	vv_run_table_fini(&t);
	vv_mem_free(want);
	vv_mem_free(copied);
	return rc;
}

/* Damage is repaired from parity, once. */
static int restart_or_repair(struct varve *v, uint64_t epoch)
{
	struct vv_err_state error;
	bool repaired = false;
	int rc = restart_epoch(v, epoch), repair_rc;

	if (rc != VV_EDAMAGED || !v->ctx.group)
		return rc;
	vv_err_save(rc, &error);
	repair_rc = vv_redundancy_repair(v, epoch, &repaired);
	if (repair_rc)
		return repair_rc;
	if (repaired)
		return restart_epoch(v, epoch);
	vv_err_restore(&error);
	return vv_redundancy_explain(v, epoch, rc);
}

/* Finds the newest epoch below `before` in any rank's store. */
static int find_newest(struct varve *v, uint64_t before, uint64_t *epoch)
{
	int rc = vv_catalog_newest(&v->ctx.lineage, before, epoch);

	if (rc == 0)
		rc = vv_tiers_restart_newest(v, before, epoch);
	if (!v->ctx.group)
		return rc;
	rc = vv_group_agree(v->ctx.group, v->ctx.group->comm, rc);
	return rc ? rc : vv_comm_allreduce(v->ctx.group->comm, epoch, 1, VARVE_MAX);
}

static int restart_from_tier(struct varve *v, uint64_t epoch, void *arg)
{
	(void)arg;
	return restart_epoch(v, epoch);
}

/* Copies the epoch from a tier if the session's store lacks it, see vv_tiers_restart_fetch. */
static int fetch(struct varve *v, uint64_t epoch, bool *lacks)
{
	int rc = vv_tiers_restart_fetch(v, epoch, lacks);

	if (rc <= 0)
		return rc;
	vv_retention_forget(v);
	return 0;
}

/* Restores the epoch from the session's store. If that lacks it, or has it damaged, the tiers are
 * asked. After that the next checkpoint stores everything again. */
static int restart_anywhere(struct varve *v, uint64_t epoch)
{
	bool lacks;
	int rc = fetch(v, epoch, &lacks);

	if (rc == 0)
		rc = restart_or_repair(v, epoch);
	if (rc == 0 || (rc != VV_EDAMAGED && !lacks))
		return rc;
	rc = vv_tiers_restart_read(v, epoch, rc == VV_EMISMATCH ? VV_EDAMAGED : rc, restart_from_tier, NULL);
	if (rc)
		return rc;
	vv_tip_begin_after(v, epoch);
	vv_index_cache_fini(v->index_cache);
	v->has_index_cache = false;
	vv_rehash_drop(v);
	return 0;
}

/* Restores the newest intact epoch. If there is none, returns the error of the newest. */
static int restart_latest(struct varve *v)
{
	struct vv_err_state first = { 0 };
	uint64_t epoch = UINT64_MAX;
	int rc = vv_tiers_restart_ask(v);

	while (rc == 0) {
		rc = find_newest(v, epoch, &epoch);
		if (rc)
			return rc;
		if (epoch == 0)
			return first.code ? vv_err_restore(&first) : 0;
		rc = restart_anywhere(v, epoch);
		if (rc == 0)
			return 1;
		if (rc == VV_EIO)
			return vv_err_set(rc, "epoch %" PRIu64 " of '%s' cannot be reached, which is not to say that it is damaged; nothing older is taken for it, "
					  "restart again when the store answers: %s", epoch, v->ctx.lineage.name, vv_err_last());
		if (rc != VV_EDAMAGED)
			return rc;
		if (!first.code)
			vv_err_save(rc, &first);
		if (v->ctx.rank == 0) /* all ranks have the same error */
			vv_log_warn("epoch %" PRIu64 " of '%s' cannot be restored, trying an older one: %s", epoch, v->ctx.lineage.name, vv_err_last());
		rc = vv_retention_exempt(v, epoch);
		if (v->ctx.group)
			rc = vv_group_agree(v->ctx.group, v->ctx.group->comm, rc);
	}
	return rc;
}

int varve_restart(varve *v, uint64_t epoch)
{
	int rc = vv_enter_idle(v, "varve_restart");

	if (rc)
		return rc;
	rc = vv_enter_check_call(v, VV_GROUP_RESTART, epoch);
	if (rc)
		return vv_enter_leave(v, rc);
	vv_enter_block_signals(v);
	vv_tiles_unprotect_all(v);
	vv_grain_sets_stop_watching(v);
	vv_redundancy_ask_again(v);
	vv_new_data_pause(v);
	if (epoch == VARVE_LATEST) {
		rc = restart_latest(v);
	} else {
		rc = restart_anywhere(v, epoch);
		rc = rc ? rc : 1;
	}
	vv_new_data_resume(v);
	v->background->metrics.restarts += rc == 1;
	vv_metrics_file_update(v);
	if (rc != 1)
		vv_rehash_drop(v);
	else if (vv_rehash_is_pending(v))
		vv_background_start_rehash(v);
	return vv_enter_leave(v, rc);
}

/* ---- before a restart ------------------------------------------------------------------------ */

struct list_query {
	const char *name;
	uint64_t *share, *total;
};

static int read_list(struct varve *v, uint64_t epoch, void *arg)
{
	const struct list_query *q = arg;
	uint32_t ranks = 0;
	int rc = v->ctx.group && v->ctx.group->has_local_stores ? vv_group_spread_commit(&v->ctx, epoch) : 0;

	vv_provenance_forget(&v->ctx.lineage);
	if (rc == 0)
		rc = read_ranks(v, epoch, &ranks);
	return rc ? rc : vv_redistribute_list(v, epoch, ranks, q->name, q->share, q->total);
}

static int ask_for_list(struct varve *v, uint64_t epoch, struct list_query *q)
{
	bool lacks;
	int rc = fetch(v, epoch, &lacks);

	if (rc == 0)
		rc = read_list(v, epoch, q);
	if (rc && (rc == VV_EDAMAGED || lacks))
		rc = vv_tiers_restart_read(v, epoch, rc, read_list, q);
	return rc ? rc : 1;
}

/* Of the newest epoch with readable tables, as for varve_restart. */
static int ask_latest(struct varve *v, struct list_query *q)
{
	struct vv_err_state first = { 0 };
	uint64_t epoch = UINT64_MAX;
	int rc = vv_tiers_restart_ask(v);

	while (rc == 0) {
		rc = find_newest(v, epoch, &epoch);
		if (rc)
			return rc;
		if (epoch == 0)
			return first.code ? vv_err_restore(&first) : 0;
		rc = ask_for_list(v, epoch, q);
		if (rc != VV_EDAMAGED)
			return rc;
		if (!first.code)
			vv_err_save(rc, &first);
		rc = 0;
	}
	return rc;
}

int varve_list_share(varve *v, uint64_t epoch, const char *name, uint64_t *share, uint64_t *total)
{
	struct list_query q = { name, share, total };
	int rc = vv_enter_idle(v, "varve_list_share");

	if (rc)
		return rc;
	if (!name)
		return vv_enter_leave(v, vv_err_set(VV_EINVAL, "varve_list_share: the name of a list is needed"));
	rc = vv_enter_check_call(v, VV_GROUP_LIST, vv_digest_check(name, strlen(name)) ^ epoch);
	if (rc == 0)
		rc = epoch == VARVE_LATEST ? ask_latest(v, &q) : ask_for_list(v, epoch, &q);
	return vv_enter_leave(v, rc);
}

/* ---- single regions -------------------------------------------------------------------------- */

/* One rank alone sees only its own storage node. */
static int not_here(const struct varve *v, const char *what)
{
	return vv_err_set(VV_ENOTSUP, "%s not in this rank's store '%s'; varve_restart, called by all ranks, looks in the others' too",
			  what, v->ctx.store->url);
}

static int check_here(const struct varve *v, const struct vv_runs *runs)
{
	struct vv_listing l = { 0 };
	int rc = v->ctx.group && v->ctx.group->has_local_stores ? vv_catalog_list(&v->ctx.lineage, 0, &l) : 0;

	for (size_t i = 0; rc == 0 && v->ctx.group && v->ctx.group->has_local_stores && i < runs->n; i++)
		if (runs->v[i].layer && !vv_catalog_has_layer(&l, runs->v[i].layer))
			rc = not_here(v, "bytes of the region are");
	vv_catalog_listing_fini(&l);
	return rc;
}

/* Finds the table of an epoch, or loads it into v->view. A head never changes, and only this
 * session drops epochs while it has the lineage. So the last table is valid until the next
 * checkpoint. Programs ask for thousands of regions, one by one. */
static int view_epoch(struct varve *v, uint64_t epoch, enum vv_run_table_runs runs, struct vv_run_table **out)
{
	int rc;

	*out = epoch ? vv_tip_table(v, epoch) : NULL;
	if (*out)
		return 0;
	*out = v->view;
	if (epoch && v->view->epoch == epoch)
		return 0;
	vv_run_table_fini(v->view);
	vv_provenance_forget(&v->ctx.lineage);
	rc = vv_threads_start(&v->ctx);
	if (rc)
		return rc;
	return vv_run_table_load(&v->ctx.lineage, epoch, v->ctx.rank, &(struct vv_run_table_how){ .pool = v->ctx.pool, .runs = runs }, v->view);
}

/* Views the given epoch. VARVE_LATEST: the newest one with a readable table. */
static int view_named(struct varve *v, uint64_t epoch, enum vv_run_table_runs runs, struct vv_run_table **out)
{
	struct vv_err_state first = { 0 };
	int rc;

	if (epoch != VARVE_LATEST)
		return view_epoch(v, epoch, runs, out);
	for (;;) {
		rc = vv_catalog_newest(&v->ctx.lineage, epoch, &epoch);
		if (rc)
			return rc;
		if (epoch == 0 && first.code)
			return vv_err_restore(&first);
		if (epoch == 0)
			return vv_err_set(VV_ENOENT, "lineage '%s' has no epoch yet", v->ctx.lineage.name);
		rc = view_epoch(v, epoch, runs, out);
		if (rc != VV_EDAMAGED)
			return rc;
		if (!first.code)
			vv_err_save(rc, &first);
		/* It may be intact on other storage nodes. */
		rc = v->ctx.group && v->ctx.group->has_local_stores ? 0 : vv_retention_exempt(v, epoch);
		if (rc)
			return rc;
	}
}

/* to: the destination, or NULL. */
static int view_table(struct varve *v, uint64_t epoch, const void *to, size_t len, struct vv_run_table **out)
{
	enum vv_run_table_runs late = vv_device_restore_space(to, len, &(int){ 0 }) ? VV_RUN_TABLE_BEGUN : VV_RUN_TABLE_LATE;
	int rc = view_named(v, epoch, v->ctx.group ? VV_RUN_TABLE_WHOLE : late, out);

	return rc == VV_EDAMAGED && v->ctx.group && v->ctx.group->has_local_stores ? not_here(v, "the layer is") : rc;
}

/* The memory may be write-protected. A system call that writes to it would fail. */
static int restart_into(struct varve *v, struct vv_run_table *t, const struct vv_want *want)
{
	struct vv_device_buffers buffers = { 0 };
	int rc = vv_threads_start(&v->ctx);

	if (rc)
		return rc;
	vv_write_protect_begin_syscall(want->to, (size_t)want->len);
	vv_new_data_pause(v);
	rc = read_wants(v, &buffers, t, want, 1);
	vv_device_buffers_finish_close(&buffers);
	vv_new_data_resume(v);
	vv_write_protect_end_syscall();
	return rc;
}

int varve_restart_region(varve *v, uint64_t epoch, const char *name, void *p, size_t len)
{
	const struct vv_run_table_region *r = NULL;
	struct vv_run_table *table = NULL;
	int rc = vv_enter_idle(v, "varve_restart_region");

	if (rc)
		return rc;
	rc = name && (p || !len) ? view_table(v, epoch, p, len, &table) :
				   vv_err_set(VV_EINVAL, "varve_restart_region: name and memory are needed");
	if (rc == 0)
		rc = vv_run_table_region(&v->ctx.lineage, table, name, &r);
	if (rc == 0 && r->shape.len != len)
		rc = vv_err_set(VV_EMISMATCH, "region '%s' has %" PRIu64 " bytes in epoch %" PRIu64 ", room is for %zu", name,
				r->shape.len, table->epoch, len);
	if (rc == 0)
		rc = check_here(v, &r->runs);
	if (rc == 0)
		rc = restart_into(v, table, &(struct vv_want){ &r->runs, 0, len, p, name });
	return vv_enter_leave(v, rc);
}

int varve_region_sized(varve *v, uint64_t epoch, const char *name, struct varve_region_info *out, size_t size)
{
	const struct vv_run_table_region *r = NULL;
	struct vv_run_table *table = NULL;
	int rc = vv_enter_idle(v, "varve_region");

	if (rc)
		return rc;
	rc = name && out ? view_table(v, epoch, NULL, 0, &table) : vv_err_set(VV_EINVAL, "varve_region: name and out are needed");
	if (rc == 0)
		rc = vv_run_table_region(&v->ctx.lineage, table, name, &r);
	if (rc == 0) {
		struct varve_region_info info = { r->shape.len, (enum varve_type)r->shape.type, r->shape.ndim, { 0 } };

		memcpy(info.shape, r->shape.dim, sizeof(info.shape));
		vv_copy_sized(out, size, &info, sizeof(info));
	}
	return vv_enter_leave(v, rc);
}

/* For programs from before 1.0, which pass no size. */
VARVE_API int vv_restart_region(varve *v, uint64_t epoch, const char *name, struct varve_region_info *out) __asm__("varve_region");

int vv_restart_region(varve *v, uint64_t epoch, const char *name, struct varve_region_info *out)
{
	return varve_region_sized(v, epoch, name, out, VV_SIZE_UP_TO(struct varve_region_info, shape));
}
