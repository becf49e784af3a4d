/* Each tier has a thread with the lowest priority. It sleeps until an epoch is due and copies the
 * newest due one; older ones that were overtaken are skipped. After a failure the copy is tried
 * again with the next epoch.
 *
 * The threads use handles of their own for both stores, since the session's may be reading. */
#include "engine/session/tiers.h"
#include "base/block_signals.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/event.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/test_point.h"
#include "core/plan/interval.h"
#include "engine/context.h"
#include "engine/lineage/catalog.h"
#include "engine/options.h"
#include "engine/ranks/group.h"
#include "engine/session/background.h"
#include "engine/session/retention.h"
#include "engine/session/tip.h"
#include "engine/threads.h"
#include "engine/tier_list.h"
#include "engine/upkeep/copy_lineage.h"
#include "engine/upkeep/gc.h"
#include "engine/write/index_cache.h"
#include "track/thread.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { LOWEST = 19 }; /* priority, by nice(2) */

struct tier {
	struct vv_tiers *all;
	const struct vv_tier_setting *set;

	/* for the program's thread: */
	struct vv_store *store; /* NULL: not open, or it does not exist */
	struct vv_lineage lineage;
	bool has_lineage;
	struct vv_err_state trouble; /* of the last attempt to reach it */
	uint64_t highest;

	/* under the lock: */
	uint64_t newest; /* epoch that it is known to have */
	uint64_t due;    /* the newest due epoch that it lacks; 0: none */
	uint64_t marked; /* the last epoch that was due */
	uint64_t copying;
	bool tried;      /* the copy has failed since the last epoch */
	double ended, cost; /* of the last copy */
	bool started;
	pthread_t thread;

	/* for the thread, once it is started: */
	uint64_t warned;  /* the due epoch of the last warning */
	uint64_t dropped; /* bytes of dropped epochs since the last gc */
};

struct vv_tiers {
	struct varve *v;
	struct vv_tier_list list;
	char *nearest; /* its absolute URL */
	char name[VV_NAME_LINEAGE_MAX + 1]; /* of the lineage, once the session is open */
	pthread_mutex_t lock;
	struct vv_event change;
	atomic_bool stop;
	bool reading; /* from a tier in place of the nearest store */
	size_t n;
	struct tier tier[VV_TIER_LIST_MAX];
};

static struct vv_tiers *tiers_of(const struct varve *v)
{
	return v->background->tiers;
}

/* Ranks share all stores. Rank 0 copies, and looks for epochs; the others learn the result. */
static bool is_first(const struct varve *v)
{
	return !v->ctx.group || v->ctx.rank == 0;
}

static int meet(struct varve *v, int rc)
{
	return v->ctx.group ? vv_group_agree(v->ctx.group, v->ctx.group->comm, rc) : rc;
}

/* As in background.c: no handler of the program runs while the lock is held. */
static void take(struct vv_tiers *t, sigset_t *mask)
{
	vv_block_signals_brief(mask);
	pthread_mutex_lock(&t->lock);
}

static void give(struct vv_tiers *t, const sigset_t *mask)
{
	pthread_mutex_unlock(&t->lock);
	vv_block_signals_end(mask);
}

/* ---- one copy -------------------------------------------------------------------------------- */

static int copy(struct tier *r, uint64_t epoch, struct vv_store *from, struct vv_store *to, struct vv_pool *pool)
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
static int drop_old(struct tier *r, const struct vv_lineage *lin)
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

static int apply_keep(struct tier *r, struct vv_store *to)
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

static struct vv_store_options options_of(const struct tier *r, bool create)
{
	struct vv_store_options opt = vv_options_store(&r->all->v->ctx.conf, create);

	opt.bandwidth = r->set->bandwidth;
	return opt;
}

static int bring(struct tier *r, uint64_t epoch)
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
		rc = copy(r, epoch, from, to, pool);
	vv_test_point("tier-copied");
	if (rc == 0 && apply_keep(r, to) < 0)
		vv_log_warn("tier '%s' has epoch %" PRIu64 ", but older ones were not removed: %s", r->set->url, epoch, vv_err_last());
	vv_test_point("tier-kept");
	vv_pool_free(pool);
	vv_store_close(to);
	vv_store_close(from);
	return rc;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void warn(struct tier *r, uint64_t epoch)
{
	vv_log_warn("tier '%s' has no copy of epoch %" PRIu64 " of '%s' yet, it is tried again with the next epoch: %s", r->set->url, epoch,
		    r->all->name, vv_err_last());
}

