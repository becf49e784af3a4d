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
	/* sentences, each with a NUL at its end: with --json they wait for their place */
	struct vv_buf said;
};

/* Deletes this rank's files that its manifest lists. Each is read back from the epoch, compared
 * byte for byte, and unlinked once all are compared. A file that has changed since is kept, with a
 * warning. All ranks call it together. */
int vv_purge_run(struct vv_verb_context *job, struct varve *v, const struct vv_filelist *l, uint64_t epoch, const struct vv_manifest *m);
/* The same for n files that an earlier run left and the epoch should have, by this rank alone. Adds
 * to *count. If a file differs from the epoch, or the epoch cannot be read, *has is false. That is
 * reported, and no file is deleted. Fails only for lack of memory. */
int vv_purge_left(struct vv_verb_context *job, const struct vv_unpack *u, const struct vv_pack_file *file, size_t n, struct vv_purge_count *count, bool *has);
/* Reports the counts, if there are any, and clears them. */
void vv_purge_report_left(struct vv_verb_context *job, struct vv_purge_count *count);

#endif
