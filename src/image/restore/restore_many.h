/* The process trees of an epoch, however many (image/criu/tree_names.h), run again: all, or none of them. */
#ifndef VV_IMAGE_RESTORE_RESTORE_MANY_H
#define VV_IMAGE_RESTORE_RESTORE_MANY_H

#include "engine/context.h"
#include "image/restore/restore_one.h"

struct vv_restore_many { /* numbers of the first process of each tree, in the order in which they were saved */
	pid_t *mine, *all; /* those that this rank brought back; and all ranks */
	size_t n_mine, n_all;
};

/* Nothing is made of the epoch before everything has been read and checked on all ranks, and no process takes a step before all have been rebuilt. Each of M
 * ranks brings back what every M-th rank saved; v is their session, or NULL for a process alone, which brings all back. Where ranks have stores of their own
 * there must be as many of them as saved it, and what a store lacks comes from the others, in one exchange. */
int vv_restore_many_run(struct varve *v, const struct vv_lineage *lin, uint64_t epoch, struct vv_pool *pool, const struct vv_restore_one_options *opt,
		   struct vv_restore_many *out);
void vv_restore_many_fini(struct vv_restore_many *r);
/* The newest epoch that any rank's store has, or 0. All ranks. */
int vv_restore_many_newest(struct varve *v, uint64_t *epoch);

#endif
