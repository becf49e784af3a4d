/* Retention: after a checkpoint, epochs beyond `keep`, `keep-every` and `keep-within` lose their
 * commit records. When dropped epochs hold enough of the store, gc reclaims the space. Neither can
 * make the finished checkpoint fail. */
#include "engine/epoch/retention.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/lineage/catalog.h"
#include "engine/epoch/background.h"
#include "engine/epoch/redundancy.h"
#include "engine/tiers/tiers.h"
#include "engine/epoch/tip.h"
#include "engine/upkeep/gc.h"
#include "engine/grains/grain_sets.h"
#include "engine/memory/layout.h"
#include "engine/upkeep/gc_ranks.h"
#include "engine/ranks/group.h"
#include "engine/grains/rehash.h"
#include "engine/epoch/parent_chunks.h"
#include "engine/memory/tiles.h"
#include "engine/write/index_limit.h"
#include "engine/write/referenced_layers.h"
#include <inttypes.h>
#include <string.h>

int vv_retention_prune(struct varve *v)
{
	int rc = vv_index_limit_prune(v);

	if (rc)
		vv_parent_chunks_forget(v);
	else
		vv_rehash_after_gc(v);
	return rc;
}

/* Runs: larger tables take as much memory as the buffer, so they use the buffer's memory. */
enum { MANY_RUNS = 64 << 10 };

/* Layers take at most so many times the bytes that live epochs need. */
enum { GARBAGE_MOST = 3 };

/* Epochs that earlier sessions dropped are garbage, too, as far as a listing shows: layers without
 * a commit. */
static void count_bytes(struct varve *v)
{
	const struct vv_listing *l = &v->retention->live;
	size_t k = 0;

	v->retention->bytes_total = v->retention->bytes_dropped = 0;
	for (size_t i = 0; i < l->n_layers; i++) {
		uint64_t epoch = vv_run_epoch(l->layer[i].layer);

		while (k < l->n_epochs && l->epoch[k] < epoch)
			k++;
		v->retention->bytes_total += l->layer[i].size;
		if (k == l->n_epochs || l->epoch[k] != epoch)
			v->retention->bytes_dropped += l->layer[i].size;
	}
}

static bool is_exempt(const struct varve *v, uint64_t epoch)
{
	for (size_t i = 0; i < v->retention->exempt.n; i++)
		if (v->retention->exempt.epoch[i] == epoch)
			return true;
	return false;
}

/* Exempt epochs are not dropped, and are not part of `keep`. Nor are failed ones: vv_tip_sweep
 * removes their records. */
static void skip_exempt(struct varve *v)
{
	struct vv_listing *l = &v->retention->live;
	size_t n = 0;

	for (size_t i = 0; i < l->n_epochs; i++)
		if (!is_exempt(v, l->epoch[i]) && !vv_tip_has_failed(v, l->epoch[i]))
			l->epoch[n++] = l->epoch[i];
	l->n_epochs = n;
}

static int load_live(struct varve *v)
{
	int rc;

	if (v->retention->has_live)
		return 0;
	rc = vv_catalog_list(&v->ctx.lineage, 0, &v->retention->live);
	if (rc)
		return rc;
	v->retention->has_live = true;
	/* A record above the tip is a stray record, not an epoch. */
	while (v->retention->live.n_epochs && v->retention->live.epoch[v->retention->live.n_epochs - 1] > v->tip.epoch)
		v->retention->live.n_epochs--;
	count_bytes(v);
	skip_exempt(v);
	return 0;
}

/* Adds the epoch just written to the list of live epochs, unless the list was read after it. */
static int note_newest(struct varve *v, uint64_t bytes)
{
	struct vv_listing *l = &v->retention->live;
	uint64_t *grown;

	if (l->n_epochs && l->epoch[l->n_epochs - 1] >= v->tip.epoch)
		return 0;
	grown = vv_mem_grow(l->epoch, l->n_epochs + 1, sizeof(*grown));
	if (!grown)
		return VV_ENOMEM;
	l->epoch = grown;
	l->epochs_cap = l->n_epochs + 1;
	l->epoch[l->n_epochs++] = v->tip.epoch;
	v->retention->bytes_total += bytes;
	return 0;
}

static bool is_on(const struct varve *v)
{
	return vv_conf_number(&v->ctx.conf, "keep") || vv_conf_real(&v->ctx.conf, "keep-within") > 0;
}

/* The oldest epoch, among those below the cutoff that `every` does not divide, that keep-within
 * keeps; else the cutoff. An epoch with an unreadable record decides nothing. */
static int keep_within(struct varve *v, uint64_t every, uint64_t *cutoff)
{
	const struct vv_listing *l = &v->retention->live;
	double within = vv_conf_real(&v->ctx.conf, "keep-within");
	uint64_t newest = 0;
	int rc = within > 0 && *cutoff ? vv_catalog_time(&v->ctx.lineage, v->tip.epoch, &newest) : 0;

	for (size_t i = 0; rc == 0 && within > 0 && i < l->n_epochs && l->epoch[i] < *cutoff; i++) {
		uint64_t time = 0;

		if (every && l->epoch[i] % every == 0)
			continue;
		rc = vv_catalog_time(&v->ctx.lineage, l->epoch[i], &time);
		if (rc == 0 && vv_retention_is_within(time, newest, within))
			*cutoff = l->epoch[i];
		rc = rc == VV_EDAMAGED || rc == VV_ENOENT ? 0 : rc;
	}
	return rc;
}

