/* What a stretch of a region needs of its layers, packed into a room for a space that checks and places by itself: every chunk that has
 * a part of it once, as it is stored, read in the order of the files. */
#ifndef VV_ENGINE_READ_DEVICE_BATCH_H
#define VV_ENGINE_READ_DEVICE_BATCH_H

#include "engine/read/restore.h"
#include "engine/read/open_layers.h"
#include "space/space.h"

struct vv_device_batch; /* what packing needs beside the room */

enum { VV_DEVICE_BATCH_MAX = 64 << 20 }; /* of a room */

/* For rooms of that size. */
int vv_device_batch_new(size_t room, struct vv_device_batch **out);
void vv_device_batch_free(struct vv_device_batch *c); /* NULL is fine */
/* The bytes at..end of a want's region. The layers have their digests. False: it is for the host, because something is coded, has no digests, cannot be read
 * or is too much for the room; that is no error yet. */
bool vv_device_batch_pack(struct vv_device_batch *c, const struct vv_open_layers *w, const struct vv_want *want, uint64_t at, uint64_t end, struct vv_device_inlet_buffer *r);

#endif
