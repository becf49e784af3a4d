#include "engine/tiers/tiers_ranks.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/held.h"
#include "base/log.h"
#include "engine/context.h"
#include "engine/ranks/group.h"
#include "engine/ranks/hosts.h"
#include "engine/tiers/tiers.h"
#include "engine/tiers/tiers_priv.h"
#include "engine/upkeep/copy_from_nodes.h"
#include "engine/upkeep/gc_ranks.h"
#include <inttypes.h>
#include <math.h>

/* Seconds between two looks for the layers of the other storage nodes. */
#define PAUSE_LEAST 0.02
#define PAUSE_MOST 4.0
/* Seconds that rank 0 waits for layers while no other rank copies any. A client of NFS may show an
 * old folder for 60 s. */
#define IDLE_MOST 90.0

/* ---- the plan -------------------------------------------------------------------------------- */

static void add_needed(struct vv_tiers_plan *p, uint64_t epoch)
{
	if (epoch && !vv_tiers_ranks_needs(p, epoch))
		p->needed[p->n++] = epoch;
}

struct vv_tiers_fate vv_tiers_ranks_fate(const struct varve *v)
{
	struct vv_tiers *t = vv_tiers_of(v);
	struct vv_tiers_fate f = { 0 };
	sigset_t mask;

	if (!t)
		return f;
	vv_tiers_lock(t, &mask);
	for (size_t i = 0; i < t->n; i++) {
		const struct vv_tier *r = &t->tier[i];

		f.failed |= (uint64_t)(r->due && r->failed) << i;
		f.busy |= (uint64_t)((r->due || r->copying) && !vv_tiers_is_rank_0(v)) << i;
	}
	vv_tiers_unlock(t, &mask);
	return f;
}

/* The caller holds the lock. The next epoch is due in place of the one that is given up. A thread
 * that waits for the layers of that one sees that it is no longer due. */
static void give_up(struct vv_tier *r)
{
	VV_HELD(&r->all->lock);
	r->due = 0;
	r->last_due = r->newest;
	r->ended = -INFINITY;
	r->idle_since = 0;
	vv_event_signal(&r->all->change);
}

/* The caller holds the lock. */
static void note_others(struct vv_tier *r, bool copy)
{
	VV_HELD(&r->all->lock);
	if (copy || !r->copying)
		r->idle_since = 0;
	else if (r->idle_since == 0)
		r->idle_since = vv_clock_s();
}

