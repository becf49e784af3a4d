/* A session is opened and closed. */
#include "engine/write/codec_choice.h"
#include "engine/context.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/block_signals.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/read/device_buffers.h"
#include "engine/session/background.h"
#include "engine/grains/grain_sets.h"
#include "engine/memory/layout.h"
#include "engine/options.h"
#include "engine/session/rank_session.h"
#include "engine/ranks/group.h"
#include "engine/grains/relearn.h"
#include "engine/session/region.h"
#include "engine/session/rehearse.h"
#include "engine/session/signal_request.h"
#include "engine/memory/tiles.h"
#include "engine/session/tip.h"
#include "track/fence.h"
#include "track/scan.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <varve/varve_comm.h>

/* A statistics file by a relative path stays where it was when the session was opened, as the store does. */
static int place_stats(struct vv_conf *conf)
{
	const char *path = vv_conf_text(conf, "stats");
	char *here = path[0] && path[0] != '/' ? getcwd(NULL, 0) : NULL, *whole = NULL;
	int rc = 0;

	if (here)
		whole = vv_mem_printf("%s/%s", here, path);
	if (here && !whole)
		rc = VV_ENOMEM;
	if (whole)
		rc = vv_conf_set(conf, "stats", whole, vv_conf_origin(conf, "stats"));
	vv_mem_free(whole);
	free(here);
	return rc;
}

static int configure(struct varve *v, const char *options)
{
	const char *log;
	int rc = vv_options_load(&v->conf, options);

	if (rc == 0)
		rc = vv_rehearse_parse(&v->rehearse);
	if (rc == 0 && v->rehearse.last)
		rc = vv_rehearse_suit(&v->conf);
	if (rc == 0)
		rc = place_stats(&v->conf);
	if (rc)
		return rc;
	log = vv_conf_text(&v->conf, "log");
	vv_log_set_level(log[0] == 'e' ? VV_LOG_ERROR : log[0] == 'w' ? VV_LOG_WARN : VV_LOG_INFO);
	v->digest_kind = vv_conf_text(&v->conf, "digest")[0] == 's' ? VV_DIGEST_SHA256 : VV_DIGEST_XXH3;
	v->digest = vv_digest_of_kind(v->digest_kind);
	v->coding.block = (size_t)vv_conf_number(&v->conf, "block");
	if (v->coding.block < vv_conf_number(&v->conf, "chunk"))
		v->coding.block = (size_t)vv_conf_number(&v->conf, "chunk"); /* so that no chunk is cut */
	v->async = vv_conf_text(&v->conf, "mode")[0] == 'a';
	v->dedup = vv_conf_bool(&v->conf, "dedup");
	v->audit = (unsigned)vv_conf_number(&v->conf, "audit");
	v->signal = vv_signal_request_signal(vv_conf_text(&v->conf, "signal"));
	v->tiles.rescue = vv_conf_bool(&v->conf, "eager");
	v->tiles.stale = v->tiles.fine = true;
	v->due = (struct vv_interval){ vv_conf_real(&v->conf, "interval"), vv_conf_real(&v->conf, "overhead"),
				  vv_conf_real(&v->conf, "mtbf") };
	if (vv_conf_number(&v->conf, "grain"))
		rc = vv_grain_sets_check("option grain", vv_conf_number(&v->conf, "grain"));
	return rc ? rc : vv_codec_choice_parse(vv_conf_text(&v->conf, "codec"), &v->coding);
}

/* auto: the kernel's own record of written pages where there is one, else digests alone: a fault per page costs more than it
 * saves for all but the sparsest writers. */
static int choose_tracker(struct varve *v)
{
	const char *name = vv_conf_text(&v->conf, "tracker");
	int rc = 0;

	v->tracker = VV_BY_DIGEST;
	v->watch_auto = strcmp(name, "auto") == 0;
	if (strcmp(name, "mprotect") == 0 || strcmp(name, "sigbus") == 0)
		v->tracker = VV_BY_FENCE;
	if (v->watch_auto || strcmp(name, "wpasync") == 0)
		rc = vv_scan_open(&v->tiles.scan);
	if (v->tiles.scan)
		v->tracker = VV_BY_SCAN;
	if (rc && v->watch_auto) {
		vv_log_info("written pages are not tracked: %s", vv_err_last());
		vv_err_clear();
		return 0;
	}
	return rc;
}

/* The lock comes before the lineage's record, so that two first writers cannot both make one. */
static int open_lineage(struct varve *v, const char *lineage)
{
	char object[VV_NAME_MAX];
	int rc;

	vv_name_lock(object, lineage);
	rc = vv_store_lock(v->store, object, &v->writer);
	if (rc == 0)
		rc = vv_catalog_open(v->store, lineage, true, &v->lineage);
	return rc ? rc : vv_tip_look(v, lineage);
}

