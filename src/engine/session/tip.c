/* The tip of the session: the epoch that the next checkpoint continues. */
#include "engine/session/tip.h"
#include "engine/lineage/provenance.h"
#include "engine/session/region.h"
#include "engine/write/index_limit.h"

static int sweep_folder_of(const struct varve *v, const char *lineage, uint64_t epoch)
{
	char folder[VV_NAME_MAX];

	vv_name_folder(folder, lineage, epoch / VV_NAME_EPOCHS_PER_FOLDER);
	return vv_store_sweep(v->store, folder);
}

/* Temporary files of a dead writer lie in the folder of the newest epoch, or of the one after it, which never came to be. */
int vv_tip_look(struct varve *v, const char *lineage)
{
	int rc = vv_catalog_newest(&v->lineage, UINT64_MAX, &v->epoch);

	if (rc == 0)
		rc = vv_catalog_highest(&v->lineage, &v->highest);
	if (rc == 0)
		rc = sweep_folder_of(v, lineage, v->highest);
	if (rc == 0 && (v->highest + 1) % VV_NAME_EPOCHS_PER_FOLDER == 0)
		rc = sweep_folder_of(v, lineage, v->highest + 1);
	return rc;
}

void vv_tip_continue(struct varve *v, uint64_t epoch, struct vv_run_table *table)
{
	vv_run_table_fini(&v->view);
	vv_run_table_fini(&v->table);
	v->table = *table;
	*table = (struct vv_run_table){ 0 };
	v->has_table = v->tried = true;
	v->own = v->settled = false;
	v->epoch = epoch;
	v->newest = epoch;
	v->failed = 0; /* it may be the one that is continued */
	for (size_t i = 0; i < v->n_regions; i++)
		v->region[i]->adopted = v->region[i]->restored = false;
	/* What is known of other ranks' layers is not in an order in which it could be found. */
	if (v->has_history && (v->group || !vv_index_limit_holds(v))) {
		vv_index_cache_fini(&v->history);
		v->has_history = false;
	}
}

void vv_tip_step_back(struct varve *v, uint64_t epoch)
{
	struct vv_run_table none = { 0 };
	uint64_t newest = v->newest;

	vv_tip_continue(v, epoch, &none);
	v->newest = newest; /* the one that failed, as long as it may be asked about */
	v->has_table = v->tried = false;
	vv_region_forget(v);
}

void vv_tip_begin_anew(struct varve *v)
{
	uint64_t failed = v->failed;

	vv_referenced_layers_fini(&v->footing);
	vv_provenance_forget(&v->lineage);
	vv_provenance_turn(&v->lineage);
	vv_tip_new_era(v);
	vv_tip_step_back(v, 0);
	v->failed = failed;
}

void vv_tip_new_era(struct varve *v)
{
	uint64_t from[2] = { v->token, v->highest };

	v->era = v->highest + 1;
	v->token = vv_digest_check(from, sizeof(from));
}
