/* Retention: the options keep and keep-every, and garbage collection after an epoch. */
#ifndef VV_ENGINE_SESSION_RETENTION_H
#define VV_ENGINE_SESSION_RETENTION_H

#include "engine/context.h"
#include "engine/lineage/catalog.h"

struct vv_retention {
	struct vv_listing live; /* the store, as retention knows it */
	bool has_live;
	uint64_t bytes_dropped, bytes_total; /* in layers of dropped epochs since the last gc; in all layers */
	struct {
		uint64_t *epoch;
		size_t n, cap;
	} exempt; /* epochs that a restart has passed over: this session drops none of them */
};

/* `bytes`: of the epoch just laid down. Has gc been at work? */
bool vv_retention_run(struct varve *v, uint64_t bytes);
/* A restart has passed over the epoch: this session does not drop it. */
int vv_retention_exempt(struct varve *v, uint64_t epoch);
/* The same for all epochs above this one. */
int vv_retention_exempt_above(struct varve *v, uint64_t epoch);
/* Where ranks have stores of their own: rank 0 says which epochs go (those below the cutoff that `every` does not divide), the leader
 * of each place drops them; and before a checkpoint in which any of them wants it, all take the space back together. */
void vv_retention_decide(struct varve *v, uint64_t bytes, uint64_t *cutoff, uint64_t *every);
void vv_retention_apply(struct varve *v, uint64_t bytes, uint64_t cutoff, uint64_t every);
/* After gc: the index and the regions forget content that the store no longer has. */
int vv_retention_prune(struct varve *v);
bool vv_retention_is_due(const struct varve *v);
int vv_retention_reclaim(struct varve *v);

#endif
