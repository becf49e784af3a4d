#include "engine/lineage/label.h"
#include "base/did_you_mean.h"
#include "base/err.h"
#include "base/search.h"
#include <inttypes.h>
#include <string.h>

static int name_object(const struct vv_lineage *lin, uint64_t epoch, const char *label, char out[VV_NAME_MAX])
{
	int rc = vv_name_check_label(label);

	if (rc == 0)
		vv_name_label(out, lin->name, epoch, label);
	return rc;
}

int vv_label_put(const struct vv_lineage *lin, uint64_t epoch, const char *label)
{
	char object[VV_NAME_MAX];
	int rc = name_object(lin, epoch, label, object);

	return rc ? rc : vv_store_put(lin->store, object, label, strlen(label));
}

int vv_label_remove(const struct vv_lineage *lin, uint64_t epoch, const char *label)
{
	char object[VV_NAME_MAX];
	int rc = name_object(lin, epoch, label, object);

	return rc ? rc : vv_store_remove(lin->store, object);
}

int vv_label_commit(const struct vv_lineage *lin, const struct vv_commit *c, const char *label)
{
	struct vv_err_state error;
	int rc = label[0] ? vv_label_put(lin, c->epoch, label) : 0;

	if (rc == 0)
		rc = vv_catalog_put_commit(lin, c);
	if (rc == 0 || !label[0])
		return rc;
	vv_err_save(rc, &error);
	(void)vv_label_remove(lin, c->epoch, label); /* if it stays, its number is not used again */
	return vv_err_restore(&error);
}

const struct vv_label_name *vv_label_of(const struct vv_listing *l, uint64_t epoch, size_t *n)
{
	size_t i;

	VV_SEARCH(i, 0, l->n_labels, l->label[i].epoch < epoch);
	for (*n = 0; i + *n < l->n_labels && l->label[i + *n].epoch == epoch;)
		++*n;
	return l->label + i;
}

int vv_label_find(const struct vv_lineage *lin, const char *label, uint64_t *epoch)
{
	const char *best = NULL;
	struct vv_listing l = { 0 };
	int rc = vv_catalog_list(lin, 0, &l);

	*epoch = 0;
	for (size_t i = l.n_labels; rc == 0 && !*epoch && i-- > 0;) {
		if (!vv_catalog_has_epoch(&l, l.label[i].epoch))
			continue;
		if (strcmp(l.label[i].label, label) == 0)
			*epoch = l.label[i].epoch;
		best = vv_did_you_mean_best(label, l.label[i].label, best);
	}
	if (rc == 0 && !*epoch)
		rc = vv_err_set(VV_ENOENT, "lineage '%s' has no epoch with the label '%s'%s%s%s ('varve ls %s %s --all' lists its epochs)", lin->name,
				label, best ? "; did you mean '" : "", best ? best : "", best ? "'?" : "", lin->store->url, lin->name);
	vv_catalog_listing_fini(&l);
	return rc;
}

int vv_label_sweep(const struct vv_lineage *lin, const struct vv_listing *l)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < l->n_labels; i++)
		if (!vv_catalog_has_epoch(l, l->label[i].epoch))
			rc = vv_label_remove(lin, l->label[i].epoch, l->label[i].label);
	return rc;
}
