/* Closes files that a restart has read. Unmapping takes up to a tenth of the time of reading them,
 * and no thread needs to wait for it. */
#ifndef VV_ENGINE_READ_UNMAP_LATER_H
#define VV_ENGINE_READ_UNMAP_LATER_H

#include "base/pool.h"
#include "engine/read/open_layers.h"

/* Closes all. A thread of the pool unmaps them when it is idle, at the latest when the pool
 * ends. */
void vv_unmap_later_close(struct vv_open_layers *w, struct vv_pool *pool);

#endif
