/* The public calls on an open session. They check arguments and lock the session. Other units do
 * the work. */
#include "base/clock.h"
#include "base/copy_sized.h"
#include "base/err.h"
#include "base/log.h"
#include "engine/lineage/run_table.h"
#include "engine/memory/tiles.h"
#include "engine/epoch/checkpoint.h"
#include "engine/session/enter.h"
#include "engine/epoch/background.h"
#include "engine/epoch/commit_ranks.h"
#include "engine/grains/grain_sets.h"
#include "engine/session/rank_session.h"
#include "engine/ranks/group.h"
#include "engine/session/rehearse.h"
#include "engine/session/signal_request.h"
#include "vv_config.h"
#include <math.h>
#include <stdio.h>

_Static_assert((int)VARVE_EPEER == (int)VV_EPEER && (int)VARVE_EDAMAGED == (int)VV_EDAMAGED, "public codes");
_Static_assert((int)VARVE_F8_E5M2 == (int)VV_TYPE_F8_E5M2 && (int)VARVE_MAX_DIMS == (int)VV_MAX_DIMS, "public types");
_Static_assert((int)VARVE_LOG_WARN == (int)VV_LOG_WARN && (int)VARVE_LOG_INFO == (int)VV_LOG_INFO, "public levels");

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

/* Notes the cost of a checkpoint to the program: the call, and the time of its threads in faults
 * since then. A failed checkpoint costs as much, so it is not repeated at every step. */
static void note_cost(struct varve *v, double start)
{
	v->pacing.last_end = vv_clock_s();
	v->pacing.last_cost = v->pacing.last_end - start + v->pacing.fault_cost;
	v->pacing.fault_cost = 0;
}

static int checkpoint(varve *v, const char *call, void *stream)
{
	double start = vv_clock_s();
	uint64_t requests, failed;
	int rc = vv_enter_idle(v, call);

	if (rc)
		return rc;
	rc = vv_enter_check_call_and_failures(v, VV_GROUP_CHECKPOINT, &failed);
	if (rc == 0)
		rc = vv_background_report(v, failed);
	if (rc)
		return vv_enter_leave(v, rc);
	vv_enter_block_signals(v);
	requests = vv_signal_request_count();
	pthread_mutex_lock(&v->tiles->lock);
	v->pacing.fault_cost = (double)v->tiles->meters.fault_ns / 1e9;
	pthread_mutex_unlock(&v->tiles->lock);
	vv_run_table_fini(v->view);
	if (v->grains)
		v->grains->cuda_stream = stream;
	rc = vv_checkpoint_run(v);
	note_cost(v, start);
	if (rc == 0) {
		v->pacing.requests = requests;
		if (!v->ctx.async)
			v->stats.seconds_blocked = v->pacing.last_end - start;
	} else {
		vv_background_mark_reported(v);
	}
	return vv_enter_leave(v, rc);
}

static int checkpoint_or_rehearse(varve *v, const char *call, void *stream)
{
	if (!v || !v->rehearse->last)
		return checkpoint(v, call, stream);
	vv_rehearse_before(v);
	return vv_rehearse_after(v, checkpoint(v, call, stream));
}

int varve_checkpoint(varve *v)
{
	return checkpoint_or_rehearse(v, "varve_checkpoint", NULL);
}

int varve_checkpoint_on_stream(varve *v, void *stream)
{
	return checkpoint_or_rehearse(v, "varve_checkpoint_on_stream", stream);
}

int varve_label(varve *v, const char *label)
{
	int rc = vv_enter(v, "varve_label");

	if (rc)
		return rc;
	if (label && label[0])
		rc = vv_name_check_label(label);
	if (rc == 0)
		snprintf(v->label.next.text, sizeof(v->label.next.text), "%s", label ? label : "");
	return vv_enter_leave(v, rc);
}

uint64_t varve_epoch(const varve *v)
{
	return v ? atomic_load(&v->newest) : 0;
}

uint64_t varve_protected_epoch(const varve *v)
{
	return v && v->ctx.group ? atomic_load(&v->commit->redundancy.epoch) : 0;
}

/* Looks up an epoch of another session in the store. */
static int look_up(struct varve *v, uint64_t epoch)
{
	struct vv_commit c = { 0 };
	int rc;

	vv_background_wait(v);
	rc = vv_catalog_commit(&v->ctx.lineage, epoch, &c);
	vv_commit_fini(&c);
	return rc ? rc : 1;
}

