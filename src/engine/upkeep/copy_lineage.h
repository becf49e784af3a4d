/* Copies epochs of a lineage to another store, with all layers that they need. */
#ifndef VV_ENGINE_UPKEEP_COPY_LINEAGE_H
#define VV_ENGINE_UPKEEP_COPY_LINEAGE_H

#include "base/pool.h"
#include "base/progress.h"
#include "engine/lineage/catalog.h"
#include <stdatomic.h>

struct vv_copy_range {
	uint64_t first, last;
};

struct vv_copy_request {
	const struct vv_lineage *from;
	struct vv_store *to; /* NULL with dry_run: it does not exist yet */
	const struct vv_copy_range *range;
	size_t n_ranges; /* 0: all epochs */
	bool dry_run;
	bool whole; /* an epoch is not copied if some ranks have their layers in other stores: VV_ENOTSUP */
	/* The destination's lock of the lineage, if the caller holds it; NULL: it is taken. */
	struct vv_lock *held;
	/* With ranges: an older epoch that an earlier copy has brought, or 0. It saves work if both
	 * stores still have it. */
	uint64_t base;
	const atomic_bool *stop; /* another thread sets it to end the copy: VV_EBUSY. NULL: none does */
	struct vv_pool *pool;
	const struct vv_progress *progress;
	/* Called once for each damaged part of the source. */
	void (*tell)(void *arg, const char *problem);
	void *arg;
};

struct vv_copy_report {
	size_t epochs;	  /* copied */
	size_t there;	  /* that the destination had before */
	size_t damaged;	  /* not copied, because the source is damaged */
	size_t layers;	  /* copied */
	uint64_t bytes;	  /* of these layers */
	size_t elsewhere; /* layers of copied epochs that lie in other stores */
};

/* Takes the lock of the lineage at the destination. Objects that are there are not copied again. A
 * commit record is copied after all layers that the epoch needs, so a crash leaves no incomplete
 * epoch. A writer may work in the source: epochs that it drops meanwhile are not copied, unless
 * they were named (VV_ENOENT). Damage is reported by `tell`; the other epochs are copied.
 * VV_EMISMATCH: the destination has another lineage of this name, or both copies have continued. */
int vv_copy_lineage_run(const struct vv_copy_request *q, struct vv_copy_report *out);
/* Copies one epoch whole, by a request without ranges and `tell`. VV_EDAMAGED: it is damaged.
 * *copied: the destination did not have it before. */
int vv_copy_lineage_epoch(const struct vv_copy_request *q, uint64_t epoch, bool *copied);

/* The errors of a copy: the destination has another lineage of this name, or another epoch of this
 * number. */
int vv_copy_lineage_refuse(const struct vv_lineage *from, const struct vv_store *to);
int vv_copy_lineage_refuse_epoch(const struct vv_lineage *from, const struct vv_store *to, uint64_t epoch);

#endif