/* The caller holds the lock. An epoch that another process has dropped is no longer due. */
static void conclude(struct tier *r, uint64_t epoch, int rc, double began)
{
	r->copying = 0;
	r->ended = vv_clock_s();
	if (rc == 0) {
		r->cost = r->ended - began;
		r->newest = epoch > r->newest ? epoch : r->newest;
	}
	if (r->due == epoch && (rc == 0 || rc == VV_ENOENT))
		r->due = 0;
	else if (r->due == epoch)
		r->tried = true;
}

static void *serve(void *arg)
{
	struct tier *r = arg;
	struct vv_tiers *t = r->all;
	sigset_t mask;

	vv_thread_mark_own();
	setpriority(PRIO_PROCESS, (id_t)gettid(), LOWEST); /* of this thread */
	take(t, &mask);
	while (!atomic_load(&t->stop)) {
		uint32_t looked = vv_event_count(&t->change);
		uint64_t epoch = r->tried ? 0 : r->due;
		double began = vv_clock_s();
		bool told;
		int rc;

		r->copying = epoch;
		give(t, &mask);
		if (epoch) {
			rc = bring(r, epoch);
			told = rc == 0 || r->warned == epoch || atomic_load(&t->stop);
			if (!told)
				warn(r, epoch);
			r->warned = told ? r->warned : epoch;
		} else {
			rc = 0;
			vv_event_wait_for(&t->change, looked, INFINITY);
		}
		take(t, &mask);
		if (epoch) {
			conclude(r, epoch, rc, began);
			vv_event_signal(&t->change);
		}
	}
	give(t, &mask);
	return NULL;
}

/* The caller holds the lock. */
static void wake(struct tier *r)
{
	int rc = r->started || !r->due ? 0 : vv_thread_start(&r->thread, serve, r);

	r->started |= r->due && rc == 0;
	if (rc && r->warned != r->due) {
		vv_thread_not_started(rc, "copies epochs to a tier");
		warn(r, r->due);
		r->warned = r->due;
	}
	r->tried = rc != 0;
}

static bool is_due(const struct tier *r, uint64_t epoch)
{
	struct vv_interval daly = { .mtbf = r->set->mtbf };

	if (r->set->mtbf > 0)
		return vv_clock_s() >= r->ended + vv_interval_after(&daly, r->cost);
	return epoch / r->set->every > r->marked / r->set->every;
}

void vv_tiers_offer(struct varve *v, uint64_t epoch)
{
	struct vv_tiers *t = tiers_of(v);
	sigset_t mask;

	if (!t || !is_first(v))
		return;
	take(t, &mask);
	for (size_t i = 0; i < t->n; i++) {
		struct tier *r = &t->tier[i];

		if (is_due(r, epoch))
			r->due = r->marked = epoch;
		wake(r);
	}
	vv_event_signal(&t->change);
	give(t, &mask);
}

bool vv_tiers_needs(struct varve *v, uint64_t epoch)
{
	struct vv_tiers *t = tiers_of(v);
	bool needed = false;
	sigset_t mask;

	if (!t)
		return false;
	take(t, &mask);
	for (size_t i = 0; i < t->n; i++)
		needed |= t->tier[i].due == epoch || t->tier[i].copying == epoch;
	give(t, &mask);
	return needed;
}

/* ---- opening --------------------------------------------------------------------------------- */

int vv_tiers_check_stores(const struct varve *v)
{
	if (!tiers_of(v) || !v->ctx.group->has_local_stores)
		return 0;
	return vv_err_set(VV_ENOTSUP, "tiers: the ranks have stores of their own ('%s'), and epochs are copied only from a store that all ranks share: leave the option out, or name a shared store",
			  tiers_of(v)->nearest);
}

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
	v->background->tiers = t;
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

static int open_lineage(struct tier *r, const char *name)
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

/* Looks for the lineage and its newest epoch below `before`. The result is an error only if there is
 * no memory; r->trouble has others. */
static int look(struct tier *r, const char *name, uint64_t before, uint64_t *newest)
{
	int rc = open_lineage(r, name);

	*newest = 0;
	if (rc == 0 && r->has_lineage)
		rc = vv_catalog_newest(&r->lineage, before, newest);
	if (rc == 0 && r->has_lineage)
		rc = vv_catalog_highest(&r->lineage, &r->highest);
	vv_err_save(rc, &r->trouble);
	return rc == VV_ENOMEM ? rc : 0;
}

