/* Packs files into an epoch. Each file is a region; its bytes lie in the payload in the order of
 * their variables. Each kind of variable has its own compression. With many ranks, each rank packs
 * its share of the files. */
#ifndef VV_ENGINE_FILES_PACK_H
#define VV_ENGINE_FILES_PACK_H

#include "base/progress.h"
#include "core/format/manifest.h"
#include "engine/files/xattr.h"
#include <stdatomic.h>
#include <varve/varve.h>

enum vv_pack_scheme { VV_PACK_AUTO, VV_PACK_AGNOSTIC, VV_PACK_AGNOSTIC_BLOCK, VV_PACK_AWARE, VV_PACK_AWARE_BLOCK };
enum vv_pack_effort { VV_PACK_FAST, VV_PACK_DEFAULT, VV_PACK_MAX };

struct vv_pack_file {
	const char *path; /* in the file system */
	const char *name; /* in the epoch: vv_manifest_is_name */
	/* a walk has found it as a file: a link of this path by now is an error */
	bool nofollow;
};

struct vv_stream_input; /* engine/files/stream_input.h */

struct vv_pack_options {
	enum vv_pack_scheme scheme;
	enum vv_pack_effort effort;
	uint32_t group;     /* files to merge, schemes of Islam 2012; 0: all */
	uint64_t block;     /* of the -block schemes; 0: 4096 */
	uint64_t small;     /* smaller variables, in bytes, belong to the skeleton; 0: 64 */
	bool single;        /* schemes of Islam 2012: one pass, not two */
	/* treatment of each segment of a process's memory: engine/files/segment_policy.h */
	const char *segments;
	const char *key;    /* rule for keys: core/format/similarity_key.h */
	const struct vv_manifest_entry *entry; /* symbolic links and folders, which rank 0 packs */
	size_t n_entries;
	/* streamed files, instead of any others; scheme auto */
	const struct vv_stream_input *stream_input;
	struct vv_progress progress;
	const atomic_bool *stop; /* set to true to end the packing without a trace; or NULL */
};

struct vv_pack_report {
	uint64_t epoch;
	/* bytes of all ranks: of the files; new; compressed; in the store with metadata */
	uint64_t files, raw, fresh, stored, layer;
	struct vv_manifest manifest; /* of this rank */
	struct vv_xattr_left left;   /* of this rank: attributes that were not packed */
};

/* file: all files, the same list on every rank of the session. An error on one rank is an error on
 * all. Nothing is committed until all of it is durable. */
int vv_pack_run(struct varve *v, const struct vv_pack_file *file, size_t n, const struct vv_pack_options *opt, struct vv_pack_report *out);
void vv_pack_report_fini(struct vv_pack_report *r);

#endif