void vv_tiers_ranks_plan(struct varve *v, uint64_t epoch, const struct vv_tiers_fate *others, struct vv_tiers_plan *out)
{
	struct vv_tiers *t = vv_tiers_of(v);
	sigset_t mask;

	*out = (struct vv_tiers_plan){ 0 };
	if (!t)
		return;
	vv_tiers_lock(t, &mask);
	for (size_t i = 0; i < t->n; i++) {
		struct vv_tier *r = &t->tier[i];
		bool gave_up = (r->due || r->copying) && others->failed >> i & 1;

		add_needed(out, r->due);
		add_needed(out, r->copying);
		note_others(r, others->busy >> i & 1);
		if (gave_up)
			give_up(r);
		if ((gave_up || (!r->due && !r->copying)) && vv_tiers_is_due(r, epoch)) {
			out->due |= (uint64_t)1 << i;
			r->last_due = epoch;
		}
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

	if (!t || !vv_tiers_nearest_is_local(v))
		return;
	t->committed = epoch;
	t->plan = *p;
	t->planned = p->due ? epoch : 0;
}

/* ---- the layers of each rank ----------------------------------------------------------------- */

/* Layers that no thread has taken over belong to an epoch that was given up. */
static void set_due(struct vv_tier *r, uint64_t epoch, struct vv_reachable *layers)
{
	struct vv_reachable old;
	sigset_t mask;

	vv_tiers_lock(r->all, &mask);
	old = r->due_layers;
	r->due_layers = *layers;
	r->has_due_layers = true;
	r->due = epoch;
	vv_tiers_wake(r);
	vv_event_signal(&r->all->change);
	vv_tiers_unlock(r->all, &mask);
	vv_reachable_fini(&old);
}

static void warn_of(struct vv_tier *r, uint64_t epoch)
{
	sigset_t mask;

	vv_log_warn("tier '%s' gets no copy of epoch %" PRIu64 " of '%s', the next epoch is tried: %s", r->set->url, epoch, r->all->name,
		    vv_err_last());
	vv_tiers_lock(r->all, &mask);
	give_up(r);
	vv_tiers_unlock(r->all, &mask);
}

/* All ranks call it together. If it fails, it fails on all. */
static void assign(struct varve *v, struct vv_tier *r, uint64_t epoch)
{
	struct vv_reachable layers;
	struct vv_err_state error;
	int rc;

	vv_err_save(0, &error);
	rc = vv_gc_ranks_needs(&v->ctx, epoch, &layers);
	if (rc == 0 && vv_tiers_rank_copies(v))
		set_due(r, epoch, &layers);
	else if (rc && vv_tiers_is_rank_0(v))
		warn_of(r, epoch);
	if (rc || !vv_tiers_rank_copies(v))
		vv_reachable_fini(&layers);
	vv_err_restore(&error);
}

void vv_tiers_ranks_assign(struct varve *v)
{
	struct vv_tiers *t = vv_tiers_of(v);
	uint64_t epoch = t ? t->planned : 0;

	if (!epoch || v->ctx.group->side->broken)
		return;
	t->planned = 0;
	for (size_t i = 0; i < t->n; i++)
		if (t->plan.due & (uint64_t)1 << i)
			assign(v, &t->tier[i], epoch);
}

void vv_tiers_ranks_assign_first(struct varve *v)
{
	struct vv_tiers *t = vv_tiers_of(v);
	uint64_t due[VV_TIER_LIST_MAX] = { 0 };

	for (size_t i = 0; i < t->n; i++) {
		due[i] = t->tier[i].due;
		t->tier[i].due = 0;
	}
	if (vv_comm_bcast(v->ctx.group->side, due, sizeof(due), 0) < 0)
		return; /* the session's next call reports it */
	for (size_t i = 0; i < t->n; i++) {
		if (!due[i])
			continue;
		if (vv_group_spread_commit(&v->ctx, due[i]) < 0)
			vv_err_clear(); /* assign reports it */
		assign(v, &t->tier[i], due[i]);
	}
}

/* ---- opening and closing --------------------------------------------------------------------- */

/* vv_tiers_check_reached reports a tier that rank 0 cannot reach. */
static int check_one(struct varve *v, struct vv_tier *r)
{
	struct vv_group *g = v->ctx.group;
	uint64_t reached = vv_tiers_is_rank_0(v) && vv_tiers_make_store(r) == 0;
	bool shared = true;
	int rc = vv_group_sum(g, g->comm, 0, &reached, 1);

	vv_err_clear();
	if (rc || !reached)
		return rc;
	rc = vv_tiers_open_lineage(r, v->ctx.lineage.name);
	vv_err_clear();
	rc = vv_hosts_share(g, rc && !r->store ? NULL : r->store, v->ctx.lineage.name, &shared);
	if (rc && !g->comm->broken) { /* the tier is full, for example: the nodes may have all that a restart needs */
		if (vv_tiers_is_rank_0(v))
			vv_log_warn("tier '%s' cannot be checked: %s", r->set->url, vv_err_last());
		vv_err_clear();
		return 0;
	}
	if (rc || shared)
		return rc;
	return vv_err_set(VV_EINVAL, "tiers: not all ranks reach one store as '%s': name a store that they share, such as a folder of a shared file system",
			  r->set->url);
}

int vv_tiers_ranks_check(struct varve *v)
{
	struct vv_tiers *t = vv_tiers_of(v);
	int rc = 0;

	for (size_t i = 0; t && vv_tiers_nearest_is_local(v) && rc == 0 && i < t->n; i++)
		rc = check_one(v, &t->tier[i]);
	return rc;
}

void vv_tiers_ranks_finish(struct varve *v)
{
	struct vv_tiers *t = vv_tiers_of(v);
	struct vv_tiers_fate f = vv_tiers_ranks_fate(v);
	uint64_t failed[VV_TIER_LIST_MAX] = { 0 }, busy[VV_TIER_LIST_MAX] = { 0 };
	sigset_t mask;

	for (size_t i = 0; i < t->n; i++) {
		failed[i] = f.failed >> i & 1;
		busy[i] = f.busy >> i & 1;
	}
	if (vv_comm_allreduce(v->ctx.group->comm, failed, t->n, VARVE_SUM) < 0 ||
	    vv_comm_allreduce(v->ctx.group->comm, busy, t->n, VARVE_SUM) < 0) {
		vv_err_clear();
		return;
	}
	vv_tiers_lock(t, &mask);
	for (size_t i = 0; vv_tiers_is_rank_0(v) && i < t->n; i++) {
		note_others(&t->tier[i], busy[i]);
		if (failed[i] && (t->tier[i].due || t->tier[i].copying))
			give_up(&t->tier[i]);
	}
	vv_event_signal(&t->change); /* rank 0 looks at once */
	vv_tiers_unlock(t, &mask);
}

bool vv_tiers_ranks_assign_last(struct varve *v)
{
	struct vv_tiers *t = vv_tiers_of(v);
	struct vv_tiers_plan *p = &t->plan;
	uint64_t last[2] = { 0 };

	if (vv_tiers_is_rank_0(v) && v->tip.epoch) {
		vv_tiers_ranks_plan(v, v->tip.epoch, &(struct vv_tiers_fate){ 0 }, p);
		last[0] = v->tip.epoch;
		last[1] = p->due;
	}
	if (vv_comm_bcast(v->ctx.group->comm, last, sizeof(last), 0) < 0) {
		vv_err_clear();
		return false;
	}
	p->due = last[1];
	t->planned = p->due ? last[0] : 0;
	vv_tiers_ranks_assign(v);
	return p->due;
}

/* ---- a copy ---------------------------------------------------------------------------------- */

void vv_tiers_ranks_take(struct vv_tier *r)
{
	VV_HELD(&r->all->lock);
	if (!r->has_due_layers)
		return;
	vv_reachable_fini(&r->copying_layers);
	r->copying_layers = r->due_layers;
	r->due_layers = (struct vv_reachable){ 0 };
	r->has_due_layers = false;
}

struct waiting {
	struct vv_tier *tier;
	uint64_t epoch;
	double pause;
	bool gave_up;
};

/* Has the epoch been given up? If no other rank copies, the layers that are not there will not
 * come: they were removed. */
static bool is_given_up(struct waiting *w)
{
	struct vv_tier *r = w->tier;
	sigset_t mask;

	vv_tiers_lock(r->all, &mask);
	if (r->due == w->epoch && r->idle_since > 0 && vv_clock_s() > r->idle_since + IDLE_MOST)
		give_up(r);
	w->gave_up = r->due != w->epoch;
	vv_tiers_unlock(r->all, &mask);
	return w->gave_up;
}

/* The others copy their layers meanwhile. */
static int wait_for_others(void *arg)
{
	struct waiting *w = arg;
	struct vv_tiers *t = w->tier->all;
	uint32_t looked = vv_event_count(&t->change);

	if (!is_given_up(w) && !atomic_load(&t->stop)) {
		vv_event_wait_for(&t->change, looked, w->pause);
		w->pause = w->pause * 2 < PAUSE_MOST ? w->pause * 2 : PAUSE_MOST;
		return 0;
	}
	return vv_err_set(VV_EBUSY, "not all ranks have copied their layers");
}

int vv_tiers_ranks_copy(struct vv_tier *r, uint64_t epoch, struct vv_store *from, struct vv_store *to, struct vv_pool *pool)
{
	struct vv_lineage lin;
	struct vv_copy_request q = { .from = &lin, .to = to, .stop = &r->all->stop, .pool = pool };
	struct waiting w = { .tier = r, .epoch = epoch, .pause = PAUSE_LEAST };
	int rc = vv_catalog_open(from, r->all->name, false, &lin);

	if (rc == 0)
		rc = vv_copy_from_nodes_run(&q, epoch, &r->copying_layers);
	if (rc == 0 && vv_tiers_is_rank_0(r->all->v))
		rc = vv_copy_from_nodes_commit(&q, epoch, wait_for_others, &w);
	if (!w.gave_up)
		return rc;
	vv_log_warn("tier '%s' gets no copy of epoch %" PRIu64 " of '%s': layers of other ranks are not there", r->set->url, epoch, r->all->name);
	return 1;
}
