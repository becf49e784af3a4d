/* Deleting files that were packed. */
#ifndef VV_CLI_PURGE_H
#define VV_CLI_PURGE_H

#include "cli/filelist.h"
#include "cli/job.h"
#include "engine/unpack.h"

struct varve;

struct vv_purge_count { /* files */
	uint64_t deleted, kept;
};

/* This rank's files, as its manifest says: each is read back from the epoch, compared byte for byte, and unlinked. One that has changed since is
 * kept, with a warning. All ranks together. */
int vv_purge_run(struct vv_job *job, struct varve *v, const struct vv_filelist *l, uint64_t epoch, const struct vv_manifest *m);
/* Files that an earlier run left, and the epoch has: the same with n of them, by this rank alone. Adds to *count. */
int vv_purge_left(struct vv_job *job, const struct vv_unpack *u, const struct vv_pack_file *file, size_t n, struct vv_purge_count *count);
/* Words on it, and numbers, if there were any. */
void vv_purge_tell_left(struct vv_job *job, const struct vv_purge_count *count);

#endif
