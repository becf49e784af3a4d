/* Deleting files that were packed. */
#ifndef VV_CLI_PURGE_H
#define VV_CLI_PURGE_H

#include "cli/filelist.h"
#include "cli/job.h"

struct varve;

/* This rank's files, as its manifest says: each is read back from the epoch, compared byte for byte, and unlinked. One that has changed since is
 * kept, with a warning. All ranks together. */
int vv_purge_run(struct vv_job *job, struct varve *v, const struct vv_filelist *l, uint64_t epoch, const struct vv_manifest *m);

#endif
