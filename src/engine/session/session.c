/* Opens and closes sessions. */
#include "engine/lineage/run_table.h"
#include "engine/epoch/commit_ranks.h"
#include "engine/epoch/retention.h"
#include "engine/write/codec_choice.h"
#include "engine/session/session.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/block_signals.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/read/device_buffers.h"
#include "engine/epoch/background.h"
#include "engine/grains/grain_sets.h"
#include "engine/memory/layout.h"
#include "engine/options.h"
#include "engine/session/rank_session.h"
#include "engine/ranks/group.h"
#include "engine/grains/rehash.h"
#include "engine/session/region.h"
#include "engine/session/rehearse.h"
#include "engine/session/enter.h"
#include "engine/session/signal_request.h"
#include "engine/tiers/tiers.h"
#include "engine/memory/tiles.h"
#include "engine/epoch/tip.h"
#include "engine/write/referenced_layers.h"
#include "track/write_protect.h"
#include "track/scan.h"
#include "vv_config.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <varve/varve_comm.h>

/* A relative path of the statistics file or the metrics is resolved when the session is opened,
 * like that of the store. */
static int place(struct vv_conf *conf, const char *option)
{
	const char *path = vv_conf_text(conf, option);
	char *here = path[0] && path[0] != '/' ? getcwd(NULL, 0) : NULL, *whole = NULL;
	int rc = 0;

	if (here)
		whole = vv_mem_printf("%s/%s", here, path);
	if (here && !whole)
		rc = VV_ENOMEM;
	if (whole)
		rc = vv_conf_set(conf, option, whole, vv_conf_origin(conf, option));
	vv_mem_free(whole);
	free(here);
	return rc;
}

static int configure(struct varve *v, const char *options)
{
	int rc = vv_options_load(&v->ctx.conf, options);

	if (rc == 0)
		rc = vv_rehearse_parse(v->rehearse);
	if (rc == 0 && v->rehearse->last)
		rc = vv_rehearse_adjust_options(&v->ctx.conf);
	if (rc == 0)
		rc = place(&v->ctx.conf, "stats");
	if (rc == 0)
		rc = place(&v->ctx.conf, "metrics");
	if (rc)
		return rc;
	vv_options_apply_log(&v->ctx.conf);
	v->ctx.digest_kind = vv_conf_text(&v->ctx.conf, "digest")[0] == 's' ? VV_DIGEST_SHA256 : VV_DIGEST_XXH3;
	v->ctx.digest = vv_digest_of_kind(v->ctx.digest_kind);
	v->ctx.chunk = (uint32_t)vv_conf_number(&v->ctx.conf, "chunk");
	v->ctx.grain = (uint32_t)vv_conf_number(&v->ctx.conf, "grain");
	v->ctx.method = (uint8_t)vv_grain_sets_method(vv_conf_text(&v->ctx.conf, "method"));
	v->coding->block = (size_t)vv_conf_number(&v->ctx.conf, "block");
	if (v->coding->block < v->ctx.chunk)
		/* A block holds a chunk, unless memory for compression is short (size_ring). */
		v->coding->block = v->ctx.chunk;
	v->ctx.async = vv_conf_text(&v->ctx.conf, "mode")[0] == 'a';
	v->ctx.dedup = vv_conf_bool(&v->ctx.conf, "dedup");
	v->tracking.audit = (unsigned)vv_conf_number(&v->ctx.conf, "audit");
	v->pacing.signal = vv_signal_request_signal(vv_conf_text(&v->ctx.conf, "signal"));
	v->tiles->waiters.copy_when_freed = vv_conf_bool(&v->ctx.conf, "eager");
	v->tiles->stale = true;
	v->pacing.interval = (struct vv_interval){ vv_conf_real(&v->ctx.conf, "interval"), vv_conf_real(&v->ctx.conf, "overhead"),
				  vv_conf_real(&v->ctx.conf, "mtbf") };
	if (v->ctx.grain)
		rc = vv_grain_sets_check("option grain", v->ctx.grain);
	return rc ? rc : vv_codec_choice_parse(vv_conf_text(&v->ctx.conf, "codec"), v->coding);
}

/* auto: the kernel's record of written pages if available, else digests alone. A fault per page
 * costs more than it saves, except for the sparsest writers. */
