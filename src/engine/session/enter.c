/* The beginning and the end of every public call. Checks that the session exists and belongs to
 * this process, and locks it. */
#include "engine/session/enter.h"
#include "base/err.h"
#include "base/log.h"
#include "base/block_signals.h"
#include "engine/epoch/background.h"
#include "engine/ranks/group.h"
#include "engine/epoch/commit_ranks.h"
#include <unistd.h>

int vv_enter(struct varve *v, const char *call)
{
	if (vv_log_is_inside())
		return vv_err_set(VV_EINVAL, "%s: a function of varve_set_log may not call into a session", call);
	if (!v)
		return vv_err_set(VV_EINVAL, "%s: no session (NULL)", call);
	if (v->entry.pid != getpid())
		return vv_err_set(VV_EINVAL, "%s: the session belongs to process %d; a child of fork opens its own", call,
				  (int)v->entry.pid);
	if (vv_background_in_callback(v))
		return vv_err_set(VV_EINVAL, "%s: a callback may not call into its session", call);
	pthread_mutex_lock(&v->entry.lock);
	/* A thread that ended in a call would keep its locks. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &v->entry.cancel);
	return 0;
}

int vv_enter_idle(struct varve *v, const char *call)
{
	int rc = vv_enter(v, call);

	if (rc == 0)
		vv_background_wait(v);
	return rc;
}

void vv_enter_block_signals(struct varve *v)
{
	vv_block_signals_begin(&v->entry.mask_before);
	v->entry.signals_blocked = true;
}

int vv_enter_check_call(struct varve *v, int call, uint64_t detail)
{
	int rc;

	if (!v->ctx.group)
		return 0;
	vv_commit_ranks_step(v, true);
	rc = vv_group_check_call(v->ctx.group, (enum vv_group_call)call, detail);
	if (rc == 0)
		vv_commit_ranks_follow_up(v);
	return rc;
}

int vv_enter_check_call_and_failures(struct varve *v, int call, uint64_t *failed)
{
	uint64_t oldest;
	int rc;

	if (v->ctx.group)
		vv_commit_ranks_step(v, true);
	*failed = vv_background_unreported(v);
	if (!v->ctx.group)
		return 0;
	oldest = *failed ? UINT64_MAX - *failed : 0; /* the lowest epoch has the maximum */
	rc = vv_group_check_call_max(v->ctx.group, (enum vv_group_call)call, &oldest);
	if (rc)
		return rc;
	*failed = oldest ? UINT64_MAX - oldest : 0;
	vv_commit_ranks_follow_up(v);
	return 0;
}

int vv_enter_leave(struct varve *v, int rc)
{
	int cancel = v->entry.cancel;
	bool blocked = v->entry.signals_blocked;
	sigset_t mask = v->entry.mask_before;

	v->entry.signals_blocked = false;
	pthread_mutex_unlock(&v->entry.lock);
	if (blocked)
		vv_block_signals_end(&mask);
	pthread_setcancelstate(cancel, NULL);
	return rc;
}