/* The number below which epochs are dropped, unless `every` divides theirs; 0: none is dropped. The
 * newest epoch always stays. */
static int find_cutoff(struct varve *v, uint64_t every, uint64_t *cutoff)
{
	const struct vv_listing *l = &v->retention->live;
	uint64_t keep = vv_conf_number(&v->ctx.conf, "keep");

	keep = keep ? keep : 1;
	*cutoff = l->n_epochs > keep ? l->epoch[l->n_epochs - (size_t)keep] : 0;
	return keep_within(v, every, cutoff);
}

bool vv_retention_is_within(uint64_t time_ns, uint64_t newest_ns, double within)
{
	uint64_t now = vv_clock_wall_ns(), from = newest_ns < now ? newest_ns : now;

	return time_ns >= from || (double)(from - time_ns) <= within * 1e9;
}

/* The bytes of an epoch's layers on this rank's storage node. */
static uint64_t bytes_here(const struct varve *v, uint64_t epoch)
{
	const struct vv_group *g = v->ctx.group;
	struct vv_commit c = { 0 };
	uint64_t sum = 0;

	if (vv_catalog_commit(&v->ctx.lineage, epoch, &c) == 0)
		for (uint32_t r = 0; r < c.n_ranks && r < g->size; r++)
			sum += g->storage_node[r] == g->storage_node[g->rank] ? c.rank[r].file_len : 0;
	vv_commit_fini(&c);
	return sum;
}

static int drop(struct varve *v, uint64_t epoch)
{
	bool split = v->ctx.group && v->ctx.group->has_local_stores;
	uint64_t bytes = 0, here = split ? bytes_here(v, epoch) : 0;
	int rc = vv_catalog_drop_epoch(&v->ctx.lineage, epoch, &bytes);

	if (rc == VV_ENOENT) { /* its record was removed meanwhile */
		vv_err_clear();
		return 0;
	}
	v->retention->bytes_dropped += rc ? 0 : split ? here : bytes;
	return rc;
}

static int drop_below(struct varve *v, uint64_t cutoff, uint64_t every)
{
	struct vv_listing *l = &v->retention->live;
	size_t kept = 0;
	int rc = 0;

	for (size_t i = 0; i < l->n_epochs; i++) {
		uint64_t epoch = l->epoch[i];

		if (rc == 0 && epoch < cutoff && !(every && epoch % every == 0) && !vv_tiers_needs(v, epoch)) {
			rc = drop(v, epoch);
			if (rc == 0)
				continue;
		}
		l->epoch[kept++] = epoch;
	}
	l->n_epochs = kept;
	return rc;
}

/* Another process may have dropped the epoch that this session continues. gc has then removed parts
 * of it. */
static int check_parent(struct varve *v)
{
	struct vv_commit c = { 0 };
	int rc = vv_catalog_commit(&v->ctx.lineage, v->tip.epoch, &c);

	vv_commit_fini(&c);
	if (rc != VV_ENOENT)
		return rc;
	vv_tip_continue_none(v);
	return 0;
}

/* The newest exempt epoch; 0: none. It may need any layer up to its own. */
static uint64_t newest_spared(const struct varve *v)
{
	uint64_t floor = 0;

	for (size_t i = 0; i < v->retention->exempt.n; i++)
		floor = v->retention->exempt.epoch[i] > floor ? v->retention->exempt.epoch[i] : floor;
	return floor;
}

/* A checkpoint does not wait until large layers are rewritten, unless too much of the disk is
 * garbage. */
static bool gives_way(void *arg)
{
	const struct varve *v = arg;
	const struct vv_retention *r = v->retention;

	return (!r->bytes_needed || r->bytes_total <= GARBAGE_MOST * r->bytes_needed) && (!v->ctx.async || vv_background_is_awaited(v));
}

/* A failed gc may have removed layers, too. So after a failure the index is read again before any
 * reference. */
static int reclaim(struct varve *v)
{
	struct vv_progress progress = { .gives_way = gives_way, .arg = v };
	struct vv_gc_report report;
	struct vv_err_state error;
	int rc;

	if (v->tip.full_runs > MANY_RUNS)
		vv_layout_lend_buffer(v, SIZE_MAX);
	rc = vv_gc_run(&v->ctx.lineage, newest_spared(v), VV_GC_CHEAP, &progress, &report);

	v->retention->bytes_dropped = 0;
	if (rc) {
		vv_err_save(rc, &error);
		vv_referenced_layers_after_gc(v);
		vv_parent_chunks_forget(v);
		return vv_err_restore(&error);
	}
	v->retention->bytes_total = report.bytes_after;
	v->retention->bytes_needed = report.bytes_needed;
	vv_log_info("gc: %" PRIu64 " bytes freed, %" PRIu64 " left", report.bytes_before - report.bytes_after,
		    report.bytes_after);
	rc = vv_retention_prune(v);
	if (rc == 0)
		rc = check_parent(v);
	return rc;
}

