#include "cli/image/image_lineage.h"
#include "base/err.h"
#include "engine/upkeep/verify.h"
#include <inttypes.h>

static void ignore(void *arg, const char *problem)
{
	(void)arg;
	(void)problem;
}

static bool is_whole(const struct vv_lineage *lin, struct vv_pool *pool, uint64_t epoch)
{
	struct vv_verify_report report = { 0 };
	int rc = vv_verify_run(lin, pool, epoch, true, ignore, NULL, NULL, &report);

	vv_affected_epochs_fini(&report.affected);
	return rc == 0 && !report.problems;
}

int vv_image_lineage_advise(const struct vv_lineage *lin, struct vv_pool *pool, uint64_t epoch, int rc)
{
	struct vv_err_state error;
	uint64_t at = epoch;

	if (rc != VV_EDAMAGED || !epoch)
		return rc;
	vv_err_save(rc, &error);
	while (vv_catalog_newest(lin, at, &at) == 0 && at && !is_whole(lin, pool, at))
		;
	if (at && at < epoch)
		return vv_err_set(rc, "%.700s; '%s@%" PRIu64 "' is intact, and 'varve verify' names all that is damaged", error.message, lin->name, at);
	return vv_err_set(rc, "%.700s; no epoch before it is intact, and 'varve verify' names all that is damaged", error.message);
}

/* Removes layers of epochs that were never committed. */
static int remove_layers(const struct vv_lineage *lin, const struct vv_listing *l)
{
	char object[VV_NAME_MAX];
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < l->n_layers; i++) {
		vv_name_layer(object, lin->name, vv_run_epoch(l->layer[i].layer), vv_run_rank(l->layer[i].layer));
		rc = vv_store_remove(lin->store, object);
	}
	return rc;
}

/* The record and the lock are removed last, so that an interrupted removal can be repeated. */
static void remove_empty(const struct vv_lineage *lin)
{
	struct vv_listing all = { 0 };
	char object[VV_NAME_MAX];
	uint64_t newest = 0;

	if (vv_catalog_newest(lin, UINT64_MAX, &newest) < 0 || newest)
		return;
	if (vv_catalog_list(lin, 0, &all) == 0 && all.n_epochs == 0 && remove_layers(lin, &all) == 0) {
		vv_name_index(object, lin->name, 0);
		vv_store_remove(lin->store, object);
		vv_name_folder(object, lin->name, 0);
		vv_store_remove_dir(lin->store, object);
		vv_name_record(object, lin->name);
		vv_store_remove(lin->store, object);
		/* a process that waits for the lock notices that it has been replaced */
		vv_name_lock(object, lin->name);
		vv_store_remove(lin->store, object);
	}
	vv_catalog_listing_fini(&all);
}

void vv_image_lineage_tidy(struct vv_verb_context *job, const char *url, const char *lineage)
{
	struct vv_store *store = NULL;
	struct vv_err_state error;
	struct vv_lineage lin;

	vv_err_save(VV_EIO, &error);
	if (vv_verb_context_open_other(job, url, &store) == 0 && vv_catalog_open(store, lineage, false, &lin) == 0 && vv_verb_context_lock(job, &lin) == 0)
		remove_empty(&lin);
	vv_verb_context_unlock(job);
	if (store)
		vv_store_remove_dir(store, lineage); /* if it is empty */
	vv_store_close(store);
	(void)vv_err_restore(&error);
}