/* Until the epoch is stored, or the time has come. Among ranks that communicate only in calls, the
 * commit advances in these looks. */
static void wait_until(struct varve *v, uint64_t epoch, double time)
{
	enum { STEP_MS = 1 };

	while (vv_background_wait_until(v, epoch, time) && vv_rank_session_progress(v, epoch, false) && vv_clock_s() < time)
		vv_clock_sleep(STEP_MS / 1e3);
}

/* seconds: how long to wait. INFINITY: until the result is known; then all ranks wait together. */
static int fate(struct varve *v, const char *call, uint64_t epoch, double seconds)
{
	bool latest = epoch == VARVE_LATEST, wait = isinf(seconds), limited = seconds > 0 && !wait;
	double begin = vv_clock_s();
	int rc = vv_enter(v, call);

	if (rc)
		return rc;
	if (latest)
		epoch = atomic_load(&v->newest);
	if (!epoch && latest)
		return vv_enter_leave(v, 1); /* there is no epoch to wait for */
	if (limited)
		wait_until(v, epoch, begin + seconds);
	if (wait && v->ctx.group)
		rc = vv_rank_session_wait(v, epoch);
	if (rc)
		return vv_enter_leave(v, rc);
	if (vv_rank_session_progress(v, epoch, wait))
		return vv_enter_leave(v, 0);
	rc = vv_background_result(v, epoch, wait);
	if (rc == VV_BACKGROUND_UNKNOWN)
		rc = limited && vv_background_busy(v) ? 0 : look_up(v, epoch);
	return vv_enter_leave(v, rc);
}

int varve_test(varve *v, uint64_t epoch)
{
	return fate(v, "varve_test", epoch, 0);
}

int varve_wait(varve *v, uint64_t epoch)
{
	int rc = fate(v, "varve_wait", epoch, INFINITY);

	return rc < 0 ? rc : 0;
}

int varve_wait_for(varve *v, uint64_t epoch, double seconds)
{
	enum { YEAR = 31536000 }; /* not a wait without end, which would be collective */

	if (isnan(seconds))
		return vv_err_set(VV_EINVAL, "varve_wait_for: the time is not a number");
	return fate(v, "varve_wait_for", epoch, seconds < YEAR ? seconds : YEAR);
}

int varve_set_log(varve_log_fn fn, void *arg)
{
	vv_log_set_function(fn, arg);
	return 0;
}

int varve_on_done(varve *v, varve_done_fn fn, void *arg)
{
	int rc = vv_enter_idle(v, "varve_on_done");

	if (rc)
		return rc;
	v->background->done = fn;
	v->background->done_arg = arg;
	return vv_enter_leave(v, 0);
}

/* While an epoch is being stored, another checkpoint would only wait for it. Then a checkpoint is
 * due only on request. */
int varve_due(varve *v)
{
	double wait;
	bool asked, set;
	int rc = vv_enter(v, "varve_due");

	if (rc)
		return rc;
	asked = v->pacing.signal && vv_signal_request_count() != v->pacing.requests;
	set = v->pacing.interval.interval > 0 || v->pacing.interval.overhead > 0 || v->pacing.interval.mtbf > 0;
	wait = vv_interval_after(&v->pacing.interval, v->pacing.last_cost);
	if (asked || !set)
		rc = 1;
	else
		rc = vv_clock_s() - v->pacing.last_end >= wait && !vv_background_busy(v);
	if (v->ctx.group)
		rc = vv_rank_session_due(v, asked, rc);
	return vv_enter_leave(v, rc);
}

int varve_stats_sized(varve *v, struct varve_stats *out, size_t size)
{
	int rc = vv_enter_idle(v, "varve_stats");

	if (rc)
		return rc;
	if (!out)
		rc = vv_err_set(VV_EINVAL, "varve_stats: out is needed");
	else if (!v->stats.epoch)
		rc = vv_err_set(VV_ENOENT, "this session has made no checkpoint yet");
	else
		vv_copy_sized(out, size, &v->stats, sizeof(v->stats));
	return vv_enter_leave(v, rc);
}

/* For programs from before 1.0, which pass no size. */
VARVE_API int vv_public_calls_stats(varve *v, struct varve_stats *out) __asm__("varve_stats");

int vv_public_calls_stats(varve *v, struct varve_stats *out)
{
	return varve_stats_sized(v, out, VV_SIZE_UP_TO(struct varve_stats, seconds_ranks));
}
