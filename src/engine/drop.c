#include "engine/drop.h"
#include "base/err.h"

int vv_drop_epoch(const struct vv_lineage *lin, uint64_t epoch, uint64_t *bytes)
{
	struct vv_commit c = { 0 };
	char object[VV_NAME_MAX];
	uint64_t sum;
	int rc = vv_catalog_commit(lin, epoch, &c);

	if (rc && rc != VV_EDAMAGED)
		return rc;
	sum = vv_commit_sum(&c).file_len;
	vv_commit_fini(&c);
	vv_name_commit(object, lin->name, epoch);
	rc = vv_store_remove(lin->store, object);
	if (rc == 0 && bytes)
		*bytes = sum;
	return rc;
}
