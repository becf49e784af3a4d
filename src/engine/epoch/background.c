/* Nicolae and Cappello 2013's ASYNC_COMMIT: the thread that stores epochs in the background, one at
 * a time, and the results of epochs. After a restart the thread also computes the digests of the
 * regions' content. */
#include "engine/epoch/background.h"
#include "base/block_signals.h"
#include "base/clock.h"
#include "base/held.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/epoch/commit_ranks.h"
#include "engine/epoch/epoch.h"
#include "engine/grains/grain_sets.h"
#include "engine/epoch/stats_file.h"
#include "engine/ranks/group.h"
#include "engine/grains/rehash.h"
#include "engine/epoch/retention.h"
#include "engine/tiers/tiers.h"
#include "engine/memory/tiles.h"
#include "engine/epoch/tip.h"
#include "engine/write/index_limit.h"
#include "engine/write/referenced_layers.h"
#include "track/thread.h"
#include <inttypes.h>
#include <math.h>

/* ---- state shared by the thread and its callers ---------------------------------------------- */

/* A handler that writes a page of the flush waits for the flush. The flush must not wait for the
 * thread that the handler has interrupted. So no handler runs while the lock is held, and a thread
 * that waits for a change does not hold it. */
static void take(struct vv_background *f, sigset_t *mask)
{
	vv_block_signals_brief(mask);
	pthread_mutex_lock(&f->lock);
}

static void give(struct vv_background *f, const sigset_t *mask)
{
	pthread_mutex_unlock(&f->lock);
	vv_block_signals_end(mask);
}

/* The caller holds the lock, before and after. */
static void await_change_since(struct vv_background *f, sigset_t *mask, uint32_t looked, double seconds)
{
	VV_HELD(&f->lock);
	give(f, mask);
	vv_event_wait_for(&f->change, looked, seconds);
	take(f, mask);
}

static void await_change_for(struct vv_background *f, sigset_t *mask, double seconds)
{
	await_change_since(f, mask, vv_event_count(&f->change), seconds);
}

static void await_change(struct vv_background *f, sigset_t *mask)
{
	await_change_for(f, mask, INFINITY);
}

/* ---- one epoch and its result ---------------------------------------------------------------- */

static void keep_failure(struct varve *v, uint64_t epoch, int rc)
{
	struct vv_background *f = v->background;

	f->failed[f->n_failed] = (struct vv_epoch_failure){ .epoch = epoch };
	vv_err_save(rc, &f->failed[f->n_failed++].error);
}

static void note_fate(struct varve *v, uint64_t epoch, int rc)
{
	struct vv_background *f = v->background;
	sigset_t mask;

	take(f, &mask);
	if (!f->first)
		f->first = epoch;
	f->last = epoch;
	if (rc)
		keep_failure(v, epoch, rc);
	else
		v->newest = v->tip.epoch;
	vv_event_signal(&f->change);
	give(f, &mask);
}

static _Thread_local const struct varve *telling;

bool vv_background_in_callback(const struct varve *v)
{
	return telling == v;
}

static void report_result(struct varve *v, uint64_t epoch, uint64_t time_ns, const struct varve_stats *st, int rc)
{
	const char *path = vv_conf_text(&v->ctx.conf, "stats");
	struct vv_err_state error;

	vv_err_save(rc, &error);
	if (path[0] && vv_stats_file_add(path, v->ctx.lineage.name, v->ctx.rank, time_ns, rc, vv_err_last(), st) < 0)
		vv_log_warn("statistics are not written: %s", vv_err_last());
	vv_metrics_file_count(&v->background->metrics, st, rc);
	vv_metrics_file_update(v);
	vv_err_restore(&error);
	if (v->background->done) {
		const struct varve *outer = telling;

		telling = v;
		v->background->done(v->background->done_arg, epoch, rc);
		telling = outer;
	}
	vv_err_restore(&error);
}

void vv_background_finish_epoch(struct varve *v, uint64_t epoch, uint64_t time_ns, const struct varve_stats *st, int rc)
{
	if (rc == 0)
		vv_tiers_offer(v, epoch);
	report_result(v, epoch, time_ns, st, rc);
	note_fate(v, epoch, rc);
}

