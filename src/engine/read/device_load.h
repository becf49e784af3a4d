/* Reading into the memory of a space that checks and places by itself: the host only brings the stored chunks, whole and once for each stretch
 * of the region, and says what goes where. Each thread fills a room of its own, so that nobody waits for anybody but the link. */
#ifndef VV_ENGINE_READ_DEVICE_LOAD_H
#define VV_ENGINE_READ_DEVICE_LOAD_H

#include "core/format/payload.h"
#include "engine/read/device_buffers.h"
#include "engine/read/restore.h"
#include "engine/lineage/run_table.h"

/* What is left of the want, offsets in the region, is for the host to read, check and copy: what is coded, what has no digests that the space knows, and
 * what turned out not to be what its digests say. It begins empty. After a failure the buffers is of no use any more. Where a list of unmerged layers is given the want's runs are not
 * looked at: the tables need be neither read nor laid over each other before, that is done for each stretch as its turn comes. What is wrong with them, or with
 * layers that they name, makes what is left more, and is no failure. VV_DEVICE_LOAD_MERGE_FIRST: they name too many layers, of which perhaps few are needed; nothing was done. */
enum { VV_DEVICE_LOAD_MERGE_FIRST = 1 };
int vv_device_load_read(const struct vv_lineage *lin, struct vv_pool *pool, struct vv_device_buffers *buffers, const struct vv_want *want, const struct vv_run_table_unmerged *unmerged,
		  struct vv_extents *left);

#endif
