/* The state of a session's tiers, for tiers.c and tiers_restart.c. */
#ifndef VV_ENGINE_SESSION_TIERS_PRIV_H
#define VV_ENGINE_SESSION_TIERS_PRIV_H

#include "base/err.h"
#include "base/event.h"
#include "engine/lineage/catalog.h"
#include "engine/session/tiers_ranks.h"
#include "engine/tier_list.h"
#include "engine/upkeep/reachable.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

struct varve;

struct vv_tier {
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
	struct vv_reachable parts; /* of ranks with stores of their own: what this one copies of `due` */
	bool has_parts;  /* which the thread has not taken over yet */
	double ended, cost; /* of the last copy */
	bool started;
	pthread_t thread;

	/* for the thread, once it is started: */
	uint64_t warned;  /* the due epoch of the last warning */
	uint64_t dropped; /* bytes of dropped epochs since the last gc */
	struct vv_reachable taken; /* the parts of the epoch that is being copied */
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
	struct vv_tiers_plan plan; /* of the last committed epoch; for ranks with stores of their own */
	uint64_t planned;          /* the epoch that is due by this plan; 0: it was shared */
	size_t n;
	struct vv_tier tier[VV_TIER_LIST_MAX];
};

struct vv_tiers *vv_tiers_of(const struct varve *v); /* NULL: the session has none */
/* Tiers are stores that all ranks share. Rank 0 looks for epochs there; the others learn the result. */
bool vv_tiers_is_first(const struct varve *v);
int vv_tiers_meet(struct varve *v, int rc);
/* Has each rank, or each machine, a nearest store of its own? Then their leaders copy. */
bool vv_tiers_are_local(const struct varve *v);
bool vv_tiers_copies(const struct varve *v); /* this rank copies */
/* The lock of the fields above. As in background.c: no handler of the program runs meanwhile. */
void vv_tiers_lock(struct vv_tiers *t, sigset_t *mask);
void vv_tiers_unlock(struct vv_tiers *t, const sigset_t *mask);
/* Starts the thread if an epoch is due. The caller holds the lock. */
void vv_tiers_wake(struct vv_tier *r);
bool vv_tiers_is_due(const struct vv_tier *r, uint64_t epoch);
void vv_tiers_warn(const struct vv_tier *r, uint64_t epoch);
/* Opens the store and the lineage as far as they exist. */
int vv_tiers_open_lineage(struct vv_tier *r, const char *name);
/* Looks for the lineage and its newest epoch below `before`. The result is an error only if there is
 * no memory; r->trouble has others. */
int vv_tiers_look(struct vv_tier *r, const char *name, uint64_t before, uint64_t *newest);

#endif
