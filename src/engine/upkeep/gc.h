/* Frees the space that no live epoch needs. */
#ifndef VV_ENGINE_UPKEEP_GC_H
#define VV_ENGINE_UPKEEP_GC_H

#include "base/progress.h"
#include "engine/upkeep/reachable.h"

struct vv_gc_unfinished { /* files that a writer began and did not finish before it died */
	size_t n;
	uint64_t bytes;
};

struct vv_gc_report {
	uint64_t bytes_before, bytes_after; /* of all layers */
	/* minimum for the live epochs: their blocks and all heads they use */
	uint64_t bytes_needed;
	size_t removed, rewritten, kept;    /* layers */
	/* Layers under parity, which stay as they are, of epochs from `since` on (set by the
	 * caller), and the part of them that is needed. */
	uint64_t since, whole_bytes, whole_needed;
	struct vv_gc_unfinished unfinished; /* removed, too */
};

/* Finds leftovers of interrupted writers in the lineage's folders of epochs from `from` on. Finds
 * nothing while a process writes the lineage, nor in a remote store, where leftovers expire by
 * age. */
int vv_gc_find_unfinished(const struct vv_lineage *lin, uint64_t from, struct vv_gc_unfinished *out);
enum vv_gc_effort {
	VV_GC_DRY_RUN,  /* nothing is changed; the report gives the result of VV_GC_THOROUGH */
	VV_GC_THOROUGH, /* layers are rewritten that become an eighth smaller */
	/* While a program runs: layers are rewritten that become half as large, so little is
	 * written twice. */
	VV_GC_CHEAP,
};

/* The caller holds the lineage's lock. A crash at any moment leaves every live epoch as it was.
 * Where epochs up to `floor` may be damaged, no layer up to it is changed, since they may need any
 * of those. progress (may be NULL): in bytes of layers. If it gives way, large layers are not
 * rewritten. */
int vv_gc_run(const struct vv_lineage *lin, uint64_t floor, enum vv_gc_effort effort, const struct vv_progress *progress,
	      struct vv_gc_report *out);
/* Layers under parity stay as they are while any layer of their epoch is needed, here or in another
 * store (r->others). */
void vv_gc_keep_sets(struct vv_reachable *r, const struct vv_listing *l);
/* The second half: all needs are known and sorted. */
int vv_gc_sweep(const struct vv_lineage *lin, const struct vv_listing *l, const struct vv_reachable *r, enum vv_gc_effort effort,
		const struct vv_progress *progress, struct vv_gc_report *out);
/* The highest number of a layer or an epoch: such a layer stays, emptied, even if no epoch needs
 * it. */
uint64_t vv_gc_newest(const struct vv_listing *l, const struct vv_reachable *r);
/* Is the layer one that gc emptied and keeps for its number? */
bool vv_gc_is_placeholder(const struct vv_reachable_layer *l, uint64_t newest);

#endif
