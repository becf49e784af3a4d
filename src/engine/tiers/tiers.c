/* Each tier has a thread with the lowest priority. It sleeps until an epoch is due, and copies it.
 * With a nearest store that the ranks share, a newer due epoch takes the place of an older one. If
 * ranks have stores of their own, tiers_ranks.c decides which epoch is due. A failed copy is tried
 * again with the next epoch.
 *
 * The threads use handles of their own for both stores, since the session's may be reading. */
#include "engine/tiers/tiers.h"
#include "engine/tiers/tiers_priv.h"
#include "base/block_signals.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/event.h"
#include "base/held.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/test_point.h"
#include "core/plan/interval.h"
#include "engine/context.h"
#include "engine/lineage/catalog.h"
#include "engine/options.h"
#include "engine/ranks/group.h"
#include "engine/tier_list.h"
#include "engine/upkeep/copy_lineage.h"
#include "engine/upkeep/gc.h"
#include "track/thread.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { LOWEST = 19 }; /* priority, by nice(2) */

struct vv_tiers *vv_tiers_of(const struct varve *v)
{
	return v->ctx.tiers;
}

bool vv_tiers_is_rank_0(const struct varve *v)
{
	return !v->ctx.group || v->ctx.rank == 0;
}

int vv_tiers_agree(struct varve *v, int rc)
{
	return v->ctx.group ? vv_group_agree(v->ctx.group, v->ctx.group->comm, rc) : rc;
}

bool vv_tiers_nearest_is_local(const struct varve *v)
{
	return v->ctx.group && v->ctx.group->has_local_stores;
}

bool vv_tiers_rank_copies(const struct varve *v)
{
	return vv_tiers_nearest_is_local(v) ? vv_group_leads_storage_node(v->ctx.group) : vv_tiers_is_rank_0(v);
}

void vv_tiers_lock(struct vv_tiers *t, sigset_t *mask)
{
	vv_block_signals_brief(mask);
	pthread_mutex_lock(&t->lock);
}

void vv_tiers_unlock(struct vv_tiers *t, const sigset_t *mask)
{
	pthread_mutex_unlock(&t->lock);
	vv_block_signals_end(mask);
}

/* ---- one copy -------------------------------------------------------------------------------- */

static int copy_shared(struct vv_tier *r, uint64_t epoch, struct vv_store *from, struct vv_store *to, struct vv_pool *pool)
{
	struct vv_lineage lin;
	struct vv_copy_request q = { .from = &lin, .to = to, .base = r->newest, .stop = &r->all->stop, .pool = pool };
	int rc = vv_catalog_open(from, r->all->name, false, &lin);
	bool copied;

	return rc ? rc : vv_copy_lineage_epoch(&q, epoch, &copied);
}

static uint64_t bytes_of(const struct vv_listing *l)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < l->n_layers; i++)
		sum += l->layer[i].size;
	return sum;
}

/* Drops epochs beyond `keep`, and takes the space back if they were a quarter of the store. */
static int drop_old(struct vv_tier *r, const struct vv_lineage *lin)
{
	struct vv_gc_report report;
	struct vv_listing l = { 0 };
	int rc = vv_catalog_list(lin, 0, &l);

	for (size_t i = 0; rc == 0 && i + r->set->keep < l.n_epochs; i++) {
		uint64_t bytes = 0;

		rc = vv_catalog_drop_epoch(lin, l.epoch[i], &bytes);
		r->dropped += bytes;
	}
	if (rc == 0 && r->dropped * 4 > bytes_of(&l)) {
		vv_test_point("tier-gc");
		rc = vv_gc_run(lin, 0, VV_GC_CHEAP, NULL, &report);
		r->dropped = rc ? r->dropped : 0;
	}
	vv_catalog_listing_fini(&l);
	return rc;
}

static int apply_keep(struct vv_tier *r, struct vv_store *to)
{
	const char *name = r->all->name;
	struct vv_lock *lock = NULL;
	char object[VV_NAME_MAX];
	struct vv_lineage lin;
	int rc;

	if (!r->set->keep)
		return 0;
	vv_name_lock(object, name);
	rc = vv_store_lock(to, object, &lock);
	if (rc == 0)
		rc = vv_catalog_open(to, name, false, &lin);
	if (rc == 0)
		rc = drop_old(r, &lin);
	vv_store_unlock(lock);
	return rc;
}

static struct vv_store_options options_of(const struct vv_tier *r, bool create)
{
	struct vv_store_options opt = vv_options_store(&r->all->v->ctx.conf, create);

	opt.bandwidth = r->set->bandwidth;
	return opt;
}

