/* An epoch becomes a process again, and all that were below it. */
#ifndef VV_IMAGE_RESTORE_RESTORE_ONE_H
#define VV_IMAGE_RESTORE_RESTORE_ONE_H

#include "base/pool.h"
#include "engine/lineage/catalog.h"
#include "image/criu/criu.h"
#include <stdbool.h>
#include <sys/types.h>

struct vv_restore_one_options {
	bool shell_job; /* its terminal is ours */
	const char *const *extra;
	size_t n_extra;
	uint64_t memory; /* of images at a time; 0: half of what is free */
	bool lazy;       /* it runs before all of its memory is there */
	void *arg;
	void (*runs)(void *arg, pid_t pid); /* may be NULL: told as soon as it does */
};

/* It runs, and all of its memory is there; with its old number, as a child of this process (which must have been made the reaper of its kin by vv_restore_one_adopt) or, if that ends, of
 * the system. This process has no other children that matter: after a failure all of them end. */
int vv_restore_one_run(const struct vv_lineage *lin, uint64_t epoch, struct vv_pool *pool, const struct vv_restore_one_options *opt, pid_t *pid);
void vv_restore_one_adopt(void);

/* Parts of it, for several that come back together (image/criu/tree_names.h): criu is started; and, when it has ended, says whom it brought back. */
int vv_restore_one_start(struct vv_criu *c, const struct vv_restore_one_options *opt);
int vv_restore_one_pid(const struct vv_criu *c, pid_t *pid);

#endif
