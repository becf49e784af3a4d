/* Restores all process trees of an epoch (image/criu/tree_names.h): all or none of them. */
#ifndef VV_IMAGE_RESTORE_RESTORE_MANY_H
#define VV_IMAGE_RESTORE_RESTORE_MANY_H

#include "engine/context.h"
#include "image/restore/restore_one.h"

struct vv_restore_many { /* number of the first process of each tree, in the order of saving */
	pid_t *mine, *all; /* restored by this rank; and by all ranks */
	size_t n_mine, n_all;
};

/* Creates no process before everything has been read and checked on all ranks. No process runs
 * before all have been rebuilt. Each of M ranks restores the trees of every M-th saving rank. The
 * ranks' session is `v`; a single process passes NULL and restores all trees. Ranks with their own
 * stores must be as many as the saving ranks. One exchange then gets the missing blocks of a store
 * from the others. */
int vv_restore_many_run(struct varve *v, const struct vv_lineage *lin, uint64_t epoch, struct vv_pool *pool, const struct vv_restore_one_options *opt,
		   struct vv_restore_many *out);
void vv_restore_many_fini(struct vv_restore_many *r);
/* Finds the newest epoch in any rank's store, or 0. All ranks call this. */
int vv_restore_many_newest(struct varve *v, uint64_t *epoch);

#endif
