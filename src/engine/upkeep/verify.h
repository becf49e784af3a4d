/* Reading everything and believing nothing: every byte, every check, every digest, both invariants of the model. */
#ifndef VV_ENGINE_UPKEEP_VERIFY_H
#define VV_ENGINE_UPKEEP_VERIFY_H

#include "base/pool.h"
#include "base/progress.h"
#include "engine/upkeep/gc.h"

struct vv_verify_report {
	size_t epochs, layers, blocks;
	uint64_t bytes;   /* read */
	size_t problems;
	size_t orphans;   /* layers that no live epoch needs, and of which gc takes something away */
	struct vv_gc_unfinished unfinished; /* and these */
	size_t elsewhere; /* layers in other stores, where ranks have stores of their own: not looked at */
	uint32_t ranks;   /* of the newest epoch that has such */
	char elsewhere_ranks[VV_CATALOG_RANKS]; /* and whose they are */
};

/* Called for every problem, once, in words that name the object and the part of it; by the thread that runs it. */
typedef void (*vv_verify_report_fn)(void *arg, const char *problem);

/* One epoch with all it needs, or (epoch 0) all of them and the index caches. With `whole` it is a problem if layers lie in other
 * stores. Returns 0 even if problems were found; < 0 if
 * the store could not be read at all; VV_ENOENT if the one epoch was dropped meanwhile. A writer that drops epochs and
 * collects garbage at the same time makes no problem. */
int vv_verify_run(const struct vv_lineage *lin, struct vv_pool *pool, uint64_t epoch, bool whole, vv_verify_report_fn tell, void *arg,
		  const struct vv_progress *progress, struct vv_verify_report *out);

#endif
