/* Retention: after a checkpoint, epochs beyond `keep` and `keep-every` lose their commit record, and when enough of the
 * store is theirs, gc takes the space back. Neither can fail the checkpoint that went before. */
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/drop.h"
#include "engine/gc.h"
#include "engine/session.h"
#include <inttypes.h>
#include <string.h>

/* What earlier sessions dropped is garbage too, as far as a listing can tell: layers without a commit. */
static void count_bytes(struct varve *v)
{
	const struct vv_listing *l = &v->live;
	size_t k = 0;

	v->bytes_total = v->bytes_dropped = 0;
	for (size_t i = 0; i < l->n_layers; i++) {
		uint64_t epoch = vv_run_epoch(l->layer[i].layer);

		while (k < l->n_epochs && l->epoch[k] < epoch)
			k++;
		v->bytes_total += l->layer[i].size;
		if (k == l->n_epochs || l->epoch[k] != epoch)
			v->bytes_dropped += l->layer[i].size;
	}
}

static int load_live(struct varve *v)
{
	int rc;

	if (v->has_live)
		return 0;
	rc = vv_catalog_list(&v->lineage, 0, &v->live);
	if (rc)
		return rc;
	v->has_live = true;
	count_bytes(v);
	return 0;
}

/* The list of live epochs grows by the one just laid down, unless the list was read after it. */
static int note_newest(struct varve *v, uint64_t bytes)
{
	struct vv_listing *l = &v->live;
	uint64_t *grown;

	if (l->n_epochs && l->epoch[l->n_epochs - 1] >= v->epoch)
		return 0;
	grown = vv_mem_grow(l->epoch, l->n_epochs + 1, sizeof(*grown));
	if (!grown)
		return VV_ENOMEM;
	l->epoch = grown;
	l->epochs_cap = l->n_epochs + 1;
	l->epoch[l->n_epochs++] = v->epoch;
	v->bytes_total += bytes;
	return 0;
}

static int drop_old(struct varve *v, uint64_t keep, uint64_t every)
{
	struct vv_listing *l = &v->live;
	size_t kept = 0, old = l->n_epochs > keep ? l->n_epochs - (size_t)keep : 0;
	int rc = 0;

	for (size_t i = 0; i < l->n_epochs; i++) {
		uint64_t epoch = l->epoch[i], bytes = 0;

		if (rc == 0 && i < old && !(every && epoch % every == 0)) {
			rc = vv_drop_epoch(&v->lineage, epoch, &bytes);
			v->bytes_dropped += bytes;
			if (rc == 0)
				continue;
		}
		l->epoch[kept++] = epoch;
	}
	l->n_epochs = kept;
	return rc;
}

/* Somebody may have dropped the very epoch that this session continues; gc then took it apart. */
static int check_parent(struct varve *v)
{
	struct vv_commit c = { 0 };
	int rc = vv_catalog_commit(&v->lineage, v->epoch, &c);

	vv_commit_fini(&c);
	if (rc != VV_ENOENT)
		return rc;
	v->epoch = 0;
	return 0;
}

/* A gc that failed half-way has removed things too: whatever it says, the index is read anew before anything can be
 * referred to again. */
static int reclaim(struct varve *v)
{
	struct vv_gc_report report;
	struct vv_err_state error;
	int rc = vv_gc_run(&v->lineage, false, &report);

	v->bytes_dropped = 0;
	if (rc) {
		vv_err_save(rc, &error);
		vv_region_forget(v);
		return vv_err_restore(&error);
	}
	v->bytes_total = report.bytes_after;
	vv_log_info("gc: %" PRIu64 " bytes freed, %" PRIu64 " left", report.bytes_before - report.bytes_after,
		    report.bytes_after);
	rc = vv_region_reindex(v);
	if (rc == 0)
		rc = check_parent(v);
	return rc;
}

/* What is live is looked up anew next time: a step that failed may have been done all the same. */
static void forget_live(struct varve *v)
{
	vv_catalog_listing_fini(&v->live);
	v->has_live = false;
}

bool vv_retain_run(struct varve *v, uint64_t bytes)
{
	uint64_t keep = vv_conf_number(&v->conf, "keep"), every = vv_conf_number(&v->conf, "keep-every");
	bool reclaimed = false;
	int rc;

	if (!keep)
		return false;
	rc = load_live(v);
	if (rc == 0)
		rc = note_newest(v, bytes);
	if (rc == 0)
		rc = drop_old(v, keep, every);
	if (rc == 0 && v->bytes_dropped * 4 > v->bytes_total && strcmp(vv_conf_text(&v->conf, "gc"), "auto") == 0) {
		reclaimed = true;
		rc = reclaim(v);
	}
	if (rc) {
		vv_log_warn("retention: %s", vv_err_last());
		forget_live(v);
	}
	return reclaimed;
}
