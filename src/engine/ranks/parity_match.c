#include "engine/ranks/parity_match.h"
#include "base/err.h"
#include "core/format/name.h"
#include "engine/lineage/layer_file.h"
#include "engine/ranks/parity_file.h"

static int find_len(const struct vv_lineage *lin, uint64_t layer, uint64_t *len)
{
	char object[VV_NAME_MAX];
	struct vv_get *g = NULL;
	int rc;

	vv_name_layer(object, lin->name, vv_run_epoch(layer), vv_run_rank(layer));
	rc = vv_store_get_open(lin->store, object, &g);
	*len = rc ? 0 : g->size;
	vv_store_get_close(g);
	return rc;
}

static int match_layer(const struct vv_lineage *lin, const struct vv_parity_job *j, size_t member, enum vv_parity_match *out)
{
	const struct vv_parity_layer *l = &j->head.layer[member];
	uint64_t layer = vv_run_layer(j->head.epoch, l->rank), len;
	struct vv_layer_file *f = NULL;
	int rc = find_len(lin, layer, &len);

	if (rc || len != l->len) {
		*out = VV_PARITY_STALE;
		return rc;
	}
	*out = VV_PARITY_DAMAGED;
	rc = vv_layer_file_open(lin, layer, VV_LAYER_FILE_HEAD | VV_LAYER_FILE_LAZY, &f);
	if (rc)
		return rc;
	rc = vv_layer_file_check_head(f, &l->head);
	*out = rc ? VV_PARITY_STALE : VV_PARITY_MATCHES;
	vv_layer_file_close(f);
	return rc;
}

static int match_parity(const struct vv_lineage *lin, const struct vv_parity_job *j, size_t member, enum vv_parity_match *out)
{
	struct vv_parity_head h = { 0 };
	int rc = vv_parity_file_head(lin, j->head.epoch, j->head.layer[member].rank, j->head.n_ranks, &h);

	*out = rc ? VV_PARITY_DAMAGED : vv_parity_head_same(&h, &j->head) ? VV_PARITY_MATCHES : VV_PARITY_STALE;
	vv_parity_head_fini(&h);
	return rc;
}

int vv_parity_match_object(const struct vv_lineage *lin, const struct vv_parity_job *j, size_t member, bool parity, enum vv_parity_match *out)
{
	int rc = (parity ? match_parity : match_layer)(lin, j, member, out);

	if (rc != VV_EDAMAGED && rc != VV_ENOENT)
		return rc;
	*out = rc == VV_ENOENT ? VV_PARITY_STALE : *out;
	vv_err_clear();
	return 0;
}