/* The live epochs are listed again next time, since a failed step may have taken effect. */
void vv_retention_forget(struct varve *v)
{
	vv_catalog_listing_fini(&v->retention->live);
	v->retention->has_live = false;
}

int vv_retention_exempt(struct varve *v, uint64_t epoch)
{
	if (is_exempt(v, epoch))
		return 0;
	if (vv_mem_room(&v->retention->exempt.epoch, v->retention->exempt.n, &v->retention->exempt.cap, sizeof(*v->retention->exempt.epoch)) < 0)
		return VV_ENOMEM;
	v->retention->exempt.epoch[v->retention->exempt.n++] = epoch;
	vv_retention_forget(v);
	return 0;
}

int vv_retention_exempt_above(struct varve *v, uint64_t epoch)
{
	struct vv_listing l = { 0 };
	int rc = vv_catalog_list(&v->ctx.lineage, epoch + 1, &l);

	for (size_t i = 0; rc == 0 && i < l.n_epochs; i++)
		rc = vv_retention_exempt(v, l.epoch[i]);
	vv_catalog_listing_fini(&l);
	return rc;
}

static int update_live(struct varve *v, uint64_t bytes)
{
	int rc = load_live(v);

	return rc ? rc : note_newest(v, bytes);
}

static bool is_much(const struct varve *v)
{
	return v->retention->bytes_dropped * 4 > v->retention->bytes_total && strcmp(vv_conf_text(&v->ctx.conf, "gc"), "auto") == 0;
}

static void complain(struct varve *v)
{
	vv_log_warn("retention: %s", vv_err_last());
	vv_retention_forget(v);
}

bool vv_retention_run(struct varve *v, uint64_t bytes)
{
	uint64_t every = vv_conf_number(&v->ctx.conf, "keep-every"), cutoff = 0;
	bool reclaimed = false;
	int rc;

	if (!is_on(v))
		return false;
	rc = update_live(v, bytes);
	if (rc == 0)
		rc = find_cutoff(v, every, &cutoff);
	if (rc == 0)
		rc = drop_below(v, cutoff, every);
	if (rc == 0 && is_much(v)) {
		reclaimed = true;
		rc = reclaim(v);
	}
	if (rc)
		complain(v);
	return reclaimed;
}

void vv_retention_free_space(struct varve *v)
{
	while (!gives_way(v) && vv_store_free_step(v->ctx.store))
		;
}

/* ---- storage nodes --------------------------------------------------------------------------- */

void vv_retention_decide(struct varve *v, uint64_t bytes, uint64_t *cutoff, uint64_t *every)
{
	uint64_t spared = vv_redundancy_spared(v);
	int rc;

	*cutoff = 0;
	*every = vv_conf_number(&v->ctx.conf, "keep-every");
	if (!is_on(v))
		return;
	rc = update_live(v, bytes);
	if (rc == 0)
		rc = find_cutoff(v, *every, cutoff);
	if (spared && *cutoff > spared) /* the new epoch has no parity yet */
		*cutoff = spared;
	if (rc == 0)
		return;
	*cutoff = 0;
	complain(v);
}

void vv_retention_apply(struct varve *v, uint64_t bytes, uint64_t cutoff, uint64_t every)
{
	int rc = cutoff ? update_live(v, bytes) : 0;

	if (rc == 0 && cutoff)
		rc = drop_below(v, cutoff, every);
	if (rc)
		complain(v);
}

bool vv_retention_is_due(const struct varve *v)
{
	return v->ctx.group->has_local_stores && vv_group_leads_storage_node(v->ctx.group) && v->retention->has_live && is_much(v);
}

int vv_retention_reclaim(struct varve *v)
{
	struct vv_gc_report report = { .since = v->tip.oldest };
	int rc = vv_gc_ranks_gc(&v->ctx, newest_spared(v), &report);

	if (v->ctx.group->comm->broken)
		return rc;
	v->retention->bytes_dropped = 0;
	if (rc) { /* it may have removed layers here or elsewhere */
		vv_log_warn("retention: gc: %s", vv_err_last());
		vv_retention_forget(v);
		vv_referenced_layers_after_gc(v);
		vv_parent_chunks_forget(v);
		return 0;
	}
	v->retention->bytes_total = report.bytes_after;
	if (vv_group_leads_storage_node(v->ctx.group))
		vv_log_info("gc: %" PRIu64 " bytes freed, %" PRIu64 " left", report.bytes_before - report.bytes_after,
			    report.bytes_after);
	rc = vv_retention_prune(v);
	if (rc == 0)
		rc = check_parent(v);
	return vv_redundancy_limit(v, rc, report.whole_bytes, report.whole_needed);
}