int vv_background_reserve(struct vv_background *f)
{
	return vv_mem_room(&f->failed, f->n_failed, &f->failed_cap, sizeof(*f->failed));
}

/* Accepts or abandons the epoch in the session. */
static void end_pass(struct vv_layer_writer *p, int rc)
{
	struct varve *v = p->v;

	if (rc == 0) {
		vv_epoch_accept(p);
		return;
	}
	vv_epoch_abandon(p);
	p->st.epoch = p->epoch;
	if (v->referenced->lost && !v->ctx.group)
		vv_tip_begin_era(v);
}

/* All ranks together decide whether the epoch is committed. They decide now, or in a later call if
 * only the program's own thread may communicate. */
static int end_part(struct vv_layer_writer *p, int rc)
{
	struct varve *v = p->v;
	uint64_t epoch = p->epoch;

	vv_commit_ranks_begin(p, rc);
	end_pass(p, rc);
	vv_tiles_unprotect_stored(v);
	vv_epoch_free(p);
	if (!v->ctx.async || v->ctx.group->threaded) {
		vv_commit_ranks_step(v, true);
		vv_commit_ranks_follow_up(v);
	}
	/* In async mode a later call reports the result. */
	rc = v->ctx.async ? 0 : vv_background_result(v, epoch, false);
	return rc < 0 ? rc : 0;
}

int vv_background_run(struct vv_layer_writer *p)
{
	struct varve *v = p->v;
	struct vv_err_state error;
	int rc = vv_epoch_store(p);
	uint64_t bytes;

	if (v->ctx.group)
		return end_part(p, rc);
	vv_err_save(rc, &error);
	end_pass(p, rc);
	vv_err_restore(&error);
	vv_background_finish_epoch(v, p->epoch, p->head.time_ns, &p->st, rc);
	vv_tiles_unprotect_stored(v);
	bytes = p->st.bytes_layer;
	/* The next steps need the memory. */
	vv_epoch_free(p);
	if (rc == 0) {
		vv_index_limit_enforce(v);
		vv_retention_run(v, bytes);
	}
	return vv_err_restore(&error);
}

/* ---- the thread ------------------------------------------------------------------------------ */

int vv_background_init(struct vv_background *f)
{
	pthread_mutex_init(&f->lock, NULL);
	return 0;
}

void vv_background_fini(struct vv_background *f)
{
	sigset_t mask;

	if (f->started) {
		take(f, &mask);
		f->stop = true;
		vv_event_signal(&f->change);
		give(f, &mask);
		pthread_join(f->thread, NULL);
	}
	vv_mem_free(f->failed);
	pthread_mutex_destroy(&f->lock);
}

/* Called with the lock held. Returns seconds until the next step. */
static double adjust(struct vv_background *f, sigset_t *mask)
{
	struct varve *v = f->adjusted;
	double next;

	VV_HELD(&f->lock);
	if (!v)
		return INFINITY;
	f->adjusting = true;
	give(f, mask);
	next = vv_new_data_adjust(v);
	take(f, mask);
	f->adjusting = false;
	if (!f->adjusted)
		vv_event_signal(&f->change);
	return next;
}

static void *serve(void *arg)
{
	struct vv_background *f = arg;
	sigset_t mask;

	vv_thread_mark_own();
	take(f, &mask);
	while (!f->stop) {
		struct vv_layer_writer *p = f->epoch;
		struct varve *v = f->rehashing, *stored = p ? p->v : NULL;

		if (!p && !v) {
			uint32_t looked = vv_event_count(&f->change);
			double next = adjust(f, &mask);

			if (next > 0)
				await_change_since(f, &mask, looked, next);
			continue;
		}
		give(f, &mask);
		if (v) {
			vv_rehash_run(v);
		} else {
			vv_background_run(p);
			vv_retention_free_space(stored);
		}
		take(f, &mask);
		f->rehashing = NULL;
		f->epoch = v ? f->epoch : NULL;
		vv_event_signal(&f->change);
	}
	give(f, &mask);
	return NULL;
}

int vv_background_ready(struct vv_background *f)
{
	int rc;

	if (f->started)
		return 0;
	rc = vv_thread_start(&f->thread, serve, f);
	f->started = rc == 0;
	return rc ? vv_thread_not_started(rc, "stores epochs") : 0;
}

