#include "engine/session/tiers_ranks.h"
#include "base/err.h"
#include "base/log.h"
#include "engine/context.h"
#include "engine/ranks/group.h"
#include "engine/session/tiers.h"
#include "engine/session/tiers_priv.h"
#include "engine/upkeep/copy_parts.h"
#include "engine/upkeep/gc_ranks.h"
#include <inttypes.h>

/* Seconds between two looks for the layers of the other storage nodes. */
#define PAUSE_LEAST 0.02
#define PAUSE_MOST 1.0

/* ---- the plan -------------------------------------------------------------------------------- */

static void add_needed(struct vv_tiers_plan *p, uint64_t epoch)
{
	if (epoch && !vv_tiers_ranks_needs(p, epoch))
		p->needed[p->n++] = epoch;
}

void vv_tiers_ranks_plan(struct varve *v, uint64_t epoch, struct vv_tiers_plan *out)
{
	struct vv_tiers *t = vv_tiers_of(v);
	sigset_t mask;

	*out = (struct vv_tiers_plan){ 0 };
	if (!t)
		return;
	vv_tiers_lock(t, &mask);
	for (size_t i = 0; i < t->n; i++) {
		struct vv_tier *r = &t->tier[i];

		if (vv_tiers_is_due(r, epoch)) {
			out->due |= (uint64_t)1 << i;
			r->marked = epoch;
		}
		add_needed(out, r->due);
		add_needed(out, r->copying);
	}
	vv_tiers_unlock(t, &mask);
}

bool vv_tiers_ranks_needs(const struct vv_tiers_plan *p, uint64_t epoch)
{
	for (uint64_t i = 0; i < p->n && i < 2 * VV_TIER_LIST_MAX; i++)
		if (p->needed[i] == epoch)
			return true;
	return false;
}

void vv_tiers_ranks_follow(struct varve *v, uint64_t epoch, const struct vv_tiers_plan *p)
{
	struct vv_tiers *t = vv_tiers_of(v);

	if (!t || !vv_tiers_are_local(v))
		return;
	t->plan = *p;
	t->planned = p->due ? epoch : 0;
}

/* ---- who copies what ------------------------------------------------------------------------- */

/* Parts that no thread has taken over belong to an epoch that this one overtakes. */
static void set_due(struct vv_tier *r, uint64_t epoch, struct vv_reachable *parts)
{
	struct vv_reachable old;
	sigset_t mask;

	vv_tiers_lock(r->all, &mask);
	old = r->parts;
	r->parts = *parts;
	r->has_parts = true;
	r->due = epoch;
	vv_tiers_wake(r);
	vv_event_signal(&r->all->change);
	vv_tiers_unlock(r->all, &mask);
	vv_reachable_fini(&old);
}

/* The next epoch is due in place of this one. */
static void give_up(struct vv_tier *r, uint64_t epoch)
{
	sigset_t mask;

	vv_log_warn("tier '%s' gets no copy of epoch %" PRIu64 " of '%s', the next epoch is tried: %s", r->set->url, epoch, r->all->name,
		    vv_err_last());
	vv_tiers_lock(r->all, &mask);
	r->marked = r->newest;
	vv_tiers_unlock(r->all, &mask);
}

/* All ranks call it together. If it fails, it fails on all. */
static void share(struct varve *v, struct vv_tier *r, uint64_t epoch)
{
	struct vv_reachable parts;
	struct vv_err_state error;
	int rc;

	vv_err_save(0, &error);
	rc = vv_gc_ranks_needs(&v->ctx, epoch, &parts);
	if (rc == 0 && vv_tiers_copies(v))
		set_due(r, epoch, &parts);
	else if (rc && vv_tiers_is_first(v))
		give_up(r, epoch);
	vv_err_restore(&error);
}

void vv_tiers_ranks_share(struct varve *v)
{
	struct vv_tiers *t = vv_tiers_of(v);
	uint64_t epoch = t ? t->planned : 0;

	if (!epoch || v->ctx.group->side->broken)
		return;
	t->planned = 0;
	for (size_t i = 0; i < t->n; i++)
		if (t->plan.due & (uint64_t)1 << i)
			share(v, &t->tier[i], epoch);
}

void vv_tiers_ranks_share_first(struct varve *v)
{
	struct vv_tiers *t = vv_tiers_of(v);
	uint64_t due[VV_TIER_LIST_MAX] = { 0 };

	for (size_t i = 0; i < t->n; i++) {
		due[i] = t->tier[i].due;
		t->tier[i].due = 0;
	}
	if (vv_comm_bcast(v->ctx.group->side, due, sizeof(due), 0) < 0)
		return; /* the session's next call reports it */
	for (size_t i = 0; i < t->n; i++)
		if (due[i])
			share(v, &t->tier[i], due[i]);
}

/* ---- a copy ---------------------------------------------------------------------------------- */

void vv_tiers_ranks_take(struct vv_tier *r)
{
	if (!r->has_parts)
		return;
	vv_reachable_fini(&r->taken);
	r->taken = r->parts;
	r->parts = (struct vv_reachable){ 0 };
	r->has_parts = false;
}

/* A node that fails tries again with the next epoch. So this ends when all have come, when a newer
 * epoch takes the place of this one, or with the session. */
static int await_others(struct vv_tier *r, const struct vv_copy_request *q, uint64_t epoch)
{
	double pause = PAUSE_LEAST;

	for (;;) {
		uint32_t looked = vv_event_count(&r->all->change);
		enum vv_copy_parts_state state;
		int rc = vv_copy_parts_commit(q, epoch, &state);

		if (rc || state != VV_COPY_PARTS_MISSING)
			return rc ? rc : state == VV_COPY_PARTS_OVERTAKEN;
		if (atomic_load(&r->all->stop))
			return vv_err_set(VV_EBUSY, "not all ranks have copied their layers");
		vv_event_wait_for(&r->all->change, looked, pause);
		pause = pause * 2 < PAUSE_MOST ? pause * 2 : PAUSE_MOST;
	}
}

int vv_tiers_ranks_copy(struct vv_tier *r, uint64_t epoch, struct vv_store *from, struct vv_store *to, struct vv_pool *pool)
{
	struct vv_lineage lin;
	struct vv_copy_request q = { .from = &lin, .to = to, .stop = &r->all->stop, .pool = pool };
	int rc = vv_catalog_open(from, r->all->name, false, &lin);

	if (rc == 0)
		rc = vv_copy_parts_run(&q, epoch, &r->taken);
	if (rc == 0 && vv_tiers_is_first(r->all->v))
		rc = await_others(r, &q, epoch);
	return rc;
}
