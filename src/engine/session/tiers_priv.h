/* The state of a session's tiers, for tiers.c and tiers_restart.c. */
#ifndef VV_ENGINE_SESSION_TIERS_PRIV_H
#define VV_ENGINE_SESSION_TIERS_PRIV_H

#include "base/err.h"
#include "base/event.h"
#include "engine/lineage/catalog.h"
#include "engine/tier_list.h"
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
	struct vv_tier tier[VV_TIER_LIST_MAX];
};

struct vv_tiers *vv_tiers_of(const struct varve *v); /* NULL: the session has none */
/* Ranks share all stores. Rank 0 copies, and looks for epochs; the others learn the result. */
bool vv_tiers_is_first(const struct varve *v);
int vv_tiers_meet(struct varve *v, int rc);
/* Opens the store and the lineage as far as they exist. */
int vv_tiers_open_lineage(struct vv_tier *r, const char *name);
/* Looks for the lineage and its newest epoch below `before`. The result is an error only if there is
 * no memory; r->trouble has others. */
int vv_tiers_look(struct vv_tier *r, const char *name, uint64_t before, uint64_t *newest);

#endif
