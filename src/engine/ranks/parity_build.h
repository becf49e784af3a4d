/* Writes the wanted objects of a parity job. Blocks move between places: ranks that have stores of
 * their own, or the stores that one process sees. */
#ifndef VV_ENGINE_RANKS_PARITY_BUILD_H
#define VV_ENGINE_RANKS_PARITY_BUILD_H

#include "engine/lineage_handle.h"
#include "engine/ranks/group.h"
#include "engine/ranks/parity_job.h"

struct vv_parity_io {
	struct vv_group *group; /* a place is a rank; NULL: this process has all places */
	struct vv_comm *comm;   /* of the group */
	/* Of this rank, or of each place. */
	const struct vv_lineage *lineage;
};

/* Returns the lineage of a place, or NULL if it is another rank's. */
const struct vv_lineage *vv_parity_build_lineage(const struct vv_parity_io *io, uint32_t place);

struct vv_parity_built {
	uint64_t parity_bytes; /* all by this process, of whole objects */
	uint64_t layer_bytes;
	uint64_t read_bytes;
	size_t n_objects;
};

/* All ranks of the group call this, each for its own set, or all for the same one. Writes nothing
 * unless all objects are complete and intact. VV_EDAMAGED: a block that was read is damaged;
 * vv_parity_scan_run finds all of them. */
int vv_parity_build_run(const struct vv_parity_io *io, struct vv_parity_job *j, struct vv_parity_built *out);

#endif
