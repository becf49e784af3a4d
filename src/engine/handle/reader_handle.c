/* Opens and closes readers of a store. */
#include "engine/handle/reader_handle.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/options.h"
#include <unistd.h>

int vv_reader_handle_enter(struct varve_reader *r, const char *call, bool lineage_needed)
{
	if (!r)
		return vv_err_set(VV_EINVAL, "%s: no reader (NULL)", call);
	if (r->pid != getpid())
		return vv_err_set(VV_EINVAL, "%s: the reader belongs to process %d; a child of fork opens its own", call, (int)r->pid);
	if (vv_log_is_inside())
		return vv_err_set(VV_EINVAL, "%s: a function of varve_set_log may not call into a reader", call);
	if (lineage_needed && !r->has_lineage)
		return vv_err_set(VV_EINVAL, "%s: the reader was opened without a lineage", call);
	pthread_mutex_lock(&r->lock);
	/* A thread that ended in a call would keep the lock. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &r->cancel);
	return 0;
}

int vv_reader_handle_leave(struct varve_reader *r, int rc)
{
	int cancel = r->cancel;

	pthread_mutex_unlock(&r->lock);
	pthread_setcancelstate(cancel, NULL);
	return rc;
}

void vv_reader_handle_free_epochs(struct varve_stored_epoch *epochs, size_t n)
{
	for (size_t i = 0; epochs && i < n; i++) {
		vv_mem_free((char *)(uintptr_t)epochs[i].problem);
		vv_mem_free((char **)(uintptr_t)epochs[i].label);
	}
	vv_mem_free(epochs);
}

/* In a child of fork the threads belong to the parent. */
static void free_reader(struct varve_reader *r)
{
	vv_reader_handle_free_epochs(r->epochs, r->n_epochs);
	vv_mem_free(r->epoch);
	vv_names_fini(&r->lineages);
	vv_mem_free(r->lineage);
	vv_mem_free(r->regions);
	vv_mem_free(r->region_fields);
	vv_mem_free(r->region);
	vv_mem_free(r->region_names);
	vv_run_table_fini(&r->table);
	if (r->pid == getpid()) {
		vv_pool_free(r->ctx.pool);
		pthread_mutex_destroy(&r->lock);
	}
	vv_store_close(r->ctx.store);
	vv_conf_fini(&r->ctx.conf);
	vv_mem_free(r);
}

static int start(struct varve_reader *r, const char *store, const char *lineage, const char *options)
{
	struct vv_store_options opt;
	int rc = vv_options_load(&r->ctx.conf, options);

	if (rc)
		return rc;
	vv_options_apply_log(&r->ctx.conf);
	opt = vv_options_store(&r->ctx.conf, false);
	rc = vv_store_open(store, &opt, &r->ctx.store);
	if (rc == 0 && lineage)
		rc = vv_catalog_open(r->ctx.store, lineage, false, &r->ctx.lineage);
	r->has_lineage = lineage != NULL;
	return rc;
}

int varve_reader_open(const char *store, const char *lineage, const char *options, varve_reader **out)
{
	struct vv_err_state error;
	struct varve_reader *r;
	int rc, cancel;

	if (out)
		*out = NULL;
	if (!store || !out)
		return vv_err_set(VV_EINVAL, "varve_reader_open: store and out are needed");
	r = vv_mem_new(1, sizeof(*r));
	if (!r)
		return VV_ENOMEM;
	pthread_mutex_init(&r->lock, NULL);
	r->pid = getpid();
	r->ctx.ranks = 1;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	rc = start(r, store, lineage, options);
	vv_err_save(rc, &error);
	if (rc)
		free_reader(r);
	else
		*out = r;
	pthread_setcancelstate(cancel, NULL);
	return vv_err_restore(&error);
}

int varve_reader_close(varve_reader *r)
{
	int cancel;

	if (!r)
		return 0;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	free_reader(r);
	pthread_setcancelstate(cancel, NULL);
	return 0;
}
