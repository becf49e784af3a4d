#include "engine/tiers/tiers_restart.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/context.h"
#include "engine/lineage/catalog.h"
#include "engine/ranks/group.h"
#include "engine/tiers/tiers.h"
#include "engine/tiers/tiers_priv.h"
#include "engine/threads.h"
#include "engine/upkeep/copy_lineage.h"
#include <inttypes.h>

/* No store can have a newer epoch than one that this session has written. If all
 * sessions of the lineage share the nearest store, no tier can have a newer one than that. */
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
		struct vv_tier *r = &t->tier[i];

		rc = vv_tiers_look(r, v->ctx.lineage.name, UINT64_MAX, &newest);
		if (rc || !r->trouble.code)
			continue;
		rc = is_newest_here(v);
		if (rc == 0)
			rc = vv_err_set(VV_EIO, "tier '%s' cannot be reached, and may have a newer epoch than store '%s': restart again when it answers, restart from an epoch by its number, or leave the tier out of the option tiers: %s",
					r->set->url, t->nearest, r->trouble.message);
	}
	return rc < 0 ? rc : 0;
}

int vv_tiers_restart_ask(struct varve *v)
{
	struct vv_tiers *t = vv_tiers_of(v);

	return t ? vv_tiers_agree(v, vv_tiers_is_rank_0(v) ? ask(v, t) : 0) : 0;
}

int vv_tiers_restart_newest(struct varve *v, uint64_t before, uint64_t *epoch)
{
	struct vv_tiers *t = vv_tiers_of(v);
	uint64_t newest;
	int rc = 0;

	for (size_t i = 0; t && vv_tiers_is_rank_0(v) && rc == 0 && i < t->n; i++) {
		rc = vv_tiers_look(&t->tier[i], v->ctx.lineage.name, before, &newest);
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
static int copy_back(struct varve *v, struct vv_tier *r, uint64_t epoch)
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
		return 0;
	}
	return vv_err_context(rc, "epoch %" PRIu64 " of '%s' is not brought back from tier '%s'", epoch, v->ctx.lineage.name, r->set->url);
}

/* The error of an epoch that no tier could give. A tier that cannot be reached may have it. */
static int judge(struct varve *v, uint64_t epoch, const struct vv_err_state *first)
{
	struct vv_tiers *t = vv_tiers_of(v);
	int rc = vv_err_restore(first);

	for (size_t i = 0; vv_tiers_is_rank_0(v) && i < t->n; i++)
		if (t->tier[i].trouble.code)
			rc = vv_err_set(VV_EIO, "epoch %" PRIu64 " is not intact in the other stores, and tier '%s' cannot be reached: %s", epoch,
					t->tier[i].set->url, t->tier[i].trouble.message);
	return vv_tiers_agree(v, rc);
}

/* Has the tier the epoch? VV_ENOENT, VV_EDAMAGED: no. */
static int consider(struct varve *v, struct vv_tier *r, uint64_t epoch)
{
	uint64_t newest;
	int rc = vv_tiers_look(r, v->ctx.lineage.name, UINT64_MAX, &newest);

	if (rc || r->trouble.code || !r->has_lineage)
		return rc ? rc : VV_ENOENT;
	has_epoch(&r->lineage, epoch, &rc);
	if (rc == VV_EIO)
		vv_err_save(rc, &r->trouble);
	return rc == VV_EIO ? VV_ENOENT : rc;
}

