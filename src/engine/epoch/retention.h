/* Retention: the options keep, keep-every and keep-within, and garbage collection after an
 * epoch. */
#ifndef VV_ENGINE_EPOCH_RETENTION_H
#define VV_ENGINE_EPOCH_RETENTION_H

#include "engine/context.h"
#include "engine/lineage/catalog.h"

struct vv_retention {
	struct vv_listing live; /* the store as retention knows it */
	bool has_live;
	/* Bytes in layers of epochs dropped since the last gc, and bytes in all layers. */
	uint64_t bytes_dropped, bytes_total;
	uint64_t bytes_needed; /* by live epochs, in the last gc; 0: there was none */
	struct {
		uint64_t *epoch;
		size_t n, cap;
	} exempt; /* epochs that a restart has skipped: this session does not drop them */
};

/* Does keep-within (seconds) keep an epoch of this time? Ages are relative to the newest epoch, so
 * a lineage without a writer loses nothing. If the newest epoch is of the future, the clock was
 * wrong, and they are relative to the present. */
bool vv_retention_is_within(uint64_t time_ns, uint64_t newest_ns, double within);
/* bytes: the size of the epoch just written. Returns true if gc has run. */
bool vv_retention_run(struct varve *v, uint64_t bytes);
/* Frees the space of removed layers in steps, until a checkpoint waits. The rest is freed after
 * that checkpoint. */
void vv_retention_free_space(struct varve *v);
/* A restart has skipped the epoch: this session does not drop it. */
int vv_retention_exempt(struct varve *v, uint64_t epoch);
/* The same for all epochs above this one. */
int vv_retention_exempt_above(struct varve *v, uint64_t epoch);
/* For ranks with local stores. Rank 0 decides which epochs are dropped: those below the cutoff that
 * `every` does not divide. The leader of each storage node drops them. If any leader needs it, all
 * ranks reclaim the space together before the next checkpoint. */
void vv_retention_decide(struct varve *v, uint64_t bytes, uint64_t *cutoff, uint64_t *every);
void vv_retention_apply(struct varve *v, uint64_t bytes, uint64_t cutoff, uint64_t every);
/* After gc: the index and the regions forget content that the store no longer has. */
int vv_retention_prune(struct varve *v);
/* The store has other epochs than those that retention knows. */
void vv_retention_forget(struct varve *v);
bool vv_retention_is_due(const struct varve *v);
int vv_retention_reclaim(struct varve *v);

#endif