void vv_background_start(struct vv_layer_writer *p)
{
	struct vv_background *f = p->v->background;
	sigset_t mask;

	take(f, &mask);
	f->epoch = p;
	p->v->newest = p->epoch;
	vv_event_signal(&f->change);
	give(f, &mask);
}

void vv_background_start_rehash(struct varve *v)
{
	struct vv_background *f = v->background;
	sigset_t mask;

	take(f, &mask);
	f->rehashing = v;
	vv_event_signal(&f->change);
	give(f, &mask);
}

void vv_background_adjust(struct varve *v)
{
	struct vv_background *f = v->background;
	sigset_t mask;

	take(f, &mask);
	f->adjusted = v;
	vv_event_signal(&f->change);
	give(f, &mask);
}

void vv_background_end_adjusting(struct vv_background *f)
{
	sigset_t mask;

	take(f, &mask);
	f->adjusted = NULL;
	while (f->adjusting)
		await_change(f, &mask);
	give(f, &mask);
}

void vv_background_wait(struct varve *v)
{
	struct vv_background *f = v->background;
	sigset_t mask;

	atomic_fetch_add(&f->awaited, 1);
	take(f, &mask);
	while (f->epoch || f->rehashing)
		await_change(f, &mask);
	give(f, &mask);
	atomic_fetch_sub(&f->awaited, 1);
}

bool vv_background_is_awaited(const struct varve *v)
{
	return atomic_load(&v->background->awaited) != 0;
}

static bool is_known(const struct vv_background *f, uint64_t epoch)
{
	return f->first && epoch >= f->first && epoch <= f->last;
}

bool vv_background_wait_until(struct varve *v, uint64_t epoch, double time)
{
	struct vv_background *f = v->background;
	sigset_t mask;
	double left;
	bool known;

	take(f, &mask);
	while ((f->epoch || f->rehashing) && !is_known(f, epoch) && (left = time - vv_clock_s()) > 0)
		await_change_for(f, &mask, left);
	known = is_known(f, epoch) || (!f->epoch && !f->rehashing);
	give(f, &mask);
	return known;
}

bool vv_background_busy(struct varve *v)
{
	struct vv_background *f = v->background;
	sigset_t mask;
	bool busy;

	take(f, &mask);
	busy = f->epoch || f->rehashing;
	give(f, &mask);
	return busy;
}

void vv_background_mark_reported(struct varve *v)
{
	struct vv_background *f = v->background;
	sigset_t mask;

	take(f, &mask);
	for (size_t i = 0; i < f->n_failed; i++)
		f->failed[i].reported = true;
	give(f, &mask);
}

uint64_t vv_background_unreported(struct varve *v)
{
	struct vv_background *f = v->background;
	sigset_t mask;
	uint64_t epoch = 0;

	take(f, &mask);
	for (size_t i = 0; !epoch && i < f->n_failed; i++)
		epoch = f->failed[i].reported ? 0 : f->failed[i].epoch;
	give(f, &mask);
	return epoch;
}

int vv_background_result(struct varve *v, uint64_t epoch, bool wait)
{
	struct vv_background *f = v->background;
	sigset_t mask;
	int rc = VV_BACKGROUND_UNKNOWN;

	take(f, &mask);
	while (wait && f->epoch && epoch > f->last)
		await_change(f, &mask);
	if (f->epoch && epoch > f->last)
		rc = epoch == v->newest ? 0 : VV_BACKGROUND_UNKNOWN;
	else if (is_known(f, epoch))
		rc = 1;
	for (size_t i = 0; i < f->n_failed; i++)
		if (f->failed[i].epoch == epoch) {
			f->failed[i].reported = true;
			rc = vv_err_restore(&f->failed[i].error);
		}
	give(f, &mask);
	return rc;
}

int vv_background_report(struct varve *v, uint64_t failed)
{
	int rc = failed ? vv_background_result(v, failed, false) : 0;

	if (failed)
		v->newest = v->tip.epoch;
	return rc <= 0 ? rc : vv_err_set(VV_EPEER, "epoch %" PRIu64 " failed on another rank", failed);
}
