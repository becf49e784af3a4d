/* Finds the damaged blocks of layers and parity. */
#ifndef VV_ENGINE_RANKS_PARITY_SCAN_H
#define VV_ENGINE_RANKS_PARITY_SCAN_H

#include "engine/ranks/parity_build.h"

/* Reads all objects of the job, finds the damaged blocks, and tells all ranks, which have the same
 * job. */
int vv_parity_scan_run(const struct vv_parity_io *io, struct vv_parity_job *j);

#endif