static int check_id(const struct tier *r, const uint8_t id[16], const char *other)
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
		const struct tier *r = &t->tier[i];

		if (!r->has_lineage)
			continue;
		if (*id)
			rc = check_id(r, (*id)->id, (*id)->store->url);
		else
			*id = &r->lineage;
	}
	return rc;
}

/* A store without epochs may have lost them. */
static int check_reached(struct vv_tiers *t, bool has_epochs)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct tier *r = &t->tier[i];

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
	struct vv_tiers *t = tiers_of(v);
	const struct vv_lineage *id;
	struct vv_lineage own, made;
	uint64_t epoch = 0;
	int rc = 0, found;

	if (!t)
		return 0;
	for (size_t i = 0; rc == 0 && i < t->n; i++)
		rc = look(&t->tier[i], lineage, UINT64_MAX, &t->tier[i].newest);
	if (rc == 0)
		rc = check_stores(v, t);
	if (rc)
		return rc;
	found = vv_catalog_open(v->ctx.store, lineage, false, &own);
	if (found == 0)
		rc = vv_catalog_newest(&own, UINT64_MAX, &epoch);
	else if (found != VV_ENOENT)
		return found;
	if (rc == 0)
		rc = check_reached(t, epoch > 0);
	if (rc == 0)
		rc = compare(t, found == 0 ? &own : NULL, &id);
	if (rc == 0 && found && id)
		rc = vv_catalog_adopt(v->ctx.store, lineage, id->id, id->created_ns, &made);
	return rc;
}

uint64_t vv_tiers_highest(const struct varve *v)
{
	const struct vv_tiers *t = tiers_of(v);
	uint64_t highest = 0;

	for (size_t i = 0; t && i < t->n; i++) {
		highest = t->tier[i].highest > highest ? t->tier[i].highest : highest;
		highest = t->tier[i].newest > highest ? t->tier[i].newest : highest;
	}
	return highest;
}

/* Of the epochs from the newest multiple of `every` on, the first one is due. */
static void mark_due(struct tier *r, const struct vv_listing *l)
{
	uint64_t newest = l->n_epochs ? l->epoch[l->n_epochs - 1] : 0, from = newest - newest % r->set->every;
	size_t i;

	r->marked = r->newest;
	if (newest <= r->newest || newest / r->set->every <= r->newest / r->set->every)
		return;
	VV_SEARCH(i, 0, l->n_epochs, l->epoch[i] < from);
	r->due = r->marked = l->epoch[i];
}

void vv_tiers_start(struct varve *v)
{
	struct vv_tiers *t = tiers_of(v);
	struct vv_listing l = { 0 };
	sigset_t mask;

	if (!t || !is_first(v))
		return;
	memcpy(t->name, v->ctx.lineage.name, sizeof(t->name));
	if (vv_catalog_list(&v->ctx.lineage, 0, &l) < 0)
		vv_err_clear(); /* the next checkpoint is due */
	take(t, &mask);
	for (size_t i = 0; i < t->n; i++) {
		mark_due(&t->tier[i], &l);
		wake(&t->tier[i]);
	}
	give(t, &mask);
	vv_catalog_listing_fini(&l);
}

/* ---- closing --------------------------------------------------------------------------------- */

/* The caller holds the lock. A tier that failed before is tried once more. */
static struct tier *find_unfinished(struct vv_tiers *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->tier[i].copying || (t->tier[i].due && !t->tier[i].tried))
			return &t->tier[i];
	return NULL;
}

void vv_tiers_finish(struct varve *v)
{
	struct vv_tiers *t = tiers_of(v);
	double end = vv_clock_s() + vv_conf_real(&v->ctx.conf, "timeout");
	uint64_t epoch;
	struct tier *r;
	sigset_t mask;

	if (!t)
		return;
	take(t, &mask);
	for (size_t i = 0; i < t->n; i++)
		wake(&t->tier[i]);
	vv_event_signal(&t->change);
	while ((r = find_unfinished(t)) && vv_clock_s() < end) {
		uint32_t looked = vv_event_count(&t->change);

		give(t, &mask);
		vv_event_wait_for(&t->change, looked, end - vv_clock_s());
		take(t, &mask);
	}
	epoch = r && r->due ? r->due : r ? r->copying : 0;
	give(t, &mask);
	if (r)
		vv_log_warn("tier '%s' has no copy of epoch %" PRIu64 " of '%s': it was not complete after the time of the option timeout; the next session completes it",
			    r->set->url, epoch, v->ctx.lineage.name);
}