static int copy_to_tier(struct vv_tier *r, uint64_t epoch)
{
	struct vv_store_options opt = options_of(r, true), plain = vv_options_store(&r->all->v->ctx.conf, false);
	struct vv_store *from = NULL, *to = NULL;
	struct vv_pool *pool = NULL;
	int rc = vv_store_open(r->all->nearest, &plain, &from);

	vv_test_point("tier-begun");
	if (rc == 0)
		rc = vv_store_open(r->set->url, &opt, &to);
	if (rc == 0)
		rc = vv_pool_new(0, &pool);
	if (rc == 0)
		rc = (r->all->local_nearest ? vv_tiers_ranks_copy : copy_shared)(r, epoch, from, to, pool);
	vv_test_point("tier-copied");
	if (rc == 0 && vv_tiers_is_rank_0(r->all->v) && apply_keep(r, to) < 0)
		vv_log_warn("tier '%s' has epoch %" PRIu64 ", but older ones were not removed: %s", r->set->url, epoch, vv_err_last());
	vv_test_point("tier-kept");
	vv_pool_free(pool);
	vv_store_close(to);
	vv_store_close(from);
	return rc;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void warn(const struct vv_tier *r, uint64_t epoch)
{
	vv_log_warn("tier '%s' has no copy of epoch %" PRIu64 " of '%s' yet, the next epoch is tried: %s", r->set->url, epoch,
		    r->all->name, vv_err_last());
}

/* The caller holds the lock. An epoch that another process has dropped is no longer due. */
static void conclude(struct vv_tier *r, uint64_t epoch, int rc, double began)
{
	VV_HELD(&r->all->lock);
	r->copying = 0;
	r->idle_since = 0;
	r->ended = rc <= 0 ? vv_clock_s() : r->ended; /* else the next epoch is due */
	if (rc == 0 && vv_tiers_is_rank_0(r->all->v)) { /* the others have copied their parts only */
		r->cost = r->ended - began;
		r->newest = epoch > r->newest ? epoch : r->newest;
	}
	if (r->due == epoch && (rc >= 0 || (rc == VV_ENOENT && !r->all->local_nearest)))
		r->due = 0;
	else if (r->due == epoch)
		r->failed = true;
}

static void *run_thread(void *arg)
{
	struct vv_tier *r = arg;
	struct vv_tiers *t = r->all;
	sigset_t mask;

	vv_thread_mark_own();
	setpriority(PRIO_PROCESS, (id_t)gettid(), LOWEST); /* of this thread */
	vv_tiers_lock(t, &mask);
	while (!atomic_load(&t->stop)) {
		uint32_t looked = vv_event_count(&t->change);
		uint64_t epoch = r->failed ? 0 : r->due;
		double began = vv_clock_s();
		bool no_warning;
		int rc;

		r->copying = epoch;
		if (epoch)
			vv_tiers_ranks_take(r);
		vv_tiers_unlock(t, &mask);
		if (epoch) {
			rc = copy_to_tier(r, epoch);
			no_warning = rc >= 0 || r->warned == epoch || atomic_load(&t->stop);
			if (!no_warning)
				warn(r, epoch);
			r->warned = no_warning ? r->warned : epoch;
		} else {
			rc = 0;
			vv_event_wait_for(&t->change, looked, INFINITY);
		}
		vv_tiers_lock(t, &mask);
		if (epoch) {
			conclude(r, epoch, rc, began);
			vv_event_signal(&t->change);
		}
	}
	vv_tiers_unlock(t, &mask);
	return NULL;
}

void vv_tiers_wake(struct vv_tier *r)
{
	int rc = r->started || !r->due ? 0 : vv_thread_start(&r->thread, run_thread, r);

	VV_HELD(&r->all->lock);
	r->started |= r->due && rc == 0;
	if (rc && r->warned != r->due) {
		vv_thread_not_started(rc, "copies epochs to a tier");
		warn(r, r->due);
		r->warned = r->due;
	}
	r->failed = rc != 0;
}

bool vv_tiers_is_due(const struct vv_tier *r, uint64_t epoch)
{
	struct vv_interval daly = { .mtbf = r->set->mtbf };

	VV_HELD(&r->all->lock);
	if (r->all->closing && r->set->last)
		return epoch > r->newest;
	if (r->set->mtbf > 0)
		return !r->all->closing && vv_clock_s() >= r->ended + vv_interval_after(&daly, r->cost);
	return epoch / r->set->every > r->last_due / r->set->every;
}

void vv_tiers_offer(struct varve *v, uint64_t epoch)
{
	struct vv_tiers *t = vv_tiers_of(v);
	sigset_t mask;

	if (!t || t->local_nearest || !vv_tiers_is_rank_0(v))
		return;
	t->committed = epoch;
	vv_tiers_lock(t, &mask);
	for (size_t i = 0; i < t->n; i++) {
		struct vv_tier *r = &t->tier[i];

		if (vv_tiers_is_due(r, epoch))
			r->due = r->last_due = epoch;
		vv_tiers_wake(r);
	}
	vv_event_signal(&t->change);
	vv_tiers_unlock(t, &mask);
}

bool vv_tiers_needs(struct varve *v, uint64_t epoch)
{
	struct vv_tiers *t = vv_tiers_of(v);
	bool needed = false;
	sigset_t mask;

	if (!t)
		return false;
	if (t->local_nearest)
		return vv_tiers_ranks_needs(&t->plan, epoch);
	vv_tiers_lock(t, &mask);
	for (size_t i = 0; i < t->n; i++)
		needed |= t->tier[i].due == epoch || t->tier[i].copying == epoch;
	vv_tiers_unlock(t, &mask);
	return needed;
}

/* ---- opening --------------------------------------------------------------------------------- */

int vv_tiers_open(struct varve *v, const char *url)
{
	struct vv_tier_list list;
	struct vv_tiers *t = NULL;
	int rc = vv_tier_list_read(&v->ctx.conf, url, &list);

	if (rc == 0 && list.n) {
		t = vv_mem_new(1, sizeof(*t));
		rc = t ? 0 : VV_ENOMEM;
	}
	if (!t) {
		vv_tier_list_fini(&list);
		return rc;
	}
	v->ctx.tiers = t;
	t->v = v;
	t->list = list;
	t->n = list.n;
	pthread_mutex_init(&t->lock, NULL);
	for (size_t i = 0; i < t->n; i++) {
		t->tier[i].all = t;
		t->tier[i].set = &t->list.v[i];
	}
	t->nearest = vv_tier_list_absolute(url);
	return t->nearest ? 0 : VV_ENOMEM;
}

int vv_tiers_make_store(struct vv_tier *r)
{
	struct vv_store_options opt = options_of(r, true);

	return r->store ? 0 : vv_store_open(r->set->url, &opt, &r->store);
}

int vv_tiers_open_lineage(struct vv_tier *r, const char *name)
{
	struct vv_store_options opt = options_of(r, false);
	int rc = r->store ? 0 : vv_store_open(r->set->url, &opt, &r->store);

	if (rc == 0 && !r->has_lineage)
		rc = vv_catalog_open(r->store, name, false, &r->lineage);
	if (rc == VV_ENOENT) {
		vv_err_clear();
		return 0;
	}
	r->has_lineage = rc == 0;
	return rc;
}

int vv_tiers_look(struct vv_tier *r, const char *name, uint64_t before, uint64_t *newest)
{
	int rc = vv_tiers_open_lineage(r, name);

	*newest = 0;
	if (rc == 0 && r->has_lineage)
		rc = vv_catalog_newest(&r->lineage, before, newest);
	if (rc == 0 && r->has_lineage)
		rc = vv_catalog_highest(&r->lineage, &r->highest);
	vv_err_save(rc, &r->trouble);
	return rc == VV_ENOMEM ? rc : 0;
}

static int check_id(const struct vv_tier *r, const uint8_t id[16], const char *other)
{
	if (memcmp(r->lineage.id, id, sizeof(r->lineage.id)) == 0)
		return 0;
	return vv_err_set(VV_EMISMATCH, "tier '%s' has another lineage '%s', which is not a copy of the one in '%s': give one of them another name, or another store",
			  r->set->url, r->lineage.name, other);
}

/* Each store can be one, and is another one. */
static int check_stores(const struct varve *v, const struct vv_tiers *t)
{
	for (size_t i = 0; i < t->n; i++) {
		if (t->tier[i].trouble.code == VV_EINVAL && t->tier[i].set->url[0] != '/') /* a path may become a folder */
			return vv_err_set(VV_EINVAL, "tiers: %s", t->tier[i].trouble.message);
		if (vv_store_is_same(t->tier[i].store, v->ctx.store))
			return vv_err_set(VV_EINVAL, "tiers: store '%s' is the store of the session itself, '%s': leave it out, or name another one",
					  t->tier[i].set->url, t->nearest);
		for (size_t k = 0; k < i; k++)
			if (vv_store_is_same(t->tier[i].store, t->tier[k].store))
				return vv_err_set(VV_EINVAL, "tiers: '%s' and '%s' are one store: leave one out", t->tier[k].set->url,
						  t->tier[i].set->url);
	}
	return 0;
}

/* All stores that have the lineage have the same one. *id: that one; NULL: none has it. */
static int compare(struct vv_tiers *t, const struct vv_lineage *own, const struct vv_lineage **id)
{
	int rc = 0;

	*id = own;
	for (size_t i = 0; rc == 0 && i < t->n; i++) {
		const struct vv_tier *r = &t->tier[i];

		if (!r->has_lineage)
			continue;
		if (*id)
			rc = check_id(r, (*id)->id, (*id)->store->url);
		else
			*id = &r->lineage;
	}
	return rc;
}

int vv_tiers_check_reached(const struct varve *v, bool has_epochs)
{
	const struct vv_tiers *t = vv_tiers_of(v);

	for (size_t i = 0; t && i < t->n; i++) {
		const struct vv_tier *r = &t->tier[i];

		if (!r->trouble.code)
			continue;
		if (!has_epochs)
			return vv_err_set(VV_EIO, "store '%s' has no epoch, and tier '%s', which may have some, cannot be reached: try again when it answers, or leave it out of the option tiers: %s",
					  t->nearest, r->set->url, r->trouble.message);
		vv_log_warn("tier '%s' cannot be reached, it is tried again with the next epoch: %s", r->set->url, r->trouble.message);
	}
	return 0;
}

int vv_tiers_adopt(struct varve *v, const char *lineage)
{
	struct vv_tiers *t = vv_tiers_of(v);
	const struct vv_lineage *id;
	struct vv_lineage own, made;
	uint64_t epoch = 0;
	int rc = 0, found;

	if (!t)
		return 0;
	for (size_t i = 0; rc == 0 && i < t->n; i++)
		rc = vv_tiers_look(&t->tier[i], lineage, UINT64_MAX, &t->tier[i].newest);
	if (rc == 0)
		rc = check_stores(v, t);
	if (rc)
		return rc;
	found = vv_catalog_open(v->ctx.store, lineage, false, &own);
	if (found == 0)
		rc = vv_catalog_newest(&own, UINT64_MAX, &epoch);
	else if (found != VV_ENOENT)
		return found;
	if (rc == 0 && !vv_tiers_nearest_is_local(v)) /* else another rank's store may have some */
		rc = vv_tiers_check_reached(v, epoch > 0);
	if (rc == 0)
		rc = compare(t, found == 0 ? &own : NULL, &id);
	if (rc == 0 && found && id)
		rc = vv_catalog_adopt(v->ctx.store, lineage, id->id, id->created_ns, &made);
	return rc;
}

uint64_t vv_tiers_highest(const struct varve *v)
{
	const struct vv_tiers *t = vv_tiers_of(v);
	uint64_t highest = 0;

	for (size_t i = 0; t && i < t->n; i++) {
		highest = t->tier[i].highest > highest ? t->tier[i].highest : highest;
		highest = t->tier[i].newest > highest ? t->tier[i].newest : highest;
	}
	return highest;
}

/* Of the epochs from the newest multiple of `every` on, the first one is due. */
static void mark_due(struct vv_tier *r, const struct vv_listing *l)
{
	uint64_t newest = l->n_epochs ? l->epoch[l->n_epochs - 1] : 0, from = newest - newest % r->set->every;
	size_t i;

	r->last_due = r->newest;
	if (newest <= r->newest || newest / r->set->every <= r->newest / r->set->every)
		return;
	VV_SEARCH(i, 0, l->n_epochs, l->epoch[i] < from);
	r->due = r->last_due = l->epoch[i];
}

void vv_tiers_start(struct varve *v)
{
	struct vv_tiers *t = vv_tiers_of(v);
	struct vv_listing l = { 0 };
	sigset_t mask;

	if (!t)
		return;
	memcpy(t->name, v->ctx.lineage.name, sizeof(t->name));
	t->local_nearest = vv_tiers_nearest_is_local(v);
	if (vv_tiers_is_rank_0(v) && vv_catalog_list(&v->ctx.lineage, 0, &l) < 0)
		vv_err_clear(); /* the next checkpoint is due */
	vv_tiers_lock(t, &mask);
	for (size_t i = 0; vv_tiers_is_rank_0(v) && i < t->n; i++) {
		mark_due(&t->tier[i], &l);
		if (!t->local_nearest)
			vv_tiers_wake(&t->tier[i]);
	}
	vv_tiers_unlock(t, &mask);
	vv_catalog_listing_fini(&l);
	if (t->local_nearest)
		vv_tiers_ranks_assign_first(v);
}

/* ---- closing --------------------------------------------------------------------------------- */

/* The caller holds the lock. A tier that has failed is not waited for. */
static struct vv_tier *find_unfinished(struct vv_tiers *t)
{
	VV_HELD(&t->lock);
	for (size_t i = 0; i < t->n; i++)
		if (t->tier[i].copying || (t->tier[i].due && !t->tier[i].failed))
			return &t->tier[i];
	return NULL;
}

/* Waits for the copies of this rank. */
static void await_copies(struct varve *v, double end)
{
	struct vv_tiers *t = vv_tiers_of(v);
	uint64_t epoch;
	struct vv_tier *r;
	sigset_t mask;

	vv_tiers_lock(t, &mask);
	while ((r = find_unfinished(t)) && vv_clock_s() < end) {
		uint32_t looked = vv_event_count(&t->change);

		vv_tiers_unlock(t, &mask);
		vv_event_wait_for(&t->change, looked, end - vv_clock_s());
		vv_tiers_lock(t, &mask);
	}
	epoch = r && r->due ? r->due : r ? r->copying : 0;
	vv_tiers_unlock(t, &mask);
	if (r)
		vv_log_warn("tier '%s' has no copy of epoch %" PRIu64 " of '%s': it was not complete when the time of the option timeout ended; the next session completes it",
			    r->set->url, epoch, v->ctx.lineage.name);
}

/* From now on the last epoch is due, too. A tier that has failed is tried once more. */
static void begin_closing(struct vv_tiers *t)
{
	sigset_t mask;

	vv_tiers_lock(t, &mask);
	t->closing = t->committed > 0;
	for (size_t i = 0; i < t->n; i++)
		vv_tiers_wake(&t->tier[i]);
	vv_event_signal(&t->change);
	vv_tiers_unlock(t, &mask);
}

/* Rank 0 waits for the layers of the others. They wait for a shorter time, so that it learns of
 * their failures first. Both end before the time limit of the next operation among the ranks. */
static void finish_local(struct varve *v, bool together, double end)
{
	double now = vv_clock_s();

	if (!vv_tiers_is_rank_0(v))
		await_copies(v, now + 0.8 * (end - now));
	if (together)
		vv_tiers_ranks_finish(v);
	if (vv_tiers_is_rank_0(v))
		await_copies(v, now + 0.9 * (end - now));
}

void vv_tiers_finish(struct varve *v, bool together)
{
	struct vv_tiers *t = vv_tiers_of(v);
	double end = vv_clock_s() + vv_conf_real(&v->ctx.conf, "timeout");

	if (!t)
		return;
	begin_closing(t);
	if (!t->local_nearest) {
		if (t->committed)
			vv_tiers_offer(v, t->committed);
		await_copies(v, end);
		return;
	}
	finish_local(v, together, end);
	if (together && vv_tiers_ranks_assign_last(v)) /* it was not due before, or another one was being copied */
		finish_local(v, together, end);
}

void vv_tiers_ignore_last(struct varve *v)
{
	struct vv_tiers *t = vv_tiers_of(v);

	for (size_t i = 0; t && i < t->n; i++)
		t->list.v[i].last = false;
}

static void end_threads(struct vv_tiers *t)
{
	sigset_t mask;

	vv_tiers_lock(t, &mask);
	atomic_store(&t->stop, true);
	vv_event_signal(&t->change);
	vv_tiers_unlock(t, &mask);
	for (size_t i = 0; i < t->n; i++)
		if (t->tier[i].started)
			pthread_join(t->tier[i].thread, NULL);
}

void vv_tiers_free(struct varve *v)
{
	struct vv_tiers *t = vv_tiers_of(v);

	if (!t)
		return;
	if (v->entry.pid == getpid()) {
		end_threads(t);
		pthread_mutex_destroy(&t->lock);
	}
	for (size_t i = 0; i < t->n; i++) {
		vv_store_close(t->tier[i].store);
		if (v->entry.pid != getpid()) /* a thread may have been changing the rest */
			continue;
		vv_reachable_fini(&t->tier[i].due_layers);
		vv_reachable_fini(&t->tier[i].copying_layers);
	}
	vv_tier_list_fini(&t->list);
	vv_mem_free(t->nearest);
	vv_mem_free(t);
	v->ctx.tiers = NULL;
}

void vv_tiers_each(struct varve *v, void (*fn)(void *arg, const char *url, uint64_t newest), void *arg)
{
	struct vv_tiers *t = vv_tiers_of(v);

	for (size_t i = 0; t && i < t->n; i++) {
		uint64_t newest;
		sigset_t mask;

		vv_tiers_lock(t, &mask);
		newest = t->tier[i].newest;
		vv_tiers_unlock(t, &mask);
		fn(arg, t->tier[i].set->url, newest);
	}
}
