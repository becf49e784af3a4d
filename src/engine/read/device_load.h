/* Reads into the memory of a space that checks and places bytes itself. The host only sends the
 * stored chunks, whole and once for each stretch of a region, and their destinations. Each thread
 * fills a room of its own, so that threads wait for the link only. */
#ifndef VV_ENGINE_READ_DEVICE_LOAD_H
#define VV_ENGINE_READ_DEVICE_LOAD_H

#include "core/format/payload.h"
#include "engine/read/device_buffers.h"
#include "engine/read/restore.h"
#include "engine/lineage/run_table.h"

struct vv_device_load_want {
	const struct vv_want *want;
	const struct vv_run_table_unmerged *unmerged; /* NULL: the want has its runs */
	struct vv_extents *left;
};

/* `left` gets the parts of the want, as offsets in the region, that the host must read, check and
 * copy. These are bytes without digests that the space supports, bytes that did not match, and
 * compressed bytes for whose blocks there was no memory. It begins empty. After a failure the
 * buffers are unusable. If `unmerged` is given, the want's runs are not used. The tables need not
 * be read or merged before: that is done for each stretch in turn. Errors of the tables or of their
 * layers make `left` longer, and are no failure. VV_DEVICE_LOAD_MERGE_FIRST: they name too many
 * layers, of which perhaps few are needed; nothing was done. */
enum { VV_DEVICE_LOAD_MERGE_FIRST = 1 };
int vv_device_load_read(const struct vv_lineage *lin, struct vv_pool *pool, struct vv_device_buffers *buffers, const struct vv_device_load_want *want, size_t n);

#endif
