#include "cli/pack/packed_before.h"
#include "base/err.h"

int vv_packed_before_each(struct vv_verb_context *job, const char *lineage, bool lock, const atomic_bool *stop, int (*fn)(void *arg, const struct vv_unpack *u), void *arg)
{
	struct vv_listing l = { 0 };
	struct vv_lineage lin;
	int rc = vv_verb_context_open_store(job);

	if (rc == 0)
		rc = vv_catalog_open(job->store, lineage, false, &lin);
	if (rc == VV_ENOENT)
		return 0;
	if (rc == 0)
		rc = vv_verb_context_start_pool(job);
	if (rc == 0 && lock)
		rc = vv_verb_context_lock(job, &lin);
	if (rc == 0)
		rc = vv_catalog_list(&lin, 0, &l);
	for (size_t i = 0; rc == 0 && i < l.n_epochs && !(stop && atomic_load(stop)); i++) {
		struct vv_unpack u = { 0 };

		if (vv_unpack_open(&lin, l.epoch[i], job->pool, &u) == 0)
			rc = fn(arg, &u);
		vv_unpack_close(&u);
	}
	vv_catalog_listing_fini(&l);
	vv_verb_context_unlock(job);
	return rc;
}

bool vv_packed_before_is(const struct vv_unpack_file *f, uint64_t len, struct timespec mtime)
{
	return len == f->region->shape.len && mtime.tv_sec == f->file->mtime_s && (uint32_t)mtime.tv_nsec == f->file->mtime_ns;
}