static int choose_tracker(struct varve *v)
{
	const char *name = vv_conf_text(&v->ctx.conf, "tracker");
	int rc = 0;

	v->tracking.tracker = VV_BY_DIGEST;
	v->tracking.automatic = strcmp(name, "auto") == 0;
	if (strcmp(name, "mprotect") == 0 || strcmp(name, "sigbus") == 0)
		v->tracking.tracker = VV_BY_WRITE_PROTECT;
	if (v->tracking.automatic || strcmp(name, "wpasync") == 0)
		rc = vv_scan_open(&v->tracking.scan);
	v->tiles->protection.scan = v->tracking.scan;
	if (v->tracking.scan)
		v->tracking.tracker = VV_BY_SCAN;
	if (rc && v->tracking.automatic) {
		vv_log_info("written pages are not tracked: %s", vv_err_last());
		vv_err_clear();
		return 0;
	}
	return rc;
}

/* The lock is taken before the lineage's record is read, so that two first writers cannot both
 * create one. */
static int open_lineage(struct varve *v, const char *lineage)
{
	char object[VV_NAME_MAX];
	int rc;

	vv_name_lock(object, lineage);
	rc = vv_store_lock(v->ctx.store, object, &v->ctx.writer);
	if (rc == 0)
		rc = vv_tiers_adopt(v, lineage);
	if (rc == 0)
		rc = vv_catalog_open(v->ctx.store, lineage, true, &v->ctx.lineage);
	return rc ? rc : vv_tip_find_newest(v, lineage);
}

/* The wrappers of src/preload/wrap call the C library through the dynamic linker, which a program
 * linked with -static lacks. */
static int check_linking(void)
{
	if (!VV_HAVE_INTERPOSE || dlsym(RTLD_DEFAULT, "getrandom"))
		return 0;
	return vv_err_set(VV_ENOTSUP, "this program is linked with -static, and varve needs the shared C library: link without -static (libvarve.a may stay)");
}

static int attach(struct varve *v, const char *url, const char *lineage)
{
	struct vv_store_options opt = vv_options_store(&v->ctx.conf, true);
	int rc = vv_name_check_lineage(lineage);
	uint64_t token;

	opt.recycle = vv_conf_number(&v->ctx.conf, "keep") > 0;
	if (rc == 0)
		rc = check_linking();
	if (rc == 0 && getrandom(&token, sizeof(token), 0) != (ssize_t)sizeof(token))
		rc = vv_err_sys(errno, "no random numbers");
	if (rc == 0)
		vv_tip_set_token(v, token);
	if (rc == 0)
		rc = vv_store_open(url, &opt, &v->ctx.store);
	if (rc == 0)
		rc = vv_tiers_open(v, url);
	if (v->ctx.group)
		rc = vv_rank_session_attach(v, lineage, rc);
	else if (rc == 0)
		rc = open_lineage(v, lineage);
	v->ctx.lineage.rank = v->ctx.rank;
	v->ctx.lineage.ranks = v->ctx.ranks;
	vv_tip_open(v);
	return rc;
}

/* Not for a child of fork, where the lock and the threads belong to the parent. There only memory
 * is freed. */
static void end_threads(struct varve *v)
{
	vv_background_wait(v);
	vv_background_fini(v->background);
	vv_layout_fini(v);
	if (v->device_buffers)
		vv_device_buffers_finish_close(v->device_buffers);
	vv_pool_free(v->ctx.pool);
	if (v->pacing.signal)
		vv_signal_request_unlisten(v->pacing.signal);
	vv_store_unlock(v->ctx.writer);
	vv_rank_session_leave(v);
}

static void free_session(struct varve *v)
{
	if (v->entry.pid == getpid()) {
		vv_background_wait(v);
		vv_background_end_adjusting(v->background);
	}
	vv_tiers_free(v);
	vv_grain_sets_free(v);
	if (v->entry.pid == getpid())
		end_threads(v);
	else
		vv_layout_fini(v);
	for (size_t i = 0; i < v->n_regions; i++)
		vv_region_free(v->region[i]);
	vv_mem_free(v->region);
	vv_mem_free(v->device_buffers);
	vv_map_fini(&v->by_name);
	vv_run_table_fini(v->tip.table);
	vv_run_table_fini(v->view);
	vv_index_cache_fini(v->index_cache);
	vv_referenced_layers_fini(v->referenced);
	vv_catalog_listing_fini(&v->retention->live);
	vv_mem_free(v->retention->exempt.epoch);
	vv_store_close(v->ctx.store);
	vv_conf_fini(&v->ctx.conf);
	/* Not in a child of fork, where threads of the parent may seem to wait for them. */
	if (v->entry.pid == getpid()) {
		vv_tiles_fini(v->tiles);
		pthread_mutex_destroy(&v->entry.lock);
	}
	vv_mem_free(v);
}

/* Completes the epoch in progress with all ranks, and returns a failure that was not reported
 * yet. */