static int attach(struct varve *v, const char *url, const char *lineage)
{
	struct vv_store_options opt = vv_options_store(&v->conf, true);
	int rc = vv_name_check_lineage(lineage);

	if (rc == 0 && getrandom(&v->token, sizeof(v->token), 0) != (ssize_t)sizeof(v->token))
		rc = vv_err_sys(errno, "no random numbers");
	if (rc == 0)
		rc = vv_store_open(url, &opt, &v->store);
	if (v->group)
		rc = vv_rank_session_attach(v, lineage, rc);
	else if (rc == 0)
		rc = open_lineage(v, lineage);
	v->found = v->highest;
	v->era = v->found + 1;
	return rc;
}

/* In a child of fork the lock and the threads are the parent's: only memory is given back. */
static void end_threads(struct varve *v)
{
	vv_background_wait(v);
	vv_background_fini(&v->flusher);
	vv_layout_fini(v);
	if (v->dock)
		vv_device_buffers_end(v->dock);
	vv_pool_free(v->pool);
	if (v->signal)
		vv_signal_request_unlisten(v->signal);
	vv_store_unlock(v->writer);
	vv_rank_session_leave(v);
}

static void free_session(struct varve *v)
{
	if (v->pid == getpid())
		vv_background_wait(v);
	vv_grain_sets_free(v);
	if (v->pid == getpid())
		end_threads(v);
	else
		vv_layout_fini(v);
	for (size_t i = 0; i < v->n_regions; i++)
		vv_region_free(v->region[i]);
	vv_mem_free(v->region);
	vv_mem_free(v->dock);
	vv_map_fini(&v->by_name);
	vv_run_table_fini(&v->table);
	vv_run_table_fini(&v->view);
	vv_index_cache_fini(&v->history);
	vv_referenced_layers_fini(&v->footing);
	vv_catalog_listing_fini(&v->live);
	vv_mem_free(v->spared.epoch);
	vv_store_close(v->store);
	vv_conf_fini(&v->conf);
	if (v->pid == getpid()) { /* in a child threads of the parent may seem to wait for them */
		vv_tiles_fini(&v->tiles);
		pthread_mutex_destroy(&v->lock);
	}
	vv_mem_free(v);
}

/* What is under way comes to its end, with all ranks, and what nobody has been told yet is told now. */
static int drain(struct varve *v)
{
	int rc, met = 0;

	vv_relearn_give_up(v);
	vv_background_wait(v);
	if (v->group) {
		vv_commit_ranks_step(v, true);
		met = vv_group_meet(v->group, VV_GROUP_CLOSE, 0);
	}
	rc = vv_background_report(v);
	return rc ? rc : met;
}

int varve_close(varve *v)
{
	struct vv_err_state error = { 0 };
	sigset_t deaf;
	int cancel;

	if (!v)
		return 0;
	if (vv_background_is_telling(v))
		return vv_err_set(VV_EINVAL, "varve_close: a callback may not close its session");
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (v->pid == getpid())
		vv_err_save(drain(v), &error);
	vv_block_signals_begin(&deaf);
	free_session(v);
	vv_block_signals_end(&deaf);
	pthread_setcancelstate(cancel, NULL);
	return error.code ? vv_err_restore(&error) : 0;
}

/* The group is there before anything else can fail, so that all ranks fail together. */
static int start(struct varve *v, const struct varve_comm *comm, const char *store, const char *lineage, const char *options)
{
	int rc = store && lineage ? 0 : vv_err_set(VV_EINVAL, "a session needs a store and a lineage");

	if (rc == 0)
		rc = configure(v, options);
	if (rc == 0 && !comm)
		rc = choose_tracker(v);
	if (comm)
		rc = vv_rank_session_join(v, comm, rc ? rc : choose_tracker(v));
	if (rc == 0)
		rc = attach(v, v->rehearse.last ? vv_rehearse_store(store) : store, lineage);
	if (rc == 0 && v->signal) {
		rc = vv_signal_request_listen(v->signal);
		v->signal = rc ? 0 : v->signal;
		v->requests = vv_signal_request_count();
	} else {
		v->signal = 0;
	}
	return rc;
}

int vv_session_open(const struct varve_comm *comm, const char *store, const char *lineage, const char *options, varve **out)
{
	struct varve *v = vv_mem_new(1, sizeof(*v));
	int rc, cancel;

	if (!v)
		return VV_ENOMEM;
	pthread_mutex_init(&v->lock, NULL);
	vv_tiles_init(&v->tiles);
	vv_background_init(&v->flusher);
	v->pid = getpid();
	v->ranks = 1;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	rc = start(v, comm, store, lineage, options);
	if (rc) {
		struct vv_err_state error;

		vv_err_save(rc, &error);
		free_session(v);
		vv_err_restore(&error);
	}
	pthread_setcancelstate(cancel, NULL);
	if (rc)
		return rc;
	v->last_end = vv_clock_s();
	v->newest = v->epoch;
	*out = v;
	return 0;
}

int varve_open(const char *store, const char *lineage, const char *options, varve **out)
{
	if (!store || !lineage || !out)
		return vv_err_set(VV_EINVAL, "varve_open: store, lineage and out are needed");
	return vv_session_open(NULL, store, lineage, options, out);
}
