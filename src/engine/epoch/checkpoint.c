/* A checkpoint: dirty memory is copied or write-protected, and then stored on this thread or in the
 * background. */
#include "engine/epoch/checkpoint.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/held.h"
#include "base/test_point.h"
#include "engine/memory/capture.h"
#include "engine/epoch/epoch.h"
#include "engine/epoch/background.h"
#include "engine/grains/grain_sets.h"
#include "engine/ranks/group.h"
#include "engine/epoch/load_parent.h"
#include "engine/epoch/redundancy.h"
#include "engine/epoch/retention.h"
#include "engine/epoch/ask_ranks.h"
#include "engine/memory/tiles.h"
#include "engine/epoch/tip.h"

static void note_blocked(struct varve *v, uint64_t start)
{
	pthread_mutex_lock(&v->tiles->lock);
	v->tiles->meters.blocked_ns = vv_clock_ns() - start;
	pthread_mutex_unlock(&v->tiles->lock);
}

/* All steps that can fail before there is an epoch. */
static int prepare(struct varve *v)
{
	uint64_t wants = v->ctx.group ? vv_retention_is_due(v) : 0;
	int rc = vv_background_reserve(v->background);

	if (rc == 0)
		rc = vv_store_held(v->ctx.writer);
	rc = vv_redundancy_prepare(v, rc);
	rc = vv_load_parent_run(v, rc);
	if (rc == 0 && v->ctx.async)
		rc = vv_background_ready(v->background);
	if (!v->ctx.group)
		return rc;
	rc = vv_group_sum(v->ctx.group, v->ctx.group->comm, rc, &wants, 1);
	if (rc == 0 && wants)
		rc = vv_group_agree(v->ctx.group, v->ctx.group->comm, vv_retention_reclaim(v));
	if (rc == 0 && wants)
		rc = vv_group_agree(v->ctx.group, v->ctx.group->comm, vv_load_parent_run(v, 0));
	return rc ? rc : vv_tip_agree_on_numbers(v);
}

/* The step in which only the program's own thread may communicate. With threads, all ranks only
 * agree that there is an epoch to be stored. */
static int ask_ranks(struct varve *v, struct vv_layer_writer *p, int rc)
{
	if (v->ctx.async && v->ctx.group->threaded)
		return vv_group_agree(v->ctx.group, v->ctx.group->comm, rc);
	return vv_ask_ranks_run(p, rc);
}

static int capture(struct vv_layer_writer *p)
{
	size_t chunks = 0;
	int rc = vv_grain_sets_take(p);
	uint64_t fine = p->st.bytes_dirty;

	if (rc == 0)
		rc = vv_capture_take(p, &chunks);
	p->paged = p->st.bytes_dirty - fine;
	p->chunks += chunks;
	p->captured = rc == 0;
	if (rc)
		vv_epoch_abandon(p);
	return rc;
}

static int take(struct varve *v, struct vv_layer_writer **out)
{
	struct vv_layer_writer *p = NULL;
	int rc = vv_epoch_new(v, &p);

	if (v->ctx.group)
		vv_ask_ranks_expect(v, true);
	if (rc == 0)
		rc = capture(p);
	if (v->ctx.group) {
		bool taken = rc == 0;

		vv_test_point("captured");
		if (p)
			rc = ask_ranks(v, p, rc);
		else
			rc = vv_group_agree(v->ctx.group, v->ctx.group->comm, rc);
		if (rc && taken) {
			vv_epoch_abandon(p);
			vv_epoch_forget_shared(v);
		}
	}
	if (rc && v->ctx.group)
		vv_ask_ranks_expect(v, false);
	if (rc)
		vv_epoch_free(p);
	else
		*out = p;
	return rc;
}

int vv_checkpoint_run(struct varve *v)
{
	uint64_t start = vv_clock_ns();
	struct vv_layer_writer *p = NULL;
	int rc = prepare(v);

	VV_HELD(&v->entry.lock);
	if (rc)
		return rc;
	vv_test_point("agreed");
	vv_tip_sweep(v);
	rc = take(v, &p);
	if (rc)
		return rc;
	note_blocked(v, start);
	if (!v->ctx.async)
		return vv_background_run(p);
	vv_background_start(p);
	vv_capture_wait(v);
	note_blocked(v, start);
	return 0;
}