static int drain(struct varve *v)
{
	uint64_t failed;
	int rc, met;

	vv_rehash_cancel(v);
	vv_background_wait(v);
	met = vv_enter_check_call_and_failures(v, VV_GROUP_CLOSE, &failed);
	vv_tiers_finish(v, met == 0);
	rc = vv_background_report(v, failed);
	v->background->metrics.open = 0;
	vv_metrics_file_update(v);
	return rc ? rc : met;
}

int varve_close(varve *v)
{
	struct vv_err_state error = { 0 };
	sigset_t mask;
	int cancel;

	if (!v)
		return 0;
	if (vv_log_is_inside())
		return vv_err_set(VV_EINVAL, "varve_close: a function of varve_set_log may not close a session");
	if (vv_background_in_callback(v))
		return vv_err_set(VV_EINVAL, "varve_close: a callback may not close its session");
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (v->entry.pid == getpid())
		vv_err_save(drain(v), &error);
	vv_block_signals_begin(&mask);
	free_session(v);
	vv_block_signals_end(&mask);
	pthread_setcancelstate(cancel, NULL);
	return error.code ? vv_err_restore(&error) : 0;
}

/* The group is formed before any failure takes effect, so that all ranks fail together. */
static int start(struct varve *v, const struct varve_comm *comm, const char *store, const char *lineage, const char *options)
{
	int rc = store && lineage ? 0 : vv_err_set(VV_EINVAL, "a session needs a store and a lineage");

	if (rc == 0)
		rc = configure(v, options);
	if (rc == 0 && !v->rehearse->last && vv_conf_number(&v->ctx.conf, "rehearse"))
		rc = vv_rehearse_exec(vv_conf_number(&v->ctx.conf, "rehearse"), comm != NULL);
	if (rc == 0 && !comm)
		rc = choose_tracker(v);
	if (comm)
		rc = vv_rank_session_join(v, comm, rc ? rc : choose_tracker(v));
	if (rc == 0)
		rc = attach(v, v->rehearse->last ? vv_rehearse_store(store) : store, lineage);
	if (rc == 0 && v->pacing.signal) {
		rc = vv_signal_request_listen(v->pacing.signal);
		v->pacing.signal = rc ? 0 : v->pacing.signal;
		v->pacing.requests = vv_signal_request_count();
	} else {
		v->pacing.signal = 0;
	}
	return rc;
}

/* The session and the parts that other folders define, in one allocation. A pointer to the session
 * is also a pointer to the whole. */
struct whole_session {
	struct varve session;
	struct vv_rehearse rehearse;
	struct vv_tiles tiles;
	struct vv_run_table table, view;
	struct vv_index_cache history;
	struct vv_referenced_layers referenced;
	struct vv_block_writer_options coding;
	struct vv_costs costs;
	struct vv_commit_ranks commit;
	struct vv_retention retention;
	struct vv_background background;
};

static struct varve *new_session(void)
{
	struct whole_session *w = vv_mem_new(1, sizeof(*w));
	struct varve *v = w ? &w->session : NULL;

	if (!w)
		return NULL;
	v->rehearse = &w->rehearse;
	v->tiles = &w->tiles;
	v->tip.table = &w->table;
	v->view = &w->view;
	v->index_cache = &w->history;
	v->referenced = &w->referenced;
	v->coding = &w->coding;
	v->costs = &w->costs;
	v->commit = &w->commit;
	v->retention = &w->retention;
	v->background = &w->background;
	return v;
}

int vv_session_open(const struct varve_comm *comm, const char *store, const char *lineage, const char *options, varve **out)
{
	struct varve *v = new_session();
	int rc, cancel;

	if (!v)
		return VV_ENOMEM;
	pthread_mutex_init(&v->entry.lock, NULL);
	vv_tiles_init(v->tiles);
	vv_background_init(v->background);
	v->entry.pid = getpid();
	v->ctx.ranks = 1;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	rc = start(v, comm, store, lineage, options);
	if (rc) {
		struct vv_err_state error;

		vv_err_save(rc, &error);
		free_session(v);
		vv_err_restore(&error);
	} else {
		v->background->metrics = (struct vv_metrics){ .open = 1, .opened_ns = vv_clock_wall_ns() };
		vv_metrics_file_update(v);
		vv_tiers_start(v);
	}
	pthread_setcancelstate(cancel, NULL);
	if (rc)
		return rc;
	v->pacing.last_end = vv_clock_s();
	v->newest = v->tip.epoch;
	*out = v;
	return 0;
}

int varve_open(const char *store, const char *lineage, const char *options, varve **out)
{
	if (out)
		*out = NULL;
	if (!store || !lineage || !out)
		return vv_err_set(VV_EINVAL, "varve_open: store, lineage and out are needed");
	return vv_session_open(NULL, store, lineage, options, out);
}
