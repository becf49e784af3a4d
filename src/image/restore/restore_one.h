/* Restores one process tree from an epoch. */
#ifndef VV_IMAGE_RESTORE_RESTORE_ONE_H
#define VV_IMAGE_RESTORE_RESTORE_ONE_H

#include "base/pool.h"
#include "base/progress.h"
#include "engine/lineage/catalog.h"
#include "image/criu/criu.h"
#include <stdbool.h>
#include <sys/types.h>

struct vv_restore_one_options {
	bool shell_job; /* it uses our terminal */
	const char *const *extra;
	size_t n_extra;
	uint64_t memory; /* bytes of images at a time; 0: half of the free memory */
	bool lazy;       /* it runs before all of its memory is loaded */
	struct vv_progress progress; /* of the check before it is created */
	void *arg;
	void (*runs)(void *arg, pid_t pid); /* called as soon as it runs; may be NULL */
};

/* On return the tree runs, with all of its memory and its old numbers. It is a child of this
 * process, which must have become a subreaper by vv_restore_one_adopt. When this process ends, the
 * system adopts the tree. After a failure all descendants are killed that this process had not when
 * it became a subreaper. */
int vv_restore_one_run(const struct vv_lineage *lin, uint64_t epoch, struct vv_pool *pool, const struct vv_restore_one_options *opt, pid_t *pid);
int vv_restore_one_adopt(void);

/* Parts of vv_restore_one_run, for several trees together (image/criu/tree_names.h). The first
 * starts criu. The second reads the number of the restored process after criu's end. */
int vv_restore_one_start(struct vv_criu *c, const struct vv_restore_one_options *opt);
int vv_restore_one_pid(const struct vv_criu *c, pid_t *pid);

#endif