static void end_threads(struct vv_tiers *t)
{
	sigset_t mask;

	take(t, &mask);
	atomic_store(&t->stop, true);
	vv_event_signal(&t->change);
	give(t, &mask);
	for (size_t i = 0; i < t->n; i++)
		if (t->tier[i].started)
			pthread_join(t->tier[i].thread, NULL);
}

void vv_tiers_free(struct varve *v)
{
	struct vv_tiers *t = tiers_of(v);

	if (!t)
		return;
	if (v->entry.pid == getpid()) {
		end_threads(t);
		pthread_mutex_destroy(&t->lock);
	}
	for (size_t i = 0; i < t->n; i++)
		vv_store_close(t->tier[i].store);
	vv_tier_list_fini(&t->list);
	vv_mem_free(t->nearest);
	vv_mem_free(t);
	v->background->tiers = NULL;
}

/* ---- restart --------------------------------------------------------------------------------- */

/* No store can have a newer epoch than one that this session has written, nor than the nearest store
 * if all sessions of the lineage share it. */
static int is_newest_here(struct varve *v)
{
	uint64_t epoch = 0;
	int rc = vv_catalog_newest(&v->ctx.lineage, UINT64_MAX, &epoch);

	return rc ? rc : epoch > v->tip.highest_at_open || (v->ctx.store->is_remote && epoch);
}

static int ask(struct varve *v, struct vv_tiers *t)
{
	uint64_t newest;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < t->n; i++) {
		struct tier *r = &t->tier[i];

		rc = look(r, v->ctx.lineage.name, UINT64_MAX, &newest);
		if (rc || !r->trouble.code)
			continue;
		rc = is_newest_here(v);
		if (rc == 0)
			rc = vv_err_set(VV_EIO, "tier '%s' cannot be reached, and may have a newer epoch than store '%s': restart again when it answers, restart from an epoch by its number, or leave the tier out of the option tiers: %s",
					r->set->url, t->nearest, r->trouble.message);
	}
	return rc < 0 ? rc : 0;
}

int vv_tiers_ask(struct varve *v)
{
	struct vv_tiers *t = tiers_of(v);

	return t ? meet(v, is_first(v) ? ask(v, t) : 0) : 0;
}

int vv_tiers_newest(struct varve *v, uint64_t before, uint64_t *epoch)
{
	struct vv_tiers *t = tiers_of(v);
	uint64_t newest;
	int rc = 0;

	for (size_t i = 0; t && is_first(v) && rc == 0 && i < t->n; i++) {
		rc = look(&t->tier[i], v->ctx.lineage.name, before, &newest);
		if (rc == 0 && !t->tier[i].trouble.code && newest > *epoch)
			*epoch = newest;
	}
	return rc;
}

static bool has_epoch(const struct vv_lineage *lin, uint64_t epoch, int *rc)
{
	struct vv_commit c = { 0 };

	*rc = vv_catalog_commit(lin, epoch, &c);
	vv_commit_fini(&c);
	return *rc == 0;
}

/* A limit of flushes is not one of restarts. */
static int copy_back(struct varve *v, struct tier *r, uint64_t epoch)
{
	struct vv_copy_request q = { .from = &r->lineage, .to = v->ctx.store, .held = v->ctx.writer, .pool = v->ctx.pool };
	uint64_t bandwidth = v->ctx.store->bandwidth;
	bool copied;
	int rc;

	v->ctx.store->bandwidth = 0;
	rc = vv_copy_lineage_epoch(&q, epoch, &copied);
	v->ctx.store->bandwidth = bandwidth;
	if (rc == 0) {
		vv_log_info("epoch %" PRIu64 " of '%s' was brought back from tier '%s'", epoch, v->ctx.lineage.name, r->set->url);
		vv_retention_forget(v);
		return 0;
	}
	return vv_err_context(rc, "epoch %" PRIu64 " of '%s' is not brought back from tier '%s'", epoch, v->ctx.lineage.name, r->set->url);
}

/* What is wrong with an epoch that no tier could give: one that cannot be reached may have it. */
static int judge(struct varve *v, uint64_t epoch, const struct vv_err_state *first)
{
	struct vv_tiers *t = tiers_of(v);
	int rc = vv_err_restore(first);

	for (size_t i = 0; is_first(v) && i < t->n; i++)
		if (t->tier[i].trouble.code)
			rc = vv_err_set(VV_EIO, "epoch %" PRIu64 " is not intact in the other stores, and tier '%s' cannot be reached: %s", epoch,
					t->tier[i].set->url, t->tier[i].trouble.message);
	return meet(v, rc);
}

