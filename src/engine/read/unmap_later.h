/* Files that a restart has read. Taking down their mappings takes up to a tenth of the time that reading them did, and nobody needs to wait for it. */
#ifndef VV_ENGINE_READ_UNMAP_LATER_H
#define VV_ENGINE_READ_UNMAP_LATER_H

#include "base/pool.h"
#include "engine/read/open_layers.h"

/* Closes all; a thread of the pool takes the mappings down when it has nothing else to do, at the latest when the pool ends. */
void vv_unmap_later_close(struct vv_open_layers *w, struct vv_pool *pool);

#endif
