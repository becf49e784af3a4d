/* Files become an epoch: each is a region, its bytes lie in the payload in the order of their variables, and each kind of variable is coded in
 * its own way. On many ranks each packs its share of the files. */
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
	const char *path; /* where it is */
	const char *name; /* in the epoch: vv_manifest_is_name */
};

struct vv_stream_input; /* engine/files/stream_input.h */

struct vv_pack_options {
	enum vv_pack_scheme scheme;
	enum vv_pack_effort effort;
	uint32_t group;     /* files that are merged, schemes of Islam 2012; 0: all */
	uint64_t block;     /* of the -block schemes; 0: 4096 */
	uint64_t small;     /* variables of fewer bytes are left to the skeleton; 0: 64 */
	bool single;        /* Islam 2012's schemes: one pass, not two */
	const char *segments; /* what is done with each part of a process's memory: engine/files/segment_policy.h */
	const char *key;    /* rule for keys: core/format/similarity_key.h */
	const struct vv_manifest_entry *entry; /* symbolic links and folders, which rank 0 packs */
	size_t n_entries;
	const struct vv_stream_input *stream_input; /* files that come by themselves, besides which there are none; scheme auto */
	struct vv_progress progress;
	const atomic_bool *stop; /* becomes true when it is to end, and leave nothing behind; or NULL */
};

struct vv_pack_report {
	uint64_t epoch;
	uint64_t files, raw, fresh, stored, layer; /* bytes: of the files; new; coded; in the store, metadata and all; of all ranks */
	struct vv_manifest manifest; /* of this rank */
	struct vv_xattr_left left;   /* of this rank: attributes that are not packed */
};

/* All files, the same list on every rank of the session; what is not well on one rank is an error on all. Nothing counts until all of it
 * is durable. */
int vv_pack_run(struct varve *v, const struct vv_pack_file *file, size_t n, const struct vv_pack_options *opt, struct vv_pack_report *out);
void vv_pack_report_fini(struct vv_pack_report *r);

#endif