/* Has the tier the epoch? VV_ENOENT, VV_EDAMAGED: no. */
static int consider(struct varve *v, struct tier *r, uint64_t epoch)
{
	uint64_t newest;
	int rc = look(r, v->ctx.lineage.name, UINT64_MAX, &newest);

	if (rc || r->trouble.code || !r->has_lineage)
		return rc ? rc : VV_ENOENT;
	has_epoch(&r->lineage, epoch, &rc);
	if (rc == VV_EIO)
		vv_err_save(rc, &r->trouble);
	return rc == VV_EIO ? VV_ENOENT : rc;
}

/* Calls fn with each tier that has the epoch, until it succeeds. first: the error so far. */
static int try_tiers(struct varve *v, uint64_t epoch, struct vv_err_state *first,
		     int (*fn)(struct varve *v, struct tier *r, uint64_t epoch, void *arg), void *arg)
{
	struct vv_tiers *t = tiers_of(v);

	for (size_t i = 0; i < t->n; i++) {
		struct tier *r = &t->tier[i];
		int rc = meet(v, is_first(v) ? consider(v, r, epoch) : 0);

		if (rc == 0)
			rc = fn(v, r, epoch, arg);
		if (rc == 0 || (rc != VV_ENOENT && rc != VV_EDAMAGED && rc != VV_EIO))
			return rc;
		if (rc == VV_EIO)
			vv_err_save(rc, &r->trouble);
		if (rc == VV_EDAMAGED && first->code == VV_ENOENT)
			vv_err_save(rc, first);
	}
	return judge(v, epoch, first);
}

static int fetch_from(struct varve *v, struct tier *r, uint64_t epoch, void *arg)
{
	(void)arg;
	return meet(v, is_first(v) ? copy_back(v, r, epoch) : 0);
}

int vv_tiers_fetch(struct varve *v, uint64_t epoch)
{
	struct vv_tiers *t = tiers_of(v);
	struct vv_err_state missing;
	int rc = 0;

	if (!t || t->reading)
		return 0;
	if (is_first(v))
		has_epoch(&v->ctx.lineage, epoch, &rc);
	rc = meet(v, rc);
	if (rc != VV_ENOENT)
		return rc == VV_EDAMAGED ? 0 : rc;
	vv_err_save(rc, &missing);
	rc = meet(v, vv_threads_start(&v->ctx));
	return rc ? rc : try_tiers(v, epoch, &missing, fetch_from, NULL);
}

struct reading {
	int (*read)(struct varve *v, uint64_t epoch);
	struct vv_err_state why; /* the nearest store cannot give the epoch */
};

static int read_from(struct varve *v, struct tier *r, uint64_t epoch, void *arg)
{
	const struct reading *how = arg;
	struct vv_lineage own = v->ctx.lineage;
	int rc = open_lineage(r, own.name);

	rc = meet(v, rc ? rc : r->has_lineage ? 0 : vv_err_set(VV_ENOENT, "tier '%s' has no lineage '%s'", r->set->url, own.name));
	if (rc)
		return rc;
	if (is_first(v))
		vv_log_warn("epoch %" PRIu64 " of '%s' is read from tier '%s', and the next checkpoint stores everything again: %s", epoch, own.name,
			    r->set->url, how->why.message);
	v->ctx.lineage = r->lineage;
	v->ctx.store = r->store;
	tiers_of(v)->reading = true;
	rc = how->read(v, epoch);
	tiers_of(v)->reading = false;
	v->ctx.lineage = own;
	v->ctx.store = own.store;
	if (rc)
		return rc;
	vv_tip_begin_after(v, epoch);
	vv_index_cache_fini(v->index_cache);
	v->has_index_cache = false;
	return 0;
}

int vv_tiers_read(struct varve *v, uint64_t epoch, int (*read)(struct varve *v, uint64_t epoch))
{
	struct reading how = { .read = read };

	if (!tiers_of(v))
		return VV_EDAMAGED;
	vv_err_save(VV_EDAMAGED, &how.why);
	return try_tiers(v, epoch, &how.why, read_from, &how);
}

bool vv_tiers_is_reading(const struct varve *v)
{
	return tiers_of(v) && tiers_of(v)->reading;
}

void vv_tiers_each(struct varve *v, void (*fn)(void *arg, const char *url, uint64_t newest), void *arg)
{
	struct vv_tiers *t = tiers_of(v);

	for (size_t i = 0; t && i < t->n; i++) {
		uint64_t newest;
		sigset_t mask;

		take(t, &mask);
		newest = t->tier[i].newest;
		give(t, &mask);
		fn(arg, t->tier[i].set->url, newest);
	}
}
