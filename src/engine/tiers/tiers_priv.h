/* The state of a session's tiers, for tiers.c, tiers_ranks.c and tiers_restart.c. */
#ifndef VV_ENGINE_TIERS_TIERS_PRIV_H
#define VV_ENGINE_TIERS_TIERS_PRIV_H

#include "base/err.h"
#include "base/event.h"
#include "engine/lineage/catalog.h"
#include "engine/tiers/tiers_ranks.h"
#include "engine/tier_list.h"
#include "engine/upkeep/reachable.h"
#include <pthread.h>
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
	uint64_t last_due; /* the interval `every` counts from it */
	uint64_t copying;
	bool failed;     /* the copy has failed since the last epoch */
	struct vv_reachable due_layers; /* of ranks with stores of their own: the layers of `due` that this rank copies */
	bool has_due_layers; /* which the thread has not taken over yet */
	double idle_since; /* no rank but rank 0 copies anything since; 0: one does */
	double ended, cost; /* of the last copy */
	bool started;
	pthread_t thread;

	/* for the thread, once it is started: */
	uint64_t warned;  /* the due epoch of the last warning */
	uint64_t dropped; /* bytes of dropped epochs since the last gc */
	struct vv_reachable copying_layers; /* the same of the epoch that is being copied */
};

struct vv_tiers {
	struct varve *v;
	struct vv_tier_list list;
	char *nearest; /* its absolute URL */
	char name[VV_NAME_LINEAGE_MAX + 1]; /* of the lineage, once the session is open */
	pthread_mutex_t lock;
	struct vv_event change;
	atomic_bool stop;
	uint64_t committed; /* the newest epoch of this session; 0: none */
	bool closing;       /* the last epoch is due, for tiers that want it */
	bool reading; /* from a tier in place of the nearest store */
	bool local_nearest; /* ranks have nearest stores of their own; set when the session is open */
	struct vv_tiers_plan plan; /* of the last committed epoch; for ranks with stores of their own */
	uint64_t planned;          /* the epoch that is due by this plan; 0: it was assigned */
	size_t n;
	struct vv_tier tier[VV_TIER_LIST_MAX];
};

#endif
