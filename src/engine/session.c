/* The public calls: arguments are checked, the session is locked, and the work is done elsewhere. */
#include "engine/checkpoint.h"
#include "engine/choice.h"
#include "engine/session.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/hush.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/annals.h"
#include "engine/collective.h"
#include "engine/dock.h"
#include "engine/flusher.h"
#include "engine/grains.h"
#include "engine/layout.h"
#include "engine/options.h"
#include "engine/rank_session.h"
#include "engine/ranks.h"
#include "engine/recall.h"
#include "engine/region.h"
#include "engine/request.h"
#include "engine/tiles.h"
#include "engine/window.h"
#include "track/fence.h"
#include "track/scan.h"
#include "vv_config.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <varve/varve_comm.h>

_Static_assert((int)VARVE_EPEER == (int)VV_EPEER && (int)VARVE_EDAMAGED == (int)VV_EDAMAGED, "public codes");
_Static_assert((int)VARVE_C128 == (int)VV_TYPE_C128 && (int)VARVE_MAX_DIMS == (int)VV_MAX_DIMS, "public types");

const char *varve_last_error(void)
{
	return vv_err_last();
}

int varve_fail(int code, const char *message)
{
	return vv_err_set(code, "%s", message ? message : vv_err_name(code));
}

const char *varve_strerror(int code)
{
	return vv_err_name(code);
}

const char *varve_version(void)
{
	return VV_VERSION;
}

int vv_session_enter(struct varve *v, const char *call)
{
	if (!v)
		return vv_err_set(VV_EINVAL, "%s: no session (NULL)", call);
	if (v->pid != getpid())
		return vv_err_set(VV_EINVAL, "%s: the session belongs to process %d; a child of fork opens its own", call,
				  (int)v->pid);
	if (vv_flusher_is_telling(v))
		return vv_err_set(VV_EINVAL, "%s: a callback may not call into its session", call);
	pthread_mutex_lock(&v->lock);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &v->cancel); /* a thread that ended in a call would keep its locks */
	return 0;
}

int vv_session_enter_idle(struct varve *v, const char *call)
{
	int rc = vv_session_enter(v, call);

	if (rc == 0)
		vv_flusher_wait(v);
	return rc;
}

void vv_session_hush(struct varve *v)
{
	vv_hush_begin(&v->deaf);
	v->hushed = true;
}

int vv_session_meet(struct varve *v, int call, uint64_t detail)
{
	if (!v->group)
		return 0;
	vv_verdict_step(v, true);
	return vv_ranks_meet(v->group, (enum vv_ranks_call)call, detail);
}

int vv_session_leave(struct varve *v, int rc)
{
	int cancel = v->cancel;
	bool hushed = v->hushed;
	sigset_t deaf = v->deaf;

	v->hushed = false;
	pthread_mutex_unlock(&v->lock);
	if (hushed)
		vv_hush_end(&deaf);
	pthread_setcancelstate(cancel, NULL);
	return rc;
}

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
	v->signal = vv_request_signal(vv_conf_text(&v->conf, "signal"));
	v->tiles.rescue = vv_conf_bool(&v->conf, "eager");
	v->tiles.stale = v->tiles.fine = true;
	v->due = (struct vv_due){ vv_conf_real(&v->conf, "interval"), vv_conf_real(&v->conf, "overhead"),
				  vv_conf_real(&v->conf, "mtbf") };
	if (vv_conf_number(&v->conf, "grain"))
		rc = vv_grains_check("option grain", vv_conf_number(&v->conf, "grain"));
	return rc ? rc : vv_choice_parse(vv_conf_text(&v->conf, "codec"), &v->coding);
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
	return rc ? rc : vv_session_look(v, lineage);
}

