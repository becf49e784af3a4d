/* Checks a whole store: every byte, every check, every digest, both invariants of the model. */
#ifndef VV_ENGINE_UPKEEP_VERIFY_H
#define VV_ENGINE_UPKEEP_VERIFY_H

#include "base/pool.h"
#include "base/progress.h"
#include "engine/upkeep/affected_epochs.h"
#include "engine/upkeep/gc.h"

struct vv_verify_report {
	size_t epochs, layers, blocks;
	uint64_t bytes;   /* read */
	size_t problems;
	size_t orphans;   /* layers that no live epoch needs, and that gc would shrink or remove */
	struct vv_gc_unfinished unfinished; /* and these */
	/* layers in other stores, where ranks have stores of their own: not read */
	size_t elsewhere;
	uint32_t ranks;   /* of the newest epoch with such layers */
	char elsewhere_ranks[VV_CATALOG_RANKS]; /* and the ranks that they belong to */
	size_t parity;    /* objects that are here; other stores have more of their epochs */
	struct vv_affected_epochs affected; /* by the problems; the caller frees it */
};

/* Called once for every problem, by the thread that runs the check. The text names the object and
 * its damaged part. */
typedef void (*vv_verify_report_fn)(void *arg, const char *problem);

/* Checks one epoch with all its needs, or (epoch 0) all epochs and the index caches. With `whole`,
 * layers in other stores are a problem. Returns 0 even if problems were found, and < 0 if the store
 * could not be read at all. Returns VV_ENOENT if the one epoch was dropped meanwhile. A writer that
 * drops epochs and runs gc at the same time causes no problem. */
int vv_verify_run(const struct vv_lineage *lin, struct vv_pool *pool, uint64_t epoch, bool whole, vv_verify_report_fn tell, void *arg,
		  const struct vv_progress *progress, struct vv_verify_report *out);

#endif