/* Calls fn with each tier that has the epoch, until it succeeds. first: the error so far. */
static int try_tiers(struct varve *v, uint64_t epoch, struct vv_err_state *first,
		     int (*fn)(struct varve *v, struct vv_tier *r, uint64_t epoch, void *arg), void *arg)
{
	struct vv_tiers *t = vv_tiers_of(v);

	for (size_t i = 0; i < t->n; i++) {
		struct vv_tier *r = &t->tier[i];
		int rc = vv_tiers_agree(v, vv_tiers_is_rank_0(v) ? consider(v, r, epoch) : 0);

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

static int fetch_from(struct varve *v, struct vv_tier *r, uint64_t epoch, void *arg)
{
	(void)arg;
	return vv_tiers_agree(v, vv_tiers_is_rank_0(v) ? copy_back(v, r, epoch) : 0);
}

/* Does no rank's store have the epoch? Then it is read from the tier, and not copied back. */
static int look_here(struct varve *v, uint64_t epoch, bool *lacks)
{
	uint64_t have = 0;
	int rc = 0;

	has_epoch(&v->ctx.lineage, epoch, &rc);
	have = rc == 0 || rc == VV_EDAMAGED;
	rc = vv_group_sum(v->ctx.group, v->ctx.group->comm, rc == VV_ENOENT || rc == VV_EDAMAGED ? 0 : rc, &have, 1);
	*lacks = rc == 0 && !have;
	return *lacks ? vv_err_set(VV_ENOENT, "no rank's store has epoch %" PRIu64 " of '%s'", epoch, v->ctx.lineage.name) : rc;
}

int vv_tiers_restart_fetch(struct varve *v, uint64_t epoch, bool *lacks)
{
	struct vv_tiers *t = vv_tiers_of(v);
	struct vv_err_state missing;
	int rc = 0;

	*lacks = false;
	if (!t || t->reading)
		return 0;
	if (vv_tiers_nearest_is_local(v))
		return look_here(v, epoch, lacks);
	if (vv_tiers_is_rank_0(v))
		has_epoch(&v->ctx.lineage, epoch, &rc);
	rc = vv_tiers_agree(v, rc);
	if (rc != VV_ENOENT)
		return rc == VV_EDAMAGED ? 0 : rc;
	vv_err_save(rc, &missing);
	rc = vv_tiers_agree(v, vv_threads_start(&v->ctx));
	if (rc == 0)
		rc = try_tiers(v, epoch, &missing, fetch_from, NULL);
	*lacks = rc == VV_EMISMATCH;
	return rc ? rc : 1;
}

struct reading {
	int (*read)(struct varve *v, uint64_t epoch, void *arg);
	void *arg;
	struct vv_err_state why; /* the nearest store cannot give the epoch */
};

/* For the reading, all ranks are on one storage node: the tier. */
static int read_shared(struct varve *v, uint64_t epoch, const struct reading *how)
{
	struct vv_group *g = v->ctx.group;
	uint32_t *nodes = g->storage_node, *shared_node = vv_mem_new(g->size, sizeof(*shared_node));
	int rc = vv_group_agree(g, g->comm, shared_node ? 0 : VV_ENOMEM);

	if (rc == 0) {
		g->storage_node = shared_node;
		g->has_local_stores = false;
		rc = how->read(v, epoch, how->arg);
		g->storage_node = nodes;
		g->has_local_stores = true;
	}
	vv_mem_free(shared_node);
	return rc;
}

static int read_from(struct varve *v, struct vv_tier *r, uint64_t epoch, void *arg)
{
	const struct reading *how = arg;
	struct vv_lineage own = v->ctx.lineage;
	int rc = vv_tiers_open_lineage(r, own.name);

	rc = vv_tiers_agree(v, rc ? rc : r->has_lineage ? 0 : vv_err_set(VV_ENOENT, "tier '%s' has no lineage '%s'", r->set->url, own.name));
	if (rc)
		return rc;
	if (vv_tiers_is_rank_0(v))
		vv_log_warn("epoch %" PRIu64 " of '%s' is read from tier '%s', and the next checkpoint stores everything again: %s", epoch, own.name,
			    r->set->url, how->why.message);
	v->ctx.lineage = r->lineage;
	v->ctx.store = r->store;
	vv_tiers_of(v)->reading = true;
	rc = vv_tiers_nearest_is_local(v) ? read_shared(v, epoch, how) : how->read(v, epoch, how->arg);
	vv_tiers_of(v)->reading = false;
	v->ctx.lineage = own;
	v->ctx.store = own.store;
	return rc;
}

int vv_tiers_restart_read(struct varve *v, uint64_t epoch, int why, int (*read)(struct varve *v, uint64_t epoch, void *arg), void *arg)
{
	struct reading how = { .read = read, .arg = arg };

	if (!vv_tiers_of(v))
		return why;
	vv_err_save(why, &how.why);
	return try_tiers(v, epoch, &how.why, read_from, &how);
}

bool vv_tiers_restart_is_reading(const struct varve *v)
{
	return vv_tiers_of(v) && vv_tiers_of(v)->reading;
}