/* What there is; and what a dead writer left of the newest goes. */
int vv_session_look(struct varve *v, const char *lineage)
{
	char folder[VV_NAME_MAX];
	int rc = vv_catalog_newest(&v->lineage, UINT64_MAX, &v->epoch);

	if (rc == 0)
		rc = vv_catalog_highest(&v->lineage, &v->highest);
	if (rc || !v->highest)
		return rc;
	vv_name_folder(folder, lineage, v->highest / VV_NAME_EPOCHS_PER_FOLDER);
	return vv_store_sweep(v->store, folder);
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
	vv_flusher_wait(v);
	vv_flusher_fini(&v->flusher);
	vv_layout_fini(v);
	if (v->dock)
		vv_dock_end(v->dock);
	vv_pool_free(v->pool);
	if (v->signal)
		vv_request_unlisten(v->signal);
	vv_store_unlock(v->writer);
	vv_rank_session_leave(v);
}

static void free_session(struct varve *v)
{
	if (v->pid == getpid())
		vv_flusher_wait(v);
	vv_grains_free(v);
	if (v->pid == getpid())
		end_threads(v);
	else
		vv_layout_fini(v);
	for (size_t i = 0; i < v->n_regions; i++)
		vv_region_free(v->region[i]);
	vv_mem_free(v->region);
	vv_mem_free(v->dock);
	vv_map_fini(&v->by_name);
	vv_table_fini(&v->table);
	vv_table_fini(&v->view);
	vv_history_fini(&v->history);
	vv_footing_fini(&v->footing);
	vv_catalog_listing_fini(&v->live);
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

	vv_recall_give_up(v);
	vv_flusher_wait(v);
	if (v->group) {
		vv_verdict_step(v, true);
		met = vv_ranks_meet(v->group, VV_RANKS_CLOSE, 0);
	}
	rc = vv_flusher_report(v);
	return rc ? rc : met;
}

