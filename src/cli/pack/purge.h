/* Deleting files that were packed. */
#ifndef VV_CLI_PACK_PURGE_H
#define VV_CLI_PACK_PURGE_H

#include "base/buf.h"
#include "cli/pack/filelist.h"
#include "cli/base/verb_context.h"
#include "engine/files/unpack.h"

struct varve;

struct vv_purge_count { /* files */
	uint64_t deleted, kept;
	struct vv_buf said; /* sentences, a NUL behind each: with --json they wait for their place */
};

/* This rank's files, as its manifest says: each is read back from the epoch, compared byte for byte, and unlinked once all are. One that has changed
 * since is kept, with a warning. All ranks together. */
int vv_purge_run(struct vv_verb_context *job, struct varve *v, const struct vv_filelist *l, uint64_t epoch, const struct vv_manifest *m);
/* Files that an earlier run left, and the epoch should have: the same with n of them, by this rank alone. Adds to *count. If one of them is not what the
 * epoch has, or that cannot be read, *has is false, which is told, and none is deleted. Fails only for want of memory. */
int vv_purge_left(struct vv_verb_context *job, const struct vv_unpack *u, const struct vv_pack_file *file, size_t n, struct vv_purge_count *count, bool *has);
/* Words on it, and numbers, if there were any. Of the count nothing is left. */
void vv_purge_report_left(struct vv_verb_context *job, struct vv_purge_count *count);

#endif