int varve_close(varve *v)
{
	struct vv_err_state error = { 0 };
	sigset_t deaf;
	int cancel;

	if (!v)
		return 0;
	if (vv_flusher_is_telling(v))
		return vv_err_set(VV_EINVAL, "varve_close: a callback may not close its session");
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (v->pid == getpid())
		vv_err_save(drain(v), &error);
	vv_hush_begin(&deaf);
	free_session(v);
	vv_hush_end(&deaf);
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
		rc = attach(v, store, lineage);
	if (rc == 0 && v->signal) {
		rc = vv_request_listen(v->signal);
		v->signal = rc ? 0 : v->signal;
		v->requests = vv_request_count();
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
	vv_flusher_init(&v->flusher);
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

void vv_session_continue(struct varve *v, uint64_t epoch, struct vv_table *table)
{
	vv_table_fini(&v->view);
	vv_table_fini(&v->table);
	v->table = *table;
	*table = (struct vv_table){ 0 };
	v->has_table = v->tried = true;
	v->own = v->settled = false;
	v->epoch = epoch;
	v->newest = epoch;
	v->failed = 0; /* it may be the one that is continued */
	for (size_t i = 0; i < v->n_regions; i++)
		v->region[i]->adopted = v->region[i]->restored = false;
	/* What is known of other ranks' layers is not in an order in which it could be found. */
	if (v->has_history && (v->group || !vv_window_holds(v))) {
		vv_history_fini(&v->history);
		v->has_history = false;
	}
}

void vv_session_step_back(struct varve *v, uint64_t epoch)
{
	struct vv_table none = { 0 };
	uint64_t newest = v->newest;

	vv_session_continue(v, epoch, &none);
	v->newest = newest; /* the one that failed, as long as it may be asked about */
	v->has_table = v->tried = false;
	vv_region_forget(v);
}

/* ---- checkpoint --------------------------------------------------------------------------------------------------- */

/* What a checkpoint costs the program: the call, and what its threads spent in faults since. One that fails has cost as much, so that
 * it is not tried again at every step. */
static void note_cost(struct varve *v, double start)
{
	v->last_end = vv_clock_s();
	v->last_cost = v->last_end - start + v->fault_cost;
	v->fault_cost = 0;
}

static int checkpoint(varve *v, const char *call, void *stream)
{
	double start = vv_clock_s();
	uint64_t requests;
	int rc = vv_session_enter_idle(v, call);

	if (rc)
		return rc;
	rc = vv_session_meet(v, VV_RANKS_CHECKPOINT, 0);
	if (rc == 0)
		rc = vv_flusher_report(v);
	if (rc)
		return vv_session_leave(v, rc);
	vv_session_hush(v);
	requests = vv_request_count();
	pthread_mutex_lock(&v->tiles.lock);
	v->fault_cost = (double)v->tiles.fault_ns / 1e9;
	pthread_mutex_unlock(&v->tiles.lock);
	vv_table_fini(&v->view);
	if (v->grains)
		v->grains->order = stream;
	rc = vv_checkpoint_run(v);
	note_cost(v, start);
	if (rc == 0) {
		v->requests = requests;
		if (!v->async)
			v->stats.seconds_blocked = v->last_end - start;
	} else {
		vv_flusher_told(v);
	}
	return vv_session_leave(v, rc);
}

int varve_checkpoint(varve *v)
{
	return checkpoint(v, "varve_checkpoint", NULL);
}

int varve_checkpoint_on_stream(varve *v, void *stream)
{
	return checkpoint(v, "varve_checkpoint_on_stream", stream);
}

uint64_t varve_epoch(const varve *v)
{
	return v ? atomic_load(&v->newest) : 0;
}

/* Of an epoch that is not this session's, the store knows. */
static int look_up(struct varve *v, uint64_t epoch)
{
	struct vv_commit c = { 0 };
	int rc;

	vv_flusher_wait(v);
	rc = vv_catalog_commit(&v->lineage, epoch, &c);
	vv_commit_fini(&c);
	return rc ? rc : 1;
}

static int fate(struct varve *v, const char *call, uint64_t epoch, bool wait)
{
	int rc = vv_session_enter(v, call);

	if (rc)
		return rc;
	if (wait && v->group)
		rc = vv_rank_session_wait(v, epoch);
	if (rc)
		return vv_session_leave(v, rc);
	if (vv_rank_session_progress(v, epoch, wait))
		return vv_session_leave(v, 0);
	rc = vv_flusher_fate(v, epoch, wait);
	if (rc == VV_FLUSHER_UNKNOWN)
		rc = look_up(v, epoch);
	return vv_session_leave(v, rc);
}

int varve_test(varve *v, uint64_t epoch)
{
	return fate(v, "varve_test", epoch, false);
}

int varve_wait(varve *v, uint64_t epoch)
{
	int rc = fate(v, "varve_wait", epoch, true);

	return rc < 0 ? rc : 0;
}

int varve_on_done(varve *v, varve_done_fn fn, void *arg)
{
	int rc = vv_session_enter_idle(v, "varve_on_done");

	if (rc)
		return rc;
	v->flusher.done = fn;
	v->flusher.done_arg = arg;
	return vv_session_leave(v, 0);
}

/* While an epoch is being stored another one would only wait for it: then it is time only if somebody asks. */
int varve_due(varve *v)
{
	double wait;
	bool asked, set;
	int rc = vv_session_enter(v, "varve_due");

	if (rc)
		return rc;
	asked = v->signal && vv_request_count() != v->requests;
	set = v->due.interval > 0 || v->due.overhead > 0 || v->due.mtbf > 0;
	wait = vv_due_after(&v->due, v->last_cost);
	if (asked || !set)
		rc = 1;
	else
		rc = vv_clock_s() - v->last_end >= wait && !vv_flusher_busy(v);
	if (v->group)
		rc = vv_rank_session_due(v, asked, rc);
	return vv_session_leave(v, rc);
}

int varve_stats(varve *v, struct varve_stats *out)
{
	int rc = vv_session_enter_idle(v, "varve_stats");

	if (rc)
		return rc;
	if (!out)
		rc = vv_err_set(VV_EINVAL, "varve_stats: out is needed");
	else if (!v->stats.epoch)
		rc = vv_err_set(VV_ENOENT, "this session has made no checkpoint yet");
	else
		*out = v->stats;
	return vv_session_leave(v, rc);
}

void vv_session_begin_anew(struct varve *v)
{
	uint64_t failed = v->failed;

	vv_footing_fini(&v->footing);
	vv_annals_forget(&v->lineage);
	vv_annals_turn(&v->lineage);
	vv_footing_new_era(v);
	vv_session_step_back(v, 0);
	v->failed = failed;
}
